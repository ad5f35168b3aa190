#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "models/hardware.h"

namespace wafersim::models {

/// `batch` independent products of an m x k by a k x n matrix.
struct GemmShape {
  std::uint64_t batch = 1;
  std::uint64_t m = 0;
  std::uint64_t n = 0;
  std::uint64_t k = 0;
  std::uint64_t flops() const { return 2 * batch * m * n * k; }
  bool operator==(const GemmShape&) const = default;
  auto operator<=>(const GemmShape&) const = default;
};

/// Cycles of the operations of one tile's core, memory left aside. Derivations: docs/model-costs.md, "Compute".
class ComputeCost {
 public:
  /// Reads the kernel table of the model, when it names one. Throws IoError or ScenarioError for a bad table.
  explicit ComputeCost(const HardwareModel& hardware);

  /// Systolic cycles: weight-stationary folds = batch * ceil(k/R) * ceil(n/C), each streams max(m, R) rows (the next fold's
  /// weights load meanwhile), plus R to load the first weights and R + C - 2 to fill and drain once;
  /// output-stationary and input-stationary by the same rule with the operands exchanged. The sum is divided by the
  /// number of arrays and rounded up; the launch overhead comes on top. An entry of the kernel table takes the place of
  /// all of it, launch overhead included. A product with no elements costs nothing.
  Cycle gemm(const GemmShape& shape) const;
  /// ceil(flops / vector rate) plus the launch overhead; 0 flops cost nothing.
  Cycle vector(std::uint64_t flops) const;

 private:
  HardwareModel hardware_;
  std::map<GemmShape, Cycle> table_;
};

/// Serialization of `bytes` in cycles on a link of `rate`.
Cycle serialization(Bytes bytes, const Rational& rate);

/// Closed form of one message over `hops` idle links with `turns` turns of the router's own cost C: Linj + (H+1) R + turns C +
/// H L + Leject + ceil(bytes / slowest rate among the ports passed), plus the message overhead at both ends; hops 0 (source = destination) passes injection and ejection
/// only. Exact to the cycle for any number of packets under the conditions of docs/model-costs.md, "Messages". 0 with
/// the ideal network.
Cycle message_latency(const HardwareModel& hardware, Bytes bytes, int hops, int turns = 0);
/// The same over links of the given classes, each with its own latency and bandwidth.
Cycle message_latency(const HardwareModel& hardware, Bytes bytes, const std::vector<topology::LinkClass>& links, int turns = 0);

}  // namespace wafersim::models
