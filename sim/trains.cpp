#include "sim/trains.h"

#include <algorithm>

#include "sim/components.h"
#include "sim/nic.h"
#include "sim/path_recorder.h"
#include "sim/router_engine.h"
#include "sim/sram.h"

namespace wafersim::sim {

Cycle Train::queued(std::uint64_t granted, std::size_t stage) const {
  return times.sum(granted, [&](std::uint64_t packet) { return times.at(packet, stage).queued(); });
}

Cycle Train::busy(std::uint64_t granted, std::size_t stage) const {
  return times.sum(granted, [&](std::uint64_t packet) {
    const TrainGrant grant = times.at(packet, stage);
    const Cycle held_until = packet == 0 ? stages[stage].clock.held_until() : times.at(packet - 1, stage).tail.ceil();
    const Cycle gone_at = grant.tail.ceil();
    return gone_at - std::min(gone_at, std::max(grant.at, held_until));
  });
}

bool Trains::find_way(Train& train, const TrainStage& lane, RouterEngine* first, unsigned input) const {
  train.stages.assign(1, lane);
  train.places.clear();
  const Message& message = network_.messages[train.message];
  Packet probe;
  probe.destination = message.destination;
  probe.vc = message.vc;
  probe.input = static_cast<std::uint8_t>(input);
  Cycle before = network_.hardware.injection_cycles + network_.router_cycles;
  for (RouterEngine* router = first; router != nullptr;) {
    TrainStage& stage = train.stages.emplace_back();
    TrainPlace& place = train.places.emplace_back();
    if (!router->offer(probe, stage, place)) return false;
    stage.before = before + place.turn;
    before = place.link_cycles + network_.router_cycles;
    router = place.next;
  }
  const Bytes packet = network_.hardware.packet_bytes;
  const std::uint64_t packets = ceil_div(message.bytes, packet);
  return train.times.compute(train.stages, packets, packet, message.bytes - (packets - 1) * packet, network_.calendar.current());
}

Train* Trains::form(std::uint32_t message, const TrainStage& lane, RouterEngine* first, unsigned input) {
  const Message& sent = network_.messages[message];
  if (network_.components != nullptr && !network_.components->may_form_train(sent.source, sent.destination)) return nullptr;
  if (free_.empty()) {
    free_.push_back(static_cast<std::uint32_t>(trains_.size()));
    trains_.push_back(std::make_unique<Train>());
  }
  Train& train = *trains_[free_.back()];
  train.message = message;
  if (!find_way(train, lane, first, input)) return nullptr;
  train.number = free_.back();
  free_.pop_back();
  for (const TrainPlace& place : train.places) place.router->hold(place.output, train.number);
  return &train;
}

void Trains::settle(std::uint32_t number, Cycle cycle) {
  Train& train = *trains_[number];
  if (network_.path != nullptr) [[unlikely]] network_.path->settled(train, cycle);
  train.sender->settle(train, cycle);
  for (std::size_t stage = 1; stage < train.stages.size(); ++stage) train.place(stage).router->settle(train, stage, cycle);
  const std::size_t last = train.stages.size() - 1;
  const std::uint64_t ejected = train.times.granted_before(last, cycle);
  Message& message = network_.messages[train.message];
  message.train = kNil;
  ++done_.messages;
  done_.packets += ejected;
  if (ejected != 0) {
    message.bytes_to_eject -= train.times.bytes_of(ejected);
    train.receiver->count_ejected(train.times.bytes_of(ejected));
    message.last_tail = train.times.at(ejected - 1, last).tail.ceil() + network_.hardware.ejection_cycles;
    for (std::size_t stage = 1; stage <= last; ++stage) message.queued += train.queued(ejected, stage);
  }
  train.source_memory->end(train.reads, cycle);
  train.destination_memory->end(train.writes, cycle);
  place_packets(train, cycle);
  train.number = kNil;
  free_.push_back(number);
}

void Trains::settle_credits(const Train& train, std::size_t stage, CreditCounter& credits, Cycle cycle) const {
  const std::uint64_t granted = train.times.granted_before(stage, cycle), passed = train.times.granted_before(stage + 1, cycle);
  std::uint64_t returned = passed;
  while (returned != 0 && train.credit_at(returned - 1, stage) >= cycle) --returned;
  credits.take(train.times.bytes_of(granted) - train.times.bytes_of(returned));
  for (; returned != passed; ++returned) {
    credits.give(train.times.bytes(returned), train.credit_at(returned, stage), cycle - 1, network_.credits);
  }
}

/// Those that have been injected and not ejected, the first one first.
void Trains::place_packets(const Train& train, Cycle cycle) {
  const std::size_t last = train.stages.size() - 1;
  const std::uint64_t injected = train.times.granted_before(0, cycle);
  std::size_t stage = last;  // that it waits for
  for (std::uint64_t number = train.times.granted_before(last, cycle); number < injected; ++number) {
    while (stage > 1 && train.times.at(number, stage - 1).at >= cycle) --stage;
    const std::uint32_t index = network_.packets.take();
    Packet& packet = network_.packets[index];
    const Message& message = network_.messages[train.message];
    packet.message = train.message;
    packet.destination = message.destination;
    packet.axis = message.axis;
    packet.vc = packet.output_vc = message.vc;
    packet.bytes = static_cast<std::uint32_t>(train.times.bytes(number));
    for (std::size_t passed = 1; passed < stage; ++passed) packet.queued += train.times.at(number, passed).queued();
    train.place(stage).router->take_over(train, number, stage, index, cycle);
  }
}

LinkLoad Trains::load_before(std::uint32_t number, const RouterEngine& router, unsigned output, Cycle end) const {
  const Train& train = *trains_[number];
  std::size_t stage = 1;
  while (train.place(stage).router != &router || train.place(stage).output != output) ++stage;
  const std::uint64_t granted = train.times.granted_before(stage, end);
  if (granted == 0) return {};
  const Cycle held_until = train.times.at(granted - 1, stage).tail.ceil();
  const Cycle busy = train.busy(granted, stage), ahead = std::max(held_until, end) - end;
  return {busy - std::min(ahead, busy), train.queued(granted, stage)};
}

void Trains::settle_all(Cycle cycle) {
  network_.calendar.between_cycles([&] { settle_from([](TileId) { return true; }, cycle); });
}

TileId Trains::source_of(const Train& train) const { return network_.messages[train.message].source; }

}  // namespace wafersim::sim
