#include "workloads/streamed_collective.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "workloads/reduction_tree.h"

namespace wafersim::workloads {
namespace {

Rational bytes_of(const CollectiveSpec& spec) { return Rational(static_cast<std::int64_t>(spec.bytes.bytes)); }

}  // namespace

bool in_groups(StreamedAlgorithm algorithm) {
  return algorithm == StreamedAlgorithm::two_phase || algorithm == StreamedAlgorithm::k_tree;
}

int best_group(StreamedAlgorithm algorithm, const models::HardwareModel& hardware, int tiles, Bytes bytes) {
  int best = 2;
  std::optional<Cycle> least;
  for (int group = 2; group < tiles; group *= 2) {
    const ReductionTree tree = ReductionTree::line(algorithm, tiles, 0, group);
    const Cycle cycles = models::spatial_cost(hardware, tree.terms(Rational(static_cast<std::int64_t>(bytes))));
    if (least && *least <= cycles) continue;
    least = cycles;
    best = group;
  }
  return best;
}

std::optional<SpecFault> fault_of(const CollectiveSpec& spec, const topology::Shape& mesh) {
  const topology::Shape shape = spec.shape.value_or(mesh);
  const bool ring = spec.algorithm == StreamedAlgorithm::ring;
  if (shape.rows > mesh.rows || shape.cols > mesh.cols) {
    return SpecFault{"shape", fmt::format("{} does not fit the mesh {}", topology::to_string(shape), topology::to_string(mesh))};
  }
  if (shape.size() < 2) return SpecFault{"shape", "a collective needs at least 2 tiles"};
  if (spec.bytes.bytes % kStreamedElement != 0) {
    return SpecFault{"bytes", fmt::format("'{}' is no whole number of fp32 elements; valid: multiples of {} B",
                                                to_string(spec.bytes), kStreamedElement)};
  }
  if (ring && spec.kind != StreamedKind::all_reduce) {
    return SpecFault{"algorithm", "'ring' does not fit; it is for the kind all_reduce. Valid: chain, star, tree, two_phase, "
                                        "for a broadcast also router_multicast"};
  }
  if (spec.algorithm == StreamedAlgorithm::router_multicast && spec.kind != StreamedKind::broadcast) {
    return SpecFault{"algorithm", "'router_multicast' does not fit; it is for the kind broadcast. Valid: chain, star, tree, "
                                        "two_phase, for all_reduce also ring"};
  }
  if (ring && shape.rows > 1 && shape.cols > 1) {
    return SpecFault{"shape", fmt::format("'{}' does not fit; a ring is made of a line of tiles: 1xN or Nx1",
                                                topology::to_string(shape))};
  }
  if (ring && spec.root != StreamedRoot::corner) {
    return SpecFault{"root", "a ring has none; it is for the other algorithms"};
  }
  if (spec.group && !in_groups(spec.algorithm)) {
    return SpecFault{"group", "is only for the algorithms two_phase and k_tree"};
  }
  return std::nullopt;
}

StreamedCollective::StreamedCollective(const CollectiveSpec& spec, const models::HardwareModel& hardware,
                                       const topology::Mesh& mesh)
    : spec_(spec), hardware_(hardware), mesh_(mesh), shape_(spec.shape.value_or(mesh.shape())) {
  if (const auto fault = fault_of(spec, mesh.shape())) {
    throw PlanError(fmt::format("collective.{}: {}", fault->key, fault->message));
  }
  const bool ring = spec.algorithm == StreamedAlgorithm::ring;
  relay_ = spec.relay.value_or(ring ? StreamRelay::store_and_forward : StreamRelay::cut_through);
  if (in_groups(spec.algorithm)) {
    // The longer of the two lines to the root's tile, that included.
    const auto best = [&](int at, int tiles) {
      return best_group(spec.algorithm, hardware, std::max(at + 1, tiles - at), spec.bytes.bytes);
    };
    row_group_ = spec.group.value_or(best(root().x, shape_.cols));
    column_group_ = spec.group.value_or(best(root().y, shape_.rows));
  }
  for (int rank = 0; rank < shape_.size(); ++rank) {
    if (mesh.alive(tile(rank))) continue;
    throw PlanError(fmt::format("collective.shape: {} is dead, and all tiles of the rectangle take part", mesh.name(tile(rank))));
  }
}

TileId StreamedCollective::tile(int rank) const {
  return mesh_.tile_at({rank % shape_.cols, rank / shape_.cols});
}

topology::Coord StreamedCollective::root() const {
  if (spec_.root == StreamedRoot::corner) return {0, 0};
  return {shape_.cols / 2, shape_.rows / 2};
}

ReductionTree StreamedCollective::tree() const {
  return ReductionTree(spec_.algorithm, shape_, root(), row_group_, column_group_);
}

Cycle StreamedCollective::model_cycles() const {
  const Rational bytes = bytes_of(spec_);
  if (spec_.algorithm == StreamedAlgorithm::ring) return models::spatial_cost(hardware_, ring_terms());
  const Cycle copied = models::spatial_cost(hardware_, multicast_terms());
  if (spec_.algorithm == StreamedAlgorithm::router_multicast) return copied;
  const Cycle along_tree = models::spatial_cost(hardware_, tree().terms(bytes));
  return spec_.kind == StreamedKind::all_reduce ? along_tree + copied : along_tree;
}

/// Every link of the tree carries the vector once; a single message brings it everywhere.
models::SpatialTerms StreamedCollective::multicast_terms() const {
  const std::int64_t links = shape_.size() - 1;
  const Rational bytes = bytes_of(spec_);
  const int farthest = std::max(root().x, shape_.cols - 1 - root().x) + std::max(root().y, shape_.rows - 1 - root().y);
  return {bytes, bytes * Rational(links), links, farthest, 1};
}

/// 2 (P - 1) rounds, in each of which every tile sends a share: P - 1 of them over one link, one over P - 1 links back. A share
/// goes 2 (P - 1) steps, at most two of which are the way back.
models::SpatialTerms StreamedCollective::ring_terms() const {
  const std::int64_t tiles = shape_.size();
  const Rational sent = bytes_of(spec_) * Rational(2 * (tiles - 1), tiles);
  return {sent, sent * Rational(2 * (tiles - 1)), 2 * (tiles - 1), 4 * tiles - 6, 2 * (tiles - 1)};
}

std::optional<Cycle> StreamedCollective::reduce_bound() const {
  const bool line = shape_.rows == 1 || shape_.cols == 1;
  if (spec_.kind != StreamedKind::reduce || !line || spec_.root != StreamedRoot::corner) return std::nullopt;
  return models::line_reduce_bound(hardware_, shape_.size(), spec_.bytes.bytes);
}

}  // namespace wafersim::workloads
