#pragma once

#include "config/codec_mesh.h"
#include "config/key.h"
#include "workloads/streamed_collective.h"

namespace wafersim::config {

/// The group of a reduction along a line of tiles.
inline Key reduction_group_key() {
  return {.name = "group",
          .doc = "Of two_phase and k_tree: tiles of a group; auto is the power of two that the cost model finds best.",
          .min = 2,
          .max = 1000000,
          .absent = "auto"};
}

template <class Visitor>
void fields(Visitor& visit, workloads::CollectiveSpec& spec) {
  visit(Key{.name = "kind", .doc = "The root gets the sum of all vectors, all get that of the root, or all get the sum."},
        spec.kind);
  visit(Key{.name = "algorithm", .doc = "Who sends to whom, see [below](#collective); ring is for all_reduce, router_multicast for broadcast."},
        spec.algorithm);
  visit(Key{.name = "bytes", .doc = "The vector of each tile, whole fp32 elements.", .positive = true}, spec.bytes);
  visit(Key{.name = "shape", .doc = "Tiles that take part, in the north-west corner of the mesh.", .absent = "all"}, spec.shape);
  visit(Key{.name = "root", .doc = "The tile that trees lead to: that in the north-west corner, or that in the middle."},
        spec.root);
  visit(Key{.name = "relay",
            .doc = "Tiles pass on what they get packet by packet (cut_through), or when they have all of it; auto is "
                   "store_and_forward for ring, else cut_through.",
            .absent = "auto"},
        spec.relay);
  visit(reduction_group_key(), spec.group);
  visit(Key{.name = "launch", .doc = "From the start until a tile begins."}, spec.launch);
  visit(Key{.name = "task_overhead",
            .doc = "With store_and_forward: from when all of a message is there until it is used or sent on."},
        spec.task_overhead);
}

}  // namespace wafersim::config
