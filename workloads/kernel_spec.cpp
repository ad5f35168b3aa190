#include "workloads/kernel_spec.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace wafersim::workloads {
namespace {

using Fault = std::optional<SpecFault>;
using topology::Shape;

constexpr std::int64_t kMostPoints = 1LL << 40;  // of a stencil: (2 radius + 1)^3 stays within 64 bits

Fault stencil_fault(const StencilSpec& spec) {
  const auto box_reaches = [&](const char* key, int points) -> Fault {
    if (spec.form != StencilForm::box || points >= spec.radius) return std::nullopt;
    return SpecFault{key,
                     fmt::format("{} points of a tile are fewer than the radius {} of a box, whose corners come from the next "
                                 "tiles; valid: {} or more",
                                 points, spec.radius, spec.radius)};
  };
  if (Fault fault = box_reaches("stencil.x", spec.x)) return fault;
  if (Fault fault = box_reaches("stencil.y", spec.y)) return fault;
  if (spec.form == StencilForm::box && spec.exchange == StencilExchange::multicast) {
    return SpecFault{"stencil.exchange", "'multicast' is for the form star; the corners of a box go by way of the tiles beside"};
  }
  if (spec.form == StencilForm::box && spec.overlap == StencilOverlap::arrivals) {
    return SpecFault{"stencil.overlap", "'arrivals' is for the form star; valid for a box: none, interior"};
  }
  if (spec.blocks > spec.z) {
    return SpecFault{"stencil.blocks", fmt::format("{} are more than the {} points along z", spec.blocks, spec.z)};
  }
  if (spec.form == StencilForm::box && spec.blocks > 1) {
    return SpecFault{"stencil.blocks", "is only for the form star, whose points along z are the tile's own"};
  }
  if (stencil_points(spec) > kMostPoints) {
    return SpecFault{"stencil.radius", fmt::format("{} makes a stencil of too many points", spec.radius)};
  }
  return std::nullopt;
}

Fault gemv_fault(const GemvSpec& spec, const Shape& shape) {
  if (spec.rows < shape.rows) {
    return SpecFault{"gemv.rows", fmt::format("{} rows of the matrix are fewer than the {} rows of tiles of {}", spec.rows,
                                              shape.rows, topology::to_string(shape))};
  }
  if (spec.cols < shape.cols) {
    return SpecFault{"gemv.cols", fmt::format("{} columns of the matrix are fewer than the {} columns of tiles of {}", spec.cols,
                                              shape.cols, topology::to_string(shape))};
  }
  if (spec.reduction == StreamedAlgorithm::ring || spec.reduction == StreamedAlgorithm::router_multicast) {
    return SpecFault{"gemv.reduction", "is no tree of sums; valid: chain, star, tree, two_phase, k_tree"};
  }
  if (spec.group && !in_groups(spec.reduction)) {
    return SpecFault{"gemv.group", "is only for the reductions two_phase and k_tree"};
  }
  if (spec.group && *spec.group > shape.rows) {
    return SpecFault{"gemv.group", fmt::format("a group of {} is larger than a column of {} tiles", *spec.group, shape.rows)};
  }
  return std::nullopt;
}

Fault gemm_fault(const GemmSpec& spec, const Shape& shape) {
  if (shape.rows != shape.cols) {
    return SpecFault{"shape", fmt::format("{} is no square of tiles, which blocks that travel in rows and columns need",
                                          topology::to_string(shape))};
  }
  for (const auto& [key, extent] : {std::pair("gemm.m", spec.m), std::pair("gemm.k", spec.k), std::pair("gemm.n", spec.n)}) {
    if (extent >= shape.rows) continue;
    return SpecFault{
        key, fmt::format("{} is less than the {} tiles along a side of {}", extent, shape.rows, topology::to_string(shape))};
  }
  return std::nullopt;
}

}  // namespace

std::int64_t stencil_points(const StencilSpec& spec) {
  const int dimensions = spec.z > 1 ? 3 : 2;
  const std::int64_t reach = 2LL * spec.radius;
  if (spec.form == StencilForm::star) return dimensions * reach + 1;
  return dimensions == 3 ? (reach + 1) * (reach + 1) * (reach + 1) : (reach + 1) * (reach + 1);
}

std::uint64_t flops_of_point(const StencilSpec& spec) {
  return static_cast<std::uint64_t>(spec.flops.value_or(static_cast<int>(2 * stencil_points(spec) - 1)));
}

std::optional<SpecFault> fault_of(const KernelSpec& spec, const topology::Shape& mesh) {
  const Shape shape = spec.shape.value_or(mesh);
  if (shape.rows > mesh.rows || shape.cols > mesh.cols) {
    return SpecFault{"shape", fmt::format("{} does not fit the mesh {}", topology::to_string(shape), topology::to_string(mesh))};
  }
  if (shape.size() < 2) return SpecFault{"shape", "a kernel needs at least 2 tiles"};
  if (spec.stencil.has_value() + spec.gemv.has_value() + spec.gemm.has_value() != 1) {
    return SpecFault{"", "needs one of the sections stencil, gemv, gemm, and only one"};
  }
  if (spec.stencil) return stencil_fault(*spec.stencil);
  return spec.gemv ? gemv_fault(*spec.gemv, shape) : gemm_fault(*spec.gemm, shape);
}

}  // namespace wafersim::workloads
