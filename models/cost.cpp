#include "models/cost.h"

#include <algorithm>

#include "base/error.h"
#include "models/kernel_table.h"

namespace wafersim::models {
namespace {

/// A GEMM as one dataflow sees it: a stationary operand of `rows` x `cols` elements, past which `streamed`
/// vectors move.
struct Folding {
  std::uint64_t rows = 0;
  std::uint64_t cols = 0;
  std::uint64_t streamed = 0;
};

Folding folding(const GemmShape& shape, Dataflow dataflow) {
  switch (dataflow) {
    case Dataflow::weight_stationary:
      return {shape.k, shape.n, shape.m};
    case Dataflow::output_stationary:
      return {shape.m, shape.n, shape.k};
    case Dataflow::input_stationary:
      return {shape.k, shape.m, shape.n};
  }
  throw InternalError("unknown dataflow");
}

/// Cycles of one array that does all folds.
std::uint64_t array_cycles(const GemmShape& shape, const HardwareModel& hardware) {
  const Folding fold = folding(shape, hardware.dataflow);
  const auto rows = static_cast<std::uint64_t>(hardware.array.rows);
  const auto cols = static_cast<std::uint64_t>(hardware.array.cols);
  const std::uint64_t folds = shape.batch * ceil_div(fold.rows, rows) * ceil_div(fold.cols, cols);
  const std::uint64_t load = rows;
  const std::uint64_t fill_and_drain = rows + cols - 2;
  return load + folds * std::max(fold.streamed, rows) + fill_and_drain;
}

/// The links between two tiles, and how often the way turns.
struct Way {
  int hops = 0;
  int turns = 0;
  Cycle on_links = 0;  ///< that all links take together
};

/// `slowest` is the least rate of the ports passed.
Cycle message_latency(const HardwareModel& hardware, Bytes bytes, const Way& way, const Rational& slowest) {
  require_invariant(way.turns >= 0 && way.turns < std::max(way.hops, 1), "a message turns at a tile between two hops");
  if (hardware.fidelity == Fidelity::ideal) return 0;
  const Cycle routers = (static_cast<Cycle>(way.hops) + 1) * hardware.router_cycles;
  const Cycle turns = static_cast<Cycle>(way.turns) * hardware.turn_cycles;
  const Cycle head = hardware.injection_cycles + routers + turns + way.on_links + hardware.ejection_cycles;
  return 2 * hardware.message_overhead + head + serialization(bytes, slowest);
}

}  // namespace

ComputeCost::ComputeCost(const HardwareModel& hardware) : hardware_(hardware) {
  if (!hardware.kernel_table.empty()) table_ = read_kernel_table(hardware.kernel_table);
}

Cycle ComputeCost::gemm(const GemmShape& shape) const {
  if (shape.flops() == 0) return 0;
  if (const auto measured = table_.find(shape); measured != table_.end()) return measured->second;
  return cycles_at_rate(array_cycles(shape, hardware_), hardware_.arrays) + hardware_.launch_overhead;
}

Cycle ComputeCost::vector(std::uint64_t flops) const {
  if (flops == 0) return 0;
  return cycles_at_rate(flops, hardware_.vector_flops_per_cycle) + hardware_.launch_overhead;
}

Cycle serialization(Bytes bytes, const Rational& rate) { return cycles_at_rate(bytes, rate); }

Cycle message_latency(const HardwareModel& hardware, Bytes bytes, int hops, int turns) {
  require_invariant(hops >= 0, "a message has a negative number of hops");
  Rational slowest = std::min(hardware.injection_bytes_per_cycle, hardware.ejection_bytes_per_cycle);
  if (hops > 0) slowest = std::min(slowest, hardware.link_bytes_per_cycle);
  return message_latency(hardware, bytes, {hops, turns, static_cast<Cycle>(hops) * hardware.link_cycles}, slowest);
}

Cycle message_latency(const HardwareModel& hardware, Bytes bytes, const std::vector<topology::LinkClass>& links, int turns) {
  Rational slowest = std::min(hardware.injection_bytes_per_cycle, hardware.ejection_bytes_per_cycle);
  Cycle on_links = 0;
  for (const topology::LinkClass& link_class : links) {
    const LinkModel link = hardware.link(link_class);
    slowest = std::min(slowest, link.bytes_per_cycle);
    on_links += link.cycles;
  }
  return message_latency(hardware, bytes, {static_cast<int>(links.size()), turns, on_links}, slowest);
}

}  // namespace wafersim::models
