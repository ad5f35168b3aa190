#pragma once

#include <optional>
#include <string>

#include "sim/measurements.h"
#include "topology/mesh.h"
#include "workloads/mesh_kernel.h"

namespace wafersim::report {

/// What `wafersim kernel` reports. References must outlive it.
struct KernelReport {
  std::string name;           ///< of the scenario
  std::string scenario_json;  ///< its sections that matter
  std::string kind;           ///< stencil, gemv, gemm
  topology::Shape shape;
  workloads::KernelWork work;
  std::optional<int> group;   ///< of the reduction
  Cycle model_cycles = 0;
  Rational peak_flops_per_cycle;  ///< of the engine of a tile that does the work
  Bytes sram_capacity = 0;        ///< of a tile
  double seconds = 0;
  std::string fidelity;
  const topology::Mesh& mesh;
  const sim::Measurements& measurements;
};

/// Keys: docs/results.md, "Kernels".
std::string kernel_json(const KernelReport& report);
/// For people.
std::string kernel_text(const KernelReport& report);

}  // namespace wafersim::report
