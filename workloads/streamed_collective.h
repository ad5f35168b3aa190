#pragma once

#include <optional>
#include <string>

#include "models/hardware.h"
#include "models/spatial_cost.h"
#include "topology/mesh.h"
#include "workloads/plan.h"
#include "workloads/spec_fault.h"
#include "workloads/trace.h"

namespace wafersim::workloads {

/// What a streamed collective does with a vector on each tile of a rectangle.
enum class StreamedKind {
  reduce,     ///< the root gets the sum of all vectors
  broadcast,  ///< all get the root's
  all_reduce  ///< all get the sum
};

/// Where its root is: the north-west tile, or the tile in the middle (column cols / 2, row rows / 2).
enum class StreamedRoot { corner, center };

/// How. All but `ring` and `router_multicast` are trees towards the root: along each row to the tile in the root's column, and
/// along that. Of the tiles 0 .. P-1 on one side of that tile, which is 0, tile i > 0 sends
///  * chain: to i - 1;
///  * star: to 0;
///  * tree: to i without its lowest bit (binomial tree);
///  * two_phase: within groups of S tiles as a chain to the group's first, these as a chain among each other;
///  * k_tree: the same, but groups lie around their firsts 0, S, 2 S, ..., which chains reach from both sides (the K-tree of
///    WaferLLM, arXiv 2502.04563, with K = 2). A last group that is cut short before its middle has its last tile as its first.
/// A broadcast goes the other way. An all_reduce of a tree is its reduce and a multicast of the sum by the routers.
///  * router_multicast: broadcast only; one injection, copied by the routers;
///  * ring: all_reduce only, of a line; reduce-scatter and all-gather of P shares, tile i to i + 1, the last one back across
///    the whole line to the first.
enum class StreamedAlgorithm { chain, star, tree, two_phase, k_tree, ring, router_multicast };
/// Whether it has groups of S tiles.
bool in_groups(StreamedAlgorithm algorithm);

/// A collective of one vector of fp32 elements for each tile, as cores do it that add or store what arrives as it arrives.
struct CollectiveSpec {
  StreamedKind kind = StreamedKind::reduce;
  StreamedAlgorithm algorithm = StreamedAlgorithm::chain;
  DataSize bytes{4096};                   ///< of the vector, whole elements
  std::optional<topology::Shape> shape;   ///< in the north-west corner; absent = the whole mesh
  std::optional<StreamRelay> relay;       ///< of what a tile passes on: packet by packet, or when it has all of it; absent =
                                          ///< store_and_forward for `ring`, else cut_through
  StreamedRoot root = StreamedRoot::corner;  ///< not of `ring`
  std::optional<int> group;               ///< S of two_phase and k_tree; absent = what the cost model finds best
  Duration launch = Duration::of_cycles(0);         ///< of each tile, before it does anything
  Duration task_overhead = Duration::of_cycles(0);  ///< with store_and_forward: from what a tile has received to its use
};

inline constexpr Bytes kStreamedElement = 4;

class ReductionTree;

/// A rectangle outside the mesh or of one tile, no whole elements, an algorithm that does not do the kind, a ring of a
/// rectangle, a group where there is none. Nothing when the spec can be had on that mesh.
std::optional<SpecFault> fault_of(const CollectiveSpec& spec, const topology::Shape& mesh);

/// The group along a line of `tiles` to its first: the power of two that the cost model finds best for `bytes`. Without one below
/// `tiles` groups make no difference.
int best_group(StreamedAlgorithm algorithm, const models::HardwareModel& hardware, int tiles, Bytes bytes);

/// A streamed collective on a machine.
class StreamedCollective {
 public:
  /// Throws PlanError for a fault_of() the spec, and when a tile of the rectangle is dead. `hardware` and `mesh` must outlive
  /// this.
  StreamedCollective(const CollectiveSpec& spec, const models::HardwareModel& hardware, const topology::Mesh& mesh);

  const topology::Shape& shape() const { return shape_; }
  StreamRelay relay() const { return relay_; }
  /// S of two_phase and k_tree along rows and along the root's column; 0 otherwise.
  int row_group() const { return row_group_; }
  int column_group() const { return column_group_; }
  Trace trace() const;
  /// By models::spatial_cost(). An all_reduce of a tree is the sum of its two parts.
  Cycle model_cycles() const;
  /// models::line_reduce_bound() of reductions of a line to its first tile.
  std::optional<Cycle> reduce_bound() const;

 private:
  class Lowering;

  TileId tile(int rank) const;
  ReductionTree tree() const;
  topology::Coord root() const;
  models::SpatialTerms multicast_terms() const;
  models::SpatialTerms ring_terms() const;

  CollectiveSpec spec_;
  const models::HardwareModel& hardware_;
  const topology::Mesh& mesh_;
  topology::Shape shape_;
  StreamRelay relay_;
  int row_group_ = 0;
  int column_group_ = 0;
};

}  // namespace wafersim::workloads
