#include "workloads/mesh_kernel.h"

#include <fmt/format.h>

#include "base/error.h"
#include "workloads/mesh_kernels.h"

namespace wafersim::workloads {

MeshKernel::MeshKernel(const KernelSpec& spec, const models::HardwareModel& hardware, const topology::Mesh& mesh)
    : spec_(spec), hardware_(hardware), mesh_(mesh), shape_(spec.shape.value_or(mesh.shape())) {}

std::unique_ptr<MeshKernel> make_mesh_kernel(const KernelSpec& spec, const models::HardwareModel& hardware,
                                             const topology::Mesh& mesh) {
  if (const auto fault = fault_of(spec, mesh.shape())) {
    throw PlanError(fmt::format("kernel{}{}: {}", fault->key.empty() ? "" : ".", fault->key, fault->message));
  }
  std::unique_ptr<MeshKernel> kernel = spec.stencil ? make_stencil(spec, hardware, mesh)
                                       : spec.gemv  ? make_gemv(spec, hardware, mesh)
                                                    : make_gemm(spec, hardware, mesh);
  const topology::Shape& shape = kernel->shape();
  for (int y = 0; y < shape.rows; ++y) {
    for (int x = 0; x < shape.cols; ++x) {
      const TileId tile = mesh.tile_at({x, y});
      if (mesh.alive(tile)) continue;
      throw PlanError(fmt::format("kernel.shape: {} is dead, and all tiles of the rectangle take part", mesh.name(tile)));
    }
  }
  const Bytes held = kernel->work().static_bytes;
  if (held > hardware.sram_capacity) {
    throw PlanError(
        fmt::format("kernel.{}: a tile of {} would hold {} bytes, {} more than the {} bytes of its SRAM; valid: fewer "
                    "elements, more tiles or a narrower kernel.precision",
                    kernel->name(), topology::to_string(shape), held, held - hardware.sram_capacity, hardware.sram_capacity));
  }
  return kernel;
}

}  // namespace wafersim::workloads
