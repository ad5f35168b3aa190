#pragma once

#include "workloads/mesh_kernel.h"

/// The kernels. Private to this folder; make_mesh_kernel() makes them.
namespace wafersim::workloads {

std::unique_ptr<MeshKernel> make_stencil(const KernelSpec&, const models::HardwareModel&, const topology::Mesh&);
std::unique_ptr<MeshKernel> make_gemv(const KernelSpec&, const models::HardwareModel&, const topology::Mesh&);
std::unique_ptr<MeshKernel> make_gemm(const KernelSpec&, const models::HardwareModel&, const topology::Mesh&);

}  // namespace wafersim::workloads
