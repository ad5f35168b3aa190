#pragma once

#include <memory>
#include <vector>

#include "models/hardware.h"
#include "topology/mesh.h"
#include "workloads/kernel_spec.h"
#include "workloads/trace.h"

namespace wafersim::workloads {

/// What a kernel does in all, and what a tile holds at most.
struct KernelWork {
  std::uint64_t flops = 0;  ///< over all tiles and steps
  Bytes static_bytes = 0;   ///< of the fullest tile: operands, results and landing buffers
  bool on_matrix = false;   ///< the matrix engine does it, not the vector engine
  int steps = 1;            ///< steps of a stencil, rounds of a GEMM
};

/// A kernel on a machine.
class MeshKernel {
 public:
  virtual ~MeshKernel() = default;
  virtual const char* name() const = 0;
  virtual KernelWork work() const = 0;
  virtual Trace trace() const = 0;
  /// By closed form: docs/model-costs.md, "Kernels on a mesh", says where it is exact.
  virtual Cycle model_cycles() const = 0;
  /// Tiles of a group of the reduction; nothing where there is none.
  virtual std::optional<int> group() const { return std::nullopt; }
  const topology::Shape& shape() const { return shape_; }

 protected:
  MeshKernel(const KernelSpec& spec, const models::HardwareModel& hardware, const topology::Mesh& mesh);
  TileId tile(int x, int y) const { return mesh_.tile_at({x, y}); }
  Cycle launch_cycles() const { return spec_.launch.cycles(hardware_.clock); }
  Bytes element() const { return element_bytes(spec_.precision); }

  KernelSpec spec_;
  const models::HardwareModel& hardware_;
  const topology::Mesh& mesh_;
  topology::Shape shape_;
};

/// Throws PlanError for a fault_of() the spec, when a tile of the rectangle is dead, and when what a tile holds is more than its
/// SRAM. `hardware` and `mesh` must outlive the kernel.
std::unique_ptr<MeshKernel> make_mesh_kernel(const KernelSpec& spec, const models::HardwareModel& hardware,
                                             const topology::Mesh& mesh);

}  // namespace wafersim::workloads
