#pragma once

#include <cstdint>
#include <optional>

#include "base/quantity.h"
#include "topology/mesh.h"
#include "workloads/plan.h"
#include "workloads/spec_fault.h"
#include "workloads/streamed_collective.h"

namespace wafersim::workloads {

/// Which points a point depends on, besides itself: those up to `radius` away along each dimension, or all of the square or
/// cube around it.
enum class StencilForm { star, box };
/// What a tile computes before all that it needs has come: nothing, the points that need none of it, or of all points the terms
/// whose data are there.
enum class StencilOverlap { none, interior, arrivals };
/// A message for each tile that needs a tile's points, or one for each direction, which routers copy.
enum class StencilExchange { unicast, multicast };

/// Steps of a stencil on a regular grid. Each tile holds x by y by z points, and the grid continues on the tiles around it along
/// x (columns of tiles) and y (rows); it ends where the tiles end.
struct StencilSpec {
  int x = 1;
  int y = 1;
  int z = 1;       ///< 1 = a grid of two dimensions
  StencilForm form = StencilForm::star;
  int radius = 1;
  int steps = 1;
  int blocks = 1;            ///< of a tile's points along z, exchanged and computed one after the other
  std::optional<int> flops;  ///< of a point and step; absent = a product for each point that it depends on, and their sum
  int arrays = 2;            ///< values of a point that a tile keeps
  StencilOverlap overlap = StencilOverlap::none;
  StencilExchange exchange = StencilExchange::unicast;
};
/// Points of the stencil, the one in the middle included.
std::int64_t stencil_points(const StencilSpec& spec);
std::uint64_t flops_of_point(const StencilSpec& spec);

enum class GemvEngine { matrix, vector };
/// Who gets the product: the tile of each column of tiles to which its sums lead, or all tiles of the column.
enum class GemvResult { root, all };

/// y = x A for a matrix A of `rows` by `cols` elements. A is cut over rows and columns of tiles, x over the rows; each tile of a
/// row holds the row's part of x. Products of blocks are summed along each column of tiles.
struct GemvSpec {
  std::int64_t rows = 1024;
  std::int64_t cols = 1024;
  StreamedAlgorithm reduction = StreamedAlgorithm::k_tree;
  std::optional<int> group;  ///< as CollectiveSpec::group
  StreamedRoot root = StreamedRoot::center;
  GemvResult result = GemvResult::all;
  GemvEngine engine = GemvEngine::matrix;
};

/// Rings in which blocks travel: tiles in order, the last one back to the first across all of them; or every second tile on the
/// way out and the others on the way back, two hops at most.
enum class GemmShift { ring, interleaved };
/// `credits`: a tile sends a block when its receiver has said that it has a buffer for it. `free`: when it has the block.
enum class GemmFlow { credits, free };

/// C = A B for A of m by k and B of k by n elements on a square of N by N tiles, each of which holds a block of each: Cannon's
/// algorithm, blocks of A and B lying where the first product needs them. N rounds; after each but the last the blocks of A move
/// on along their rows and those of B along their columns.
struct GemmSpec {
  std::int64_t m = 1024;
  std::int64_t k = 1024;
  std::int64_t n = 1024;
  GemmShift shift = GemmShift::interleaved;
  GemmFlow flow = GemmFlow::credits;
};

/// One of the kernels on a rectangle of tiles.
struct KernelSpec {
  std::optional<topology::Shape> shape;        ///< in the north-west corner; absent = the whole mesh
  Precision precision = Precision::fp16;       ///< of all elements
  Duration launch = Duration::of_cycles(0);    ///< of each tile, before it does anything
  std::optional<StencilSpec> stencil;
  std::optional<GemvSpec> gemv;
  std::optional<GemmSpec> gemm;
};

/// Not one kernel, a rectangle outside the mesh, a matrix smaller than the tiles, ... Nothing when it can be had on that mesh.
std::optional<SpecFault> fault_of(const KernelSpec& spec, const topology::Shape& mesh);

}  // namespace wafersim::workloads
