#pragma once

#include <vector>

#include "workloads/collectives.h"
#include "workloads/plan.h"

namespace wafersim::workloads {

/// One transfer of a block along a tensor stream. Members are numbered along the line.
struct StreamTransfer {
  int round = 0;  ///< 0 .. members - 2; the block is there for use in the round after
  int owner = 0;  ///< whose block
  int from = 0;
  int to = 0;
  bool passing = false;  ///< `to` only passes it on, in the same round
  bool starts = true;    ///< `from` has it for its own use: it is not passed on
  bool operator==(const StreamTransfer&) const = default;
};

/// Which blocks go where when every member's block visits every other, ascending by round.
///  * flood: block j goes from the member at distance r to the one at r + 1, in both directions: N (N - 1)
///    transfers of one hop.
///  * wrapped_ring: member i sends to i + 1 what it got in the round before, the last one to the first, across the
///    whole line.
///  * interleaved_ring: the same on the ring 0, 2, 4, ..., 5, 3, 1, whose neighbours are at most two places apart.
/// With store_and_forward a transfer between members that are not neighbours is cut into hops.
std::vector<StreamTransfer> stream_transfers(StreamVariant variant, StreamRelay relay, int members);

/// The owners of the blocks in the order in which a member uses them: its own, then in order of arrival, those of
/// equal rounds from the lower side first.
std::vector<int> stream_order(StreamVariant variant, int members, int member);

/// How a group streams: its members along a line.
struct StreamLine {
  Group group;
  StreamVariant variant = StreamVariant::flood;
  StreamRelay relay = StreamRelay::cut_through;
  /// The group's member at a place of the line, and the place of the member itself.
  std::vector<int> members;
  int place = 0;
  int size() const { return group.size; }
};
/// The group in snake order of its shape.
StreamLine stream_line(const Group& group, const StreamSpec& spec);
/// The group as a one-way ring on the Hamiltonian cycle of its shape (topology/shapes.h names the closures where there
/// is none).
StreamLine stream_ring(const Group& group);

}  // namespace wafersim::workloads
