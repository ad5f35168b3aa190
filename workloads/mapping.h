#pragma once

#include <array>
#include <map>
#include <set>
#include <vector>

#include "topology/mesh.h"
#include "workloads/plan.h"

namespace wafersim::workloads {

/// All rows x cols = count, the most square first, the wider of two equally square ones first.
std::vector<topology::Shape> factorizations(int count);

/// A placement with its shape as a scenario writes it: a block or snake of one row or column is a `row` or
/// `col`.
AxisMapping explicit_mapping(Placement placement, const topology::Shape& shape);

/// Which tile plays which ranks.
class Mapping {
 public:
  /// Lays the plan's axes on the mesh, nested from the inside out (plan.order; axes of degree 1 may be left
  /// out): each axis arranges copies of the inner rectangle in a shape of rows x cols copies.
  ///  * `row` = 1 x degree, `col` = degree x 1; `block RxC` row-major; `snake RxC` boustrophedon: consecutive
  ///  ranks are
  ///    neighbours. The order in which a ring visits a group is the collective's affair.
  ///  * `strided`: rank i of the axis takes the tiles i k .. i k + k - 1 of its rectangle in row-major order,
  ///  k = the product
  ///    of the axes inside it, whose ranks fill those tiles in row-major order of their own rectangle.
  ///  * Without a shape: the most square factorization, wider than tall, with which the whole plan fits the
  ///  mesh. When
  ///    the most square one of every axis does not, others are tried, those of the outermost axis first.
  ///  * `standard`: a snake for pp and tatp (stages and members of a stream stay neighbours), a block for the
  ///  others.
  /// With dead tiles the whole rectangle moves to the first place (row-major) where every tile lives.
  /// Throws PlanError naming the axis and the sizes when it does not fit, or the dead tiles in the way;
  /// InternalError for `optimized`.
  Mapping(const PlanSpec& plan, const topology::Mesh& mesh);

  TileId tile(const Ranks& ranks) const { return tiles_[index(ranks)]; }
  /// Tiles of a group along an axis, in rank order, through the member with the given other ranks.
  std::vector<TileId> group(Axis axis, Ranks ranks) const;
  /// How an axis was laid out, written out in full: the same entry in the plan gives the same tiles.
  const AxisMapping& laid_out(Axis axis) const { return laid_out_.at(axis); }
  /// The shape an axis was given: copies of the inner rectangle, rows x cols. Where a strided axis breaks up
  /// the rectangles inside it, the shape that an axis ends up with; 1 x degree when its tiles make no grid.
  topology::Shape axis_shape(Axis axis) const;
  /// Where each rank of an axis sits in that shape, in rank order; hop counts between ranks scale with the
  /// inner rectangle.
  const std::vector<topology::Coord>& axis_positions(Axis axis) const;
  /// The groups of an axis make a single row or column of three and more whose ends are as near to each other as
  /// neighbours in it: it goes round a whole ring of the mesh.
  bool axis_closed(Axis axis) const { return closed_.contains(axis); }

  /// The replicas, over ep and dp, through the member with the given other ranks: their tiles by replica
  /// (PlanSpec::replica), and the grid that they make, the shape of the inner of the two axes in each place of the
  /// outer one's.
  std::vector<TileId> replicas(Ranks ranks) const;
  topology::Shape replica_shape() const;
  std::vector<topology::Coord> replica_positions() const;
  /// As axis_closed(), where one of the two axes makes up the replicas.
  bool replicas_closed() const;

 private:
  void observe(Axis axis, const topology::Mesh& mesh);
  void find_closed(const topology::Mesh& mesh);
  std::size_t index(const Ranks& ranks) const;
  std::vector<std::size_t> first_members(Axis axis) const;
  std::array<int, kAxes> degrees_{};
  bool ep_inside_ = true;  ///< ep is nested inside dp
  std::array<std::size_t, kAxes> strides_{};  ///< in tiles_, from one rank of an axis to the next
  std::vector<TileId> tiles_;
  std::map<Axis, topology::Shape> shapes_;
  std::map<Axis, AxisMapping> laid_out_;
  std::map<Axis, std::vector<topology::Coord>> positions_;
  std::set<Axis> closed_;
};

}  // namespace wafersim::workloads
