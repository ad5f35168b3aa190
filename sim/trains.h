#pragma once

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
struct TrainAccesses {
  const TrainTimes* times = nullptr;
  std::size_t stage = 0;
  std::uint64_t done = 0;  ///< packets
  Cycle next_at = 0;
  void start(const TrainTimes& of, std::size_t at_stage) { *this = {&of, at_stage, 0, of.at(0, at_stage).at}; }
  Bytes take() {
    const Bytes bytes = times->bytes(done++);
    next_at = done == times->packets() ? kNever : times->at(done, stage).at;
    return bytes;
  }
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
/// do is known ahead. The NIC and the outputs on the way are held; whoever wants one of them settles the train first: what it has
/// done by then is put where its packets would have left it, the packets under way go on as such. So results are those of packets to
/// the cycle, and a message that meets nobody costs as much as one packet.
struct Train {
  std::uint32_t message = kNil;
  std::uint32_t number = kNil;
  Nic* sender = nullptr;
  unsigned lane = 0;
  std::vector<TrainStage> stages;   ///< the injection port, then an output of each router on the way
  std::vector<TrainPlace> places;   ///< of the routers: by stage, from the second on
  TrainTimes times;
  Sram* source_memory = nullptr;    ///< null where accesses do not count
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
  /// All of them, between two cycles.
  void settle_all(Cycle cycle);
  /// Of the room behind the port of a stage: what packets took before `cycle`, and what those that went on have given back.
  void settle_credits(const Train& train, std::size_t stage, CreditCounter& credits, Cycle cycle) const;
  /// What a train that holds an output of a router has added to its load before `end`.
  LinkLoad load_before(std::uint32_t number, const RouterEngine& router, unsigned output, Cycle end) const;

 private:
  bool find_way(Train& train, const TrainStage& lane, RouterEngine* first, unsigned input) const;
  void place_packets(const Train& train, Cycle cycle);

  NetworkContext& network_;
  std::vector<std::unique_ptr<Train>> trains_;
  std::vector<std::uint32_t> free_;
};

}  // namespace wafersim::sim
