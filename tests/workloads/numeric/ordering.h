#pragma once

#include <string>
#include <vector>

#include "workloads/trace.h"

namespace wafersim::workloads::numeric {

/// A replay is one order of operations out of many. Two operations of a tile must be ordered when they use
/// the same numbers, unless both only read them or both add to them: within a step by dependencies or by
/// their engine, in two steps by what the second waits for or by their engine. A description of each pair
/// that is not (at most `limit`).
std::vector<std::string> unordered_uses(const Trace& trace, std::size_t limit = 10);

}  // namespace wafersim::workloads::numeric
