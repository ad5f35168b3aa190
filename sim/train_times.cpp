#include "sim/train_times.h"

#include <algorithm>
#include <utility>

namespace wafersim::sim {

bool TrainTimes::compute(const std::vector<TrainStage>& stages, std::uint64_t packets, Bytes bytes, Bytes last_bytes, Cycle now) {
  stages_ = stages.size();
  packets_ = packets;
  bytes_ = bytes;
  last_bytes_ = last_bytes;
  short_last_ = last_bytes != bytes;
  known_.clear();
  rooms_.assign(stages_, {});
  std::uint64_t most_under_way = 0;
  for (std::size_t s = 0; s < stages_; ++s) {
    rooms_[s] = {stages[s].room, stages[s].returning, 0};
    if (stages[s].credited) {
      most_under_way = std::max(most_under_way, (stages[s].room + stages[s].returning) / bytes);
    }
  }
  // What a packet does depends on the one ahead and on those whose room it takes over. Once so many have done alike, all do.
  const std::uint64_t enough = most_under_way + 2;
  const std::uint64_t whole = packets - (short_last_ ? 1 : 0);
  regular_from_ = whole;
  period_ = 0;
  std::uint64_t alike = 0;
  for (std::uint64_t packet = 0; packet < whole; ++packet) {
    if (packet == kMostKept || !add(stages, packet, now)) return false;
    if (packet == 0) continue;
    const Cycle apart = at(packet, 0).at - at(packet - 1, 0).at;
    alike = apart == period_ && repeats(packet) ? alike + 1 : 0;
    period_ = apart;
    const bool settled = std::all_of(rooms_.begin(), rooms_.end(), [](const Room& room) { return room.returning == 0; });
    if (alike < enough || !settled || packet + 1 == whole) continue;
    regular_from_ = packet + 1;
    for (Room& room : rooms_) room.returned += whole - regular_from_;
    break;
  }
  return !short_last_ || add(stages, packets - 1, now);
}

/// Whether a packet does at all ports what the one ahead did, `period_` later.
bool TrainTimes::repeats(std::uint64_t packet) const {
  const TrainGrant* const own = &known_[packet * stages_];
  const TrainGrant* const ahead = own - stages_;
  for (std::size_t s = 0; s < stages_; ++s) {
    const TrainGrant moved = ahead[s].after(period_);
    if (moved.at != own[s].at || moved.tail != own[s].tail || (s != 0 && moved.bid_at != own[s].bid_at)) return false;
  }
  return true;
}

/// The next packet. It is injected as soon as the one ahead is, the first at `start`.
bool TrainTimes::add(const std::vector<TrainStage>& stages, std::uint64_t packet, Cycle start) {
  const Bytes bytes = this->bytes(packet);
  const bool first = packet == 0;
  TrainGrant before{0, first ? start : 0, {}};
  for (std::size_t s = 0; s < stages_; ++s) {
    const TrainStage& stage = stages[s];
    const TrainGrant ahead = first ? TrainGrant{} : at(packet - 1, s);
    PortClock clock = first ? stage.clock : PortClock(ahead.tail);
    TrainGrant grant;
    grant.bid_at = std::max(first ? stage.vc_free_at : ahead.free_at(), before.at + stage.before);
    grant.at = std::max(grant.bid_at, clock.free_at());
    if (stage.credited) {
      Room& room = rooms_[s];
      if (room.returning != 0 && stage.returned_at <= grant.at) room.left += std::exchange(room.returning, 0);
      while (room.left < bytes) {
        if (room.returned == packet) return false;
        const Cycle back = at(room.returned, s + 1).tail.ceil() + stage.credit_cycles;
        if (back > grant.at) {
          if (room.returning != 0) return false;
          grant.at = back;
        }
        room.left += this->bytes(room.returned++);
      }
      room.left -= bytes;
    }
    grant.tail = clock.occupy(grant.at, bytes, s == 0 ? ExactTime{} : before.tail.after(stage.before), *stage.rate);
    known_.push_back(grant);
    before = grant;
  }
  return true;
}

std::uint64_t TrainTimes::granted_before(std::size_t stage, Cycle cycle) const {
  if (at(packets_ - 1, stage).at < cycle) return packets_;
  const Cycle last_alone = at(regular_from_ - 1, stage).at;
  if (last_alone < cycle) {
    const std::uint64_t regular = packets_ - regular_from_ - (short_last_ ? 1 : 0);
    return regular == 0 ? regular_from_ : regular_from_ + std::min(regular, (cycle - last_alone - 1) / period_);
  }
  std::uint64_t count = regular_from_ - 1;
  while (count != 0 && at(count - 1, stage).at >= cycle) --count;
  return count;
}

}  // namespace wafersim::sim
