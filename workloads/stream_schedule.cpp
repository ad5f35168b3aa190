#include "workloads/stream_schedule.h"

#include <algorithm>

#include "topology/shapes.h"
#include "workloads/collectives/algorithms.h"

namespace wafersim::workloads {

namespace {

std::vector<StreamTransfer> flood(int members) {
  std::vector<StreamTransfer> transfers;
  for (int round = 0; round + 1 < members; ++round) {
    for (int owner = 0; owner < members; ++owner) {
      if (owner + round + 1 < members) transfers.push_back({round, owner, owner + round, owner + round + 1});
      if (owner - round - 1 >= 0) transfers.push_back({round, owner, owner - round, owner - round - 1});
    }
  }
  return transfers;
}

/// Members in the order in which a ring visits them.
std::vector<int> ring_order(StreamVariant variant, int members) {
  std::vector<int> order;
  const int stride = variant == StreamVariant::interleaved_ring ? 2 : 1;
  for (int member = 0; member < members; member += stride) order.push_back(member);
  if (stride == 2) {
    for (int member = members % 2 == 0 ? members - 1 : members - 2; member > 0; member -= 2) order.push_back(member);
  }
  return order;
}

void add_hops(std::vector<StreamTransfer>& transfers, const StreamTransfer& whole) {
  const int step = whole.to > whole.from ? 1 : -1;
  for (int at = whole.from; at != whole.to; at += step) {
    transfers.push_back({whole.round, whole.owner, at, at + step, at + step != whole.to, at == whole.from});
  }
}

std::vector<StreamTransfer> ring(StreamVariant variant, StreamRelay relay, int members) {
  const std::vector<int> order = ring_order(variant, members);
  std::vector<StreamTransfer> transfers;
  for (int round = 0; round + 1 < members; ++round) {
    for (int place = 0; place < members; ++place) {
      const auto at = [&](int index) { return order[static_cast<std::size_t>((index + members) % members)]; };
      const StreamTransfer whole{round, at(place - round), at(place), at(place + 1)};
      if (relay == StreamRelay::store_and_forward) {
        add_hops(transfers, whole);
      } else {
        transfers.push_back(whole);
      }
    }
  }
  return transfers;
}

}  // namespace

std::vector<StreamTransfer> stream_transfers(StreamVariant variant, StreamRelay relay, int members) {
  return variant == StreamVariant::flood ? flood(members) : ring(variant, relay, members);
}

std::vector<int> stream_order(StreamVariant variant, int members, int member) {
  std::vector<int> order{member};
  for (const StreamTransfer& transfer : stream_transfers(variant, StreamRelay::cut_through, members)) {
    if (transfer.to == member) order.push_back(transfer.owner);
  }
  return order;
}

StreamLine stream_line(const Group& group, const StreamSpec& spec) {
  StreamLine line{group, spec.variant, spec.relay, collectives::ranks_along(group, topology::snake(group.shape)), 0};
  line.place = collectives::index_of(line.members, group.rank);
  return line;
}

StreamLine stream_ring(const Group& group) {
  StreamLine ring{group, StreamVariant::wrapped_ring, StreamRelay::cut_through,
                  collectives::ranks_along(group, topology::hamiltonian_cycle(group.shape, group.closed).positions), 0};
  ring.place = collectives::index_of(ring.members, group.rank);
  return ring;
}

}  // namespace wafersim::workloads
