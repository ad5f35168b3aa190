#pragma once

#include "config/codec_mesh.h"
#include "config/fields_collective.h"
#include "config/key.h"
#include "workloads/kernel_spec.h"

namespace wafersim::config {

template <class Visitor>
void fields(Visitor& visit, workloads::StencilSpec& spec) {
  visit(Key{.name = "x", .doc = "Points of a tile along x.", .min = 1, .max = 1000000}, spec.x);
  visit(Key{.name = "y", .doc = "Points of a tile along y.", .min = 1, .max = 1000000}, spec.y);
  visit(Key{.name = "z",
            .doc = "Points of a tile along z, which no other tile continues; 1 is a grid of two dimensions.",
            .min = 1,
            .max = 1000000},
        spec.z);
  visit(Key{.name = "form", .doc = "Points along the dimensions only, or all of the square or cube; see [below](#kernels)."},
        spec.form);
  visit(Key{.name = "radius", .doc = "How far away the points are that a point depends on.", .min = 1, .max = 1000}, spec.radius);
  visit(Key{.name = "steps", .doc = "Steps; each needs the values of the one before.", .min = 1, .max = 1000000}, spec.steps);
  visit(Key{.name = "blocks",
            .doc = "Stars only: parts of a tile's points along z that are exchanged and computed one after the other, so that "
                   "less has to "
                   "be kept of other tiles.",
            .min = 1,
            .max = 1000000},
        spec.blocks);
  visit(Key{.name = "flops",
            .doc = "FLOPs of a point and step; auto is a product for each point of the stencil, and their sum.",
            .min = 1,
            .max = 1000000000,
            .absent = "auto"},
        spec.flops);
  visit(Key{.name = "arrays", .doc = "Values of a point that a tile keeps.", .min = 1, .max = 1000}, spec.arrays);
  visit(Key{.name = "overlap",
            .doc = "What is computed before all has come: nothing, the points that need none of it, or (stars only) terms as "
                   "they come."},
        spec.overlap);
  visit(
      Key{.name = "exchange",
          .doc = "A message for each tile that needs a tile's points, or (stars only) one in each direction that routers copy."},
      spec.exchange);
}

template <class Visitor>
void fields(Visitor& visit, workloads::GemvSpec& spec) {
  visit(Key{.name = "rows", .doc = "Rows of the matrix and length of x; cut over rows of tiles.", .min = 1, .max = 1LL << 30},
        spec.rows);
  visit(
      Key{.name = "cols", .doc = "Columns of the matrix and length of y; cut over columns of tiles.", .min = 1, .max = 1LL << 30},
      spec.cols);
  visit(Key{.name = "reduction", .doc = "How products are summed along a column of tiles: a tree of `collective.algorithm`."},
        spec.reduction);
  visit(reduction_group_key(), spec.group);
  visit(Key{.name = "root", .doc = "The tile of a column that sums lead to: the northernmost, or that in the middle."},
        spec.root);
  visit(Key{.name = "result", .doc = "Who gets y: that tile, or all of the column, by copies that routers make."}, spec.result);
  visit(Key{.name = "engine", .doc = "Which engine multiplies."}, spec.engine);
}

template <class Visitor>
void fields(Visitor& visit, workloads::GemmSpec& spec) {
  visit(Key{.name = "m", .doc = "Rows of A and C.", .min = 1, .max = 1LL << 30}, spec.m);
  visit(Key{.name = "k", .doc = "Columns of A, rows of B.", .min = 1, .max = 1LL << 30}, spec.k);
  visit(Key{.name = "n", .doc = "Columns of B and C.", .min = 1, .max = 1LL << 30}, spec.n);
  visit(Key{.name = "shift",
            .doc = "Rings in which blocks travel: in order, the last tile back to the first, or two hops at most."},
        spec.shift);
  visit(Key{.name = "flow", .doc = "A tile sends a block when its receiver has room for it, or when it has the block."},
        spec.flow);
}

template <class Visitor>
void fields(Visitor& visit, workloads::KernelSpec& spec) {
  visit(Key{.name = "shape", .doc = "Tiles that take part, in the north-west corner of the mesh.", .absent = "all"}, spec.shape);
  visit(Key{.name = "precision", .doc = "Of all elements, on all ways."}, spec.precision);
  visit(Key{.name = "launch", .doc = "From the start until a tile begins."}, spec.launch);
  visit(Key{.name = "stencil", .doc = "Steps of a stencil on a regular grid.", .absent = "none"}, spec.stencil);
  visit(Key{.name = "gemv", .doc = "The product of a vector and a matrix.", .absent = "none"}, spec.gemv);
  visit(Key{.name = "gemm", .doc = "The product of two matrices.", .absent = "none"}, spec.gemm);
}

}  // namespace wafersim::config
