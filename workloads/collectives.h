#pragma once

#include <vector>

#include "models/hardware.h"
#include "topology/shapes.h"
#include "workloads/step_builder.h"

namespace wafersim::workloads {

/// A process group as one of its members sees it while its step is built.
struct Group {
  Axis axis = Axis::none;
  int size = 1;
  int rank = 0;
  topology::Shape shape;                   ///< of the axis, rows x cols, size() == size
  std::vector<topology::Coord> positions;  ///< by rank, a permutation of the places of `shape`
  std::uint32_t first_peer =
      0;  ///< peers[first_peer + (other + size - rank) % size] of the tile is member `other` ...
  std::vector<std::uint32_t> peers{};  ///< ... unless the indices are given, by member
  bool closed = false;  ///< the last place of a single row or column is as near to the first as neighbours are
  std::uint32_t peer(int other) const {
    if (!peers.empty()) return peers[static_cast<std::size_t>(other)];
    return first_peer + static_cast<std::uint32_t>((other + size - rank) % size);
  }
};

/// The vector of a collective: `bytes` in total (the full vector D), `elements` for the cost of reductions
/// (one vector FLOP an element; every byte added moves three in SRAM: two reads, one write), `tensor` from
/// StepBuilder::tensor. `views`, when there are any, are the vector's rows: shards then consist of whole rows,
/// and bytes and elements are multiples of their number.
struct CollectiveVector {
  Bytes bytes = 0;
  std::uint64_t elements = 0;
  std::uint32_t tensor = 0;
  Views views{};
  Kernel combine = Kernel::add;  ///< what a reduction does: Kernel::add or Kernel::maximum
  std::vector<std::uint64_t> shards{};  ///< rows of each rank's shard, when they are not cut evenly
};

/// The operations after which a member has its result; all of them must be waited for. Messages that the
/// member passes on to others and frees of its landing buffers may still be under way.
using Completion = std::vector<OpId>;

/// Lowers one member's part of a collective into `builder`. `after` are the operations that make the member's
/// input and the buffer of its result. Every member of the group calls this with the same arguments but its
/// rank, and in the same order relative to other collectives of the step, so that channels agree. A group of
/// one costs nothing and returns `after`.
///
/// The vector is cut into `size` shards, shard r belongs to rank r; a piece is the same part of each shard, one of
/// `chunks`, and piece i+1 starts when piece i is complete at this member. Rows (or bytes, and elements) are cut
/// evenly, first ones larger by one; shards of zero bytes are not sent.
///
/// Receives of complete values go into the result and are posted after `after`. A partial sum is received
/// into a landing buffer (communication_buffers) that is allocated before its receive and freed after its
/// reduction; a member holds at most two for each neighbour that it receives from. Messages to one neighbour
/// leave one after the other.
///
/// ring: one-way on the Hamiltonian cycle of the shape (2-hop closures as topology/shapes.h says).
/// line: bidirectional chain in snake order of the shape; partial sums flow inward to the owner of their
/// shard, complete
///   shards outward, passed on as they arrive.
/// rows_cols: reduces within columns, then within rows; gathers within rows, then within columns; each as a
/// line. In this
///   order the shards that a row exchanges with another are those of its own members.
/// tree: binary tree over the snake order, rooted at its middle. Sums the whole vector towards the root.
/// reduce_scatter then
///   hands each subtree its shards, all_reduce the whole vector; all_gather collects shards at the root and
///   hands each subtree what it lacks. Shards with consecutive ranks share a message.
/// halving_doubling: recursive halving over the row-major order, nearest members first; gathers by doubling. Of n members
/// n - 2^k stand aside: a neighbour adds their vector to its own and hands them their result.
/// direct: every member's own message to every other one, all at once; a landing buffer for each other member.
/// multicast: as direct, but a gathered shard crosses each link once: along its owner's row, and from there up and
/// down each column, members pass it on as it arrives, the shards with the shorter way first.
/// router_multicast: as direct, but the owner of a gathered shard sends one message, which the routers copy.
/// all_reduce by all but tree is reduce_scatter followed by all_gather.
///
/// Throws InternalError for `automatic` or positions that do not fit the shape, PlanError when chunks * size
/// > 65535.
Completion all_gather(StepBuilder& builder, const Group& group, Collective algorithm,
                      const CollectiveVector& vector, const std::vector<OpId>& after, int chunks = 1);
Completion reduce_scatter(StepBuilder& builder, const Group& group, Collective algorithm,
                          const CollectiveVector& vector, const std::vector<OpId>& after, int chunks = 1);
Completion all_reduce(StepBuilder& builder, const Group& group, Collective algorithm,
                      const CollectiveVector& vector, const std::vector<OpId>& after, int chunks = 1);

/// The channels that a collective of `size` members takes from the step.
std::uint32_t channels_of(int size, int chunks);

enum class CollectiveKind { all_gather, reduce_scatter, all_reduce };

/// Whether `direct` stands for `multicast`: with balanced routes.
bool merges_multicast(const models::HardwareModel& hardware);

/// The algorithm that `automatic` stands for: the cheapest on the group's shape by an estimate of its
/// critical path, message by message (models::message_latency) plus reductions of 2-byte elements, with
/// neighbours in the shape one hop apart; the first of ring, line, rows_cols, tree, halving_doubling among equals; the
/// last is a candidate for groups of 2^k. A given algorithm is returned unchanged, but for `direct` where messages
/// with the same content are merged.
Collective choose_algorithm(Collective wanted, CollectiveKind kind, const Group& group, Bytes bytes,
                            const models::HardwareModel& hardware);

}  // namespace wafersim::workloads
