#pragma once

#include <string>
#include <vector>

#include "workloads/trace.h"

namespace wafersim::workloads::numeric {

/// A replay is one order of operations out of many. Two operations of a step must be ordered, by dependencies
/// or by their engine, when they use the same numbers unless both only read them or both add to them: a
/// description of each pair that is not (at most `limit`). What is discarded may have been read, but must not
/// be read after.
std::vector<std::string> unordered_uses(const Trace& trace, std::size_t limit = 10);

}  // namespace wafersim::workloads::numeric
