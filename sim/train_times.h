#pragma once

#include <cstdint>
#include <vector>

#include "sim/credits.h"
#include "sim/port_clock.h"

namespace wafersim::sim {

/// A port that the packets of a train go through one after the other, as the first of them finds it: nobody else wants it.
struct TrainStage {
  const PortRate* rate = nullptr;
  Cycle before = 0;         ///< from a grant at the port ahead until the packet may bid here
  Cycle credit_cycles = 0;  ///< until the room that a packet leaves behind this port is known here
  PortClock clock;
  Cycle vc_free_at = 0;     ///< the packet ahead has left the VC in which packets wait for this port
  bool credited = false;    ///< whether packets need room behind it
  Bytes room = 0;           ///< there
  Bytes returning = 0;      ///< room known to be back at `returned_at` at the latest
  Cycle returned_at = 0;
  void see(const CreditCounter::Outlook& outlook) {
    credited = true;
    room = outlook.room;
    returning = outlook.returning;
    returned_at = outlook.returned_at;
  }
};

/// What one packet of a train does at one port.
struct TrainGrant {
  Cycle bid_at = 0;
  Cycle at = 0;
  ExactTime tail;  ///< leaves
  /// The next packet may take the port and the VC in front of it.
  Cycle free_at() const { return tail.floor() > at + 1 ? tail.floor() : at + 1; }
  Cycle queued() const { return at - bid_at; }
  TrainGrant after(Cycle cycles) const { return {bid_at + cycles, at + cycles, tail.after(cycles)}; }
};

/// When the packets of a message pass the ports of their way where nothing else does: the rules of RouterEngine and Nic, packet by
/// packet until each does what the one ahead did, a fixed time later; from there on in closed form.
class TrainTimes {
 public:
  /// Packets whose times are kept one by one: where they never repeat each other, a longer message is no train.
  static constexpr std::uint64_t kMostKept = 4096;

  /// `packets` of `bytes`, the last of `last_bytes`. The first is injected (the first stage) at `now`. False when the packets
  /// would have to wait for room that others hold: their times are not known here; and when too many would have to be kept.
  bool compute(const std::vector<TrainStage>& stages, std::uint64_t packets, Bytes bytes, Bytes last_bytes, Cycle now);

  std::uint64_t packets() const { return packets_; }
  TrainGrant at(std::uint64_t packet, std::size_t stage) const {
    if (packet < regular_from_) return known_[packet * stages_ + stage];
    if (packet + 1 == packets_ && short_last_) return known_[regular_from_ * stages_ + stage];
    return known_[(regular_from_ - 1) * stages_ + stage].after((packet - regular_from_ + 1) * period_);
  }
  Bytes bytes(std::uint64_t packet) const { return packet + 1 == packets_ ? last_bytes_ : bytes_; }
  /// Of the first `count` packets.
  Bytes bytes_of(std::uint64_t count) const {
    return count == packets_ ? (count - 1) * bytes_ + last_bytes_ : count * bytes_;
  }
  /// Packets from this one on, all but a shorter last one, follow the one ahead by period().
  std::uint64_t regular_from() const { return regular_from_; }
  Cycle period() const { return period_; }
  /// How many are granted a port in a cycle before `cycle`.
  std::uint64_t granted_before(std::size_t stage, Cycle cycle) const;

  /// Sum over the first `count` packets of what `measure(packet)` says of each, which is the same for those that do the same.
  template <class Measure>
  Cycle sum(std::uint64_t count, const Measure& measure) const {
    Cycle total = 0;
    const std::uint64_t alone = count < regular_from_ ? count : regular_from_;
    for (std::uint64_t packet = 0; packet < alone; ++packet) total += measure(packet);
    if (count <= regular_from_) return total;
    const bool with_short = count == packets_ && short_last_;
    const std::uint64_t regular = count - regular_from_ - (with_short ? 1 : 0);
    if (regular != 0) total += regular * measure(regular_from_);
    if (with_short) total += measure(packets_ - 1);
    return total;
  }

 private:
  bool add(const std::vector<TrainStage>& stages, std::uint64_t packet, Cycle start);
  bool repeats(std::uint64_t packet) const;

  /// Room behind a port.
  struct Room {
    Bytes left = 0;
    Bytes returning = 0;         ///< not there yet
    std::uint64_t returned = 0;  ///< packets of the train whose room is counted in `left`
  };

  std::vector<TrainGrant> known_;  ///< packet by packet; behind them the last one where it is shorter
  std::vector<Room> rooms_;        ///< by stage
  std::size_t stages_ = 0;
  std::uint64_t packets_ = 0;
  std::uint64_t regular_from_ = 0;  ///< this packet and those behind it do what the one ahead did, `period_` later
  Cycle period_ = 0;
  Bytes bytes_ = 0;
  Bytes last_bytes_ = 0;
  bool short_last_ = false;
};

}  // namespace wafersim::sim
