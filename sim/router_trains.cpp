// What trains (sim/trains.h) want of a router.
#include <algorithm>

#include "sim/path_recorder.h"
#include "sim/router_engine.h"
#include "sim/trains.h"

namespace wafersim::sim {

/// The output that packets like `packet` take from here, and what they find there; moves `packet` to the input of the router
/// behind it. False where others are on the way.
bool RouterEngine::offer(Packet& packet, TrainStage& stage, TrainPlace& place) {
  const Cycle now = network_.calendar.current();
  const unsigned port = port_of(network_.routes.next(tile_, packet.destination), packet);
  packet.output = static_cast<std::uint8_t>(port);
  Output& out = outputs_[port];
  const InputVc& in = inputs_[packet.input * vcs_ + packet.vc];
  if (in.head != kNil || out.bidders != 0 || out.uncredited != 0 || out.first_bit == Trains::kHeld) return false;
  const PortTiming& timing = network_.ports[out.timing];
  stage.rate = &timing.rate;
  stage.clock = out.clock;
  stage.vc_free_at = in.free_at;
  place.router = this;
  place.input = packet.input;
  place.output = packet.output;
  place.input_vc = packet.input * vcs_ + packet.vc;
  place.first_bit = out.first_bit;
  place.turn = known_turn(packet);
  if (port >= mesh_ports_) return true;
  if (upstream_router_[port] == nullptr) return false;
  place.next = upstream_router_[port];  // links lead both ways
  place.link_cycles = timing.link_cycles;
  stage.credit_cycles = timing.credit_cycles;
  stage.see(outputs_.credit(out, packet.vc).outlook(now, network_.credits));
  packet.input = static_cast<std::uint8_t>(opposite_port(port));
  return true;
}

void RouterEngine::hold(unsigned port, std::uint32_t train) {
  outputs_[port].first_bit = Trains::kHeld;
  outputs_[port].uncredited = train;
}

std::uint32_t RouterEngine::holder(topology::Direction direction) const {
  const Output& out = outputs_[static_cast<unsigned>(direction)];
  return out.first_bit == Trains::kHeld ? out.uncredited : kNil;
}

[[gnu::noinline]] void RouterEngine::settle_holder(const Output& out) {
  network_.trains->settle(out.uncredited, network_.calendar.current());
}

/// What the packets that were granted the output before `cycle` have left behind.
void RouterEngine::settle(const Train& train, std::size_t stage, Cycle cycle) {
  const TrainPlace& place = train.place(stage);
  const TrainTimes& times = train.times;
  Output& out = outputs_[place.output];
  const std::uint64_t granted = times.granted_before(stage, cycle);
  out.first_bit = place.first_bit;
  out.uncredited = 0;
  if (granted == 0) return;
  const TrainGrant last = times.at(granted - 1, stage);
  const Message& message = network_.messages[train.message];
  out.clock = PortClock(last.tail);
  out.first_bit = static_cast<std::uint8_t>(bid_bit(place.input, message.vc) + 1);
  inputs_[place.input_vc].free_at = last.free_at();
  if (place.next == nullptr) return;

  PortStatistics& statistics = statistics_[place.output];
  statistics.packets += granted;
  statistics.bytes_by_axis[static_cast<std::size_t>(message.axis)] += times.bytes_of(granted);
  statistics.queued += train.queued(granted, stage);
  statistics.busy += train.busy(granted, stage);

  const std::uint64_t passed = times.granted_before(stage + 1, cycle);
  out.uncredited = static_cast<std::uint32_t>(granted - passed);
  if (passed != 0) out.credits_full_at = std::max(out.credits_full_at, train.credit_at(passed - 1, stage));
  network_.trains->settle_credits(train, stage, outputs_.credit(out, message.vc), cycle);
}

/// A packet of a train that waits for the output of `stage` here or is on its way to it.
void RouterEngine::take_over(const Train& train, std::uint64_t number, std::size_t stage, std::uint32_t index, Cycle cycle) {
  const TrainPlace& place = train.place(stage);
  const TrainGrant ahead = train.times.at(number, stage - 1);
  const TrainGrant grant = train.times.at(number, stage);
  Packet& packet = network_.packets[index];
  packet.input = place.input;
  packet.output = place.output;
  packet.tail = ahead.tail.after(train.stages[stage].before);
  const Cycle ready = ahead.at + train.stages[stage].before, arrives = ready - place.turn;
  if (network_.path != nullptr) [[unlikely]] network_.path->placed(train, number, stage, index, arrives < cycle);
  if (arrives >= cycle) {
    const unsigned kind = kArrive + std::min<unsigned>(packet.input, kArrivalKinds - 1);
    return network_.calendar.post(*this, arrives, kind, index);
  }
  packet.bid_at = ready;
  InputVc& in = inputs_[place.input_vc];
  if (in.head != kNil) {
    network_.packets[in.tail].next = index;
    in.tail = index;
    return;
  }
  in.head = in.tail = index;
  if (grant.bid_at >= cycle) return network_.calendar.post(*this, grant.bid_at, kHeadFree, place.input_vc);
  // It has been bidding. The arbiter was in its first position then if the credits of those ahead were back.
  packet.bid_at = grant.bid_at;
  Output& out = outputs_[place.output];
  const bool credited = number == 0 || place.next == nullptr || train.times.at(number - 1, stage + 1).at < grant.bid_at;
  if (credited && out.credits_full_at < grant.bid_at) out.first_bit = 0;
  out.bidders |= std::uint64_t{1} << bid_bit(packet.input, packet.vc);
  wake(place.output, out, std::max(out.clock.free_at(), cycle));
}

}  // namespace wafersim::sim
