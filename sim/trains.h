#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "sim/interfaces.h"
#include "sim/load_windows.h"
#include "sim/train_times.h"

namespace wafersim::sim {

class Nic;
class RouterEngine;
class Sram;
class CreditCounter;
struct NetworkContext;

/// One of the two ends of a train at an SRAM: its packets are read or written there when they are granted a port.
class TrainAccesses {
 public:
  /// A packet takes `cost` cycles of the SRAM's port, the last one `last_cost`.
  void start(const TrainTimes& times, std::size_t stage, Cycle cost, Cycle last_cost) {
    times_ = &times;
    stage_ = stage;
    done_ = 0;
    cost_ = cost;
    last_cost_ = last_cost;
    next_at_ = times.at(0, stage).at;
  }
  /// When the next one is; kNever behind the last.
  Cycle next_at() const { return next_at_; }
  Cycle cost() const { return cost_; }
  /// Whether those to come are at least period() apart, the last one perhaps excepted.
  bool regular() const { return done_ >= times_->regular_from(); }
  Cycle period() const { return times_->period(); }
  /// Takes the next one, or all before `cycle` but the last: what they cost.
  Cycle take() { return advance(done_ + 1); }
  Cycle take_before(Cycle cycle) {
    return advance(std::clamp(times_->granted_before(stage_, cycle), done_, times_->packets() - 1));
  }

 private:
  Cycle advance(std::uint64_t done) {
    const bool last = done == times_->packets();
    const Cycle total = (done - done_ - (last ? 1 : 0)) * cost_ + (last ? last_cost_ : 0);
    done_ = done;
    next_at_ = last ? kNever : times_->at(done, stage_).at;
    return total;
  }

  const TrainTimes* times_ = nullptr;
  std::size_t stage_ = 0;
  std::uint64_t done_ = 0;  ///< packets
  Cycle cost_ = 0;
  Cycle last_cost_ = 0;
  Cycle next_at_ = 0;
};

/// Where a train passes a router.
struct TrainPlace {
  RouterEngine* router = nullptr;
  RouterEngine* next = nullptr;   ///< behind the output; null where the way ends
  std::uint32_t input_vc = 0;
  std::uint8_t input = 0;
  std::uint8_t output = 0;
  std::uint8_t first_bit = 0;     ///< of the output's arbiter, as the train found it
  Cycle turn = 0;                 ///< what the pipeline is longer by
  Cycle link_cycles = 0;          ///< of the link behind the output
};

/// All packets of a message that found its whole way free: they pass it one behind the other, nobody else looks, and what they
/// do is known ahead. The NIC and the outputs on the way are held; whoever wants one of them settles the train first: what it
/// has done by then is put where its packets would have left it, the packets under way go on as such. So results are those of
/// packets to the cycle, and a message that meets nobody costs as much as one packet.
struct Train {
  std::uint32_t message = kNil;
  std::uint32_t number = kNil;
  Nic* sender = nullptr;
  Nic* receiver = nullptr;
  unsigned lane = 0;
  std::vector<TrainStage> stages;   ///< the injection port, then an output of each router on the way
  std::vector<TrainPlace> places;   ///< of the routers: by stage, from the second on
  TrainTimes times;
  Sram* source_memory = nullptr;
  Sram* destination_memory = nullptr;
  TrainAccesses reads, writes;

  const TrainPlace& place(std::size_t stage) const { return places[stage - 1]; }
  /// Sums over the first `granted` packets: from their first bids to their grants, and how long they held the port.
  Cycle queued(std::uint64_t granted, std::size_t stage) const;
  Cycle busy(std::uint64_t granted, std::size_t stage) const;
  /// When room that a packet left behind the port of a stage is known there again.
  Cycle credit_at(std::uint64_t packet, std::size_t stage) const {
    return times.at(packet, stage + 1).tail.ceil() + stages[stage].credit_cycles;
  }
};

/// Trains under way, of a whole network. See docs/folding.md.
class Trains {
 public:
  /// Shorter messages gain nothing.
  static constexpr std::uint64_t kLeastPackets = 3;
  /// Round-robin position of an output that is held; `uncredited` then is the train's number.
  static constexpr std::uint8_t kHeld = 255;

  explicit Trains(NetworkContext& network) : network_(network) {}

  /// A train for a message, by way of `first` from its input `input` on, whose first packet is injected in this cycle; null
  /// where something is on the way. `lane` is the injection port. The outputs are held.
  Train* form(std::uint32_t message, const TrainStage& lane, RouterEngine* first, unsigned input);
  /// Ends a train: what it did before `cycle`, this cycle or the next, has been done.
  void settle(std::uint32_t number, Cycle cycle);
  /// One that is under way.
  const Train& operator[](std::uint32_t number) const { return *trains_[number]; }
  /// All of them, between two cycles; those that `chosen(TileId source)` is true of.
  void settle_all(Cycle cycle);
  template <class Chosen>
  void settle_from(Chosen chosen, Cycle cycle) {
    for (std::size_t i = 0; i < trains_.size(); ++i) {
      if (trains_[i]->number != kNil && chosen(source_of(*trains_[i]))) settle(trains_[i]->number, cycle);
    }
  }
  /// Of the room behind the port of a stage: what packets took before `cycle`, and what those that went on have given back.
  void settle_credits(const Train& train, std::size_t stage, CreditCounter& credits, Cycle cycle) const;
  const TrainMeasurement& measurement() const { return done_; }
  /// What a train that holds an output of a router has added to its load before `end`.
  LinkLoad load_before(std::uint32_t number, const RouterEngine& router, unsigned output, Cycle end) const;

 private:
  bool find_way(Train& train, const TrainStage& lane, RouterEngine* first, unsigned input) const;
  void place_packets(const Train& train, Cycle cycle);
  TileId source_of(const Train& train) const;

  NetworkContext& network_;
  std::vector<std::unique_ptr<Train>> trains_;
  std::vector<std::uint32_t> free_;
  TrainMeasurement done_;
};

}  // namespace wafersim::sim
