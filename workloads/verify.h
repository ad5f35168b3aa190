#pragma once

#include <string>
#include <vector>

#include "topology/mesh.h"
#include "workloads/trace.h"

namespace wafersim::workloads {

/// Plays a trace without time and follows which part of which tensor each tile has, with which addends of a sum,
/// from the meanings of its operations (see meaning.h). Proves that
///  * each operation finds the operands that it reads, complete and, for weights, updated as often as iterations
///    have passed;
///  * each reduction adds every contribution exactly once;
///  * what is read was not discarded before, and the two ends of a message name the same data;
///  * at the end every tile has the weights that it started with, updated by every iteration when there is an
///    optimizer, and no activations are left.
/// Returns a description of each fault (at most `limit`), also those of check_trace; empty when the trace is proven. An operation without a meaning proves nothing. Work is linear in the expanded operations.
std::vector<std::string> verify_trace(const Trace& trace, const topology::Mesh& mesh, std::size_t limit = 10);

}  // namespace wafersim::workloads
