#include "sim/nic.h"

#include <algorithm>
#include <bit>
#include <fmt/format.h>

#include "base/error.h"
#include "base/random.h"
#include "sim/components.h"
#include "sim/fleet.h"
#include "sim/path_recorder.h"
#include "sim/router.h"
#include "sim/sram.h"
#include "sim/trains.h"

namespace wafersim::sim {

namespace {

/// The VC of a class that all packets of a flow (source, destination, axis) keep in it. Replicas of a plan use theirs alike: the ends count by
/// their positions in their replicas and by how far apart these are.
std::uint8_t flow_vc(const NetworkContext& network, TileId source, TileId destination, workloads::Axis axis,
                     const topology::VcRange& vcs) {
  std::uint64_t from = source, to = destination;
  if (!network.flow_places.empty()) {
    const FlowPlace& first = network.flow_places[source];
    const FlowPlace& last = network.flow_places[destination];
    from = first.position;
    to = last.position ^ std::uint64_t{last.replica - first.replica} << 20;
  }
  const std::uint64_t flow = (from << 32) ^ to ^ (std::uint64_t{static_cast<unsigned>(axis)} << 60);
  return static_cast<std::uint8_t>(vcs.first + mix_bits(flow) % vcs.count);
}

}  // namespace

Nic::Nic(sc_core::sc_module_name name, TileId tile, NetworkContext& network, const std::vector<Nic*>& directory)
    : sc_module(name),
      network_(network),
      directory_(directory),
      tile_(tile),
      first_port_(network.layout.mesh + (network.layout.per_direction() ? 0 : network.mesh.slot(tile))),
      vcs_(static_cast<unsigned>(network.hardware.virtual_channels)),
      common_line_(!network.routes.plain()),
      lanes_(network.arena, network.layout.lanes(), vcs_, network.hardware.vc_buffer_bytes),
      mailbox_(&network.tables) {
  add_to_fleet(network.calendar, *this, Rank::nic);
}

void Nic::end_of_elaboration() {
  other_router_ = router.operator->();
  if (auto* const ours = dynamic_cast<Router*>(other_router_)) router_ = &ours->engine();
  core_ = core.operator->();
  sram_ = sram.operator->();
  memory_ = dynamic_cast<Sram*>(sram_);
  core_lines_ = core_->hot_lines();
  network_.nics[tile_] = hot_lines().start;
  sram_lines_ = sram_->hot_lines();
}

void Nic::post_send(const SendRequest& request) {
  const std::uint32_t index = open_message(request, request.destination);
  ++messages_sent_;
  bytes_sent_ += request.bytes;
  if (network_.hardware.fidelity == models::Fidelity::ideal) {
    deliver_ideal(index);
    core_->send_done(request.token);
  } else {
    launch(index);
  }
}

/// A message under way from this tile.
std::uint32_t Nic::open_message(const SendRequest& request, TileId destination) {
  require_invariant(request.bytes > 0, "a message without bytes was sent");
  if (directory_[destination] == nullptr) {
    throw PlanError(fmt::format("{}: a message of {} B is sent to tile {}, which runs nothing", this->name(), request.bytes,
                                destination));
  }
  const Cycle now = network_.calendar.now();
  const std::uint32_t index = network_.messages.take();
  Message& message = network_.messages[index];
  message.source = tile_;
  message.destination = destination;
  message.tensor = request.tensor;
  message.key = request.key;
  message.send_token = request.token;
  message.bytes = message.bytes_to_inject = message.bytes_to_eject = request.bytes;
  message.posted = now;
  message.sender_wait = request.sender_wait;
  message.sender_stage = request.sender_stage;
  message.axis = request.axis;
  message.number = messages_sent_;
  message.special = message.streamed = request.streamed;
  network_.flights[tile_].begin(now);
  const bool begins_later = network_.components != nullptr && network_.components->opened(tile_, destination);
  if (!begins_later) network_.flights[destination].begin(now);
  if (network_.path != nullptr) [[unlikely]] network_.path->posted(index);
  return index;
}

void Nic::launch(std::uint32_t index) {
  if (network_.hardware.message_overhead == 0) {
    make_ready(index);
  } else {
    prepare(index);
  }
}

/// Messages become ready in the order of posting, also those of one cycle, whose updates come in any order.
void Nic::prepare(std::uint32_t index) {
  if (first_preparing_ == kNil) {
    first_preparing_ = index;
  } else {
    network_.messages[last_preparing_].next = index;
  }
  last_preparing_ = index;
  network_.calendar.post(*this, network_.calendar.now() + network_.hardware.message_overhead, kReady, 0);
}

void Nic::first_prepared() {
  const std::uint32_t index = first_preparing_;
  first_preparing_ = network_.messages[index].next;
  make_ready(index);
}

void Nic::deliver_ideal(std::uint32_t index) {
  Message& message = network_.messages[index];
  const Cycle now = network_.calendar.now();
  message.injected = now;
  if (network_.path != nullptr) [[unlikely]] network_.path->delivered(index);
  network_.calendar.post(*directory_[message.destination], now, kReceived, index);
}

unsigned Nic::lane_for(TileId destination) const {
  if (lanes_.size() == 1) return 0;
  const topology::Hop hop = network_.routes.next(tile_, destination);
  return hop == topology::Hop::local ? network_.layout.self_lane() : static_cast<unsigned>(hop);
}

void Nic::make_ready(std::uint32_t index) {
  Message& message = network_.messages[index];
  if (network_.path != nullptr) [[unlikely]] network_.path->ready(index, network_.calendar.now());
  if (common_line_) {
    send_off(message);
    append(lanes_[0], index);
    pending_lanes_ |= message.ports;
  } else {
    const unsigned lane = lane_of(message);
    message.vc = flow_vc(network_, tile_, message.destination, message.axis, network_.routes.vcs(0));
    if (lanes_[lane].train != kNil) [[unlikely]] network_.trains->settle(lanes_[lane].train, network_.calendar.now());
    append(lanes_[lane], index);
    pending_lanes_ |= 1u << lane;
  }
  network_.calendar.request_evaluation(*this);
}

/// The next packet of a message: how it starts, and by which injection ports it may.
void Nic::send_off(Message& message) const {
  const std::uint64_t packet = (message.bytes - message.bytes_to_inject) / network_.hardware.packet_bytes;
  message.travel = network_.routes.depart(tile_, message.destination, message.number << 32 | packet);
  message.vc = flow_vc(network_, tile_, message.destination, message.axis, network_.routes.vcs(message.travel.vc_class));
  message.ports = 1;
  if (lanes_.size() == 1) return;
  message.ports = network_.layout.lanes_to(
      network_.routes.outputs(message.travel, tile_, topology::Hop::local, message.destination));
  require_invariant(message.ports != 0, "a message has no way to its destination");
}

void Nic::evaluate() {
  std::uint32_t pending = pending_lanes_;
  pending_lanes_ = 0;
  for (; pending != 0; pending &= pending - 1) serve(static_cast<unsigned>(std::countr_zero(pending)));
}

void Nic::append(Lane& line, std::uint32_t index) {
  network_.messages[index].next = kNil;
  if (line.first == kNil) {
    line.first = index;
  } else {
    network_.messages[line.last].next = index;
  }
  line.last = index;
}

void Nic::serve(unsigned lane_index) {
  const Cycle now = network_.calendar.current();
  Lane& lane = lanes_[lane_index];
  const Lane& line = line_of(lane_index);
  if (line.first == kNil || lane.train != kNil) return;
  // One packet a cycle, as every port: packets of one VC reach the router in different cycles, in order.
  if (lane.clock.free_at() > now || lane.last_injection == now) {
    wake(lane_index, std::max(lane.clock.free_at(), now + 1));
    return;
  }
  std::uint32_t before = kNil;
  for (std::uint32_t index = line.first; index != kNil; index = network_.messages[index].next) {
    const Message& message = network_.messages[index];
    const Bytes bytes = std::min(message.bytes_to_inject, largest_packet(message));
    if (may_take(lane_index, message) && (!message.special || may_leave(message, bytes, now)) &&
        lanes_.credit(lane, message.vc).has_room(network_.buffered(bytes), now, network_.credits)) {
      if (may_depart(lane_index, message) && depart(lane_index, index)) return;
      inject(lane_index, index, before);
      if (line.first != kNil) wake(lane_index, std::max(lane.clock.free_at(), now + 1));
      return;
    }
    before = index;
  }
  wait_for_credit(lane_index);
}

/// Sends the next packet of a ready message, which stands behind `before` in its lane.
void Nic::inject(unsigned lane_index, std::uint32_t message_index, std::uint32_t before) {
  const Cycle now = network_.calendar.current();
  const models::HardwareModel& hardware = network_.hardware;
  Lane& lane = lanes_[lane_index];
  Lane& line = line_of(lane_index);
  Message& message = network_.messages[message_index];

  const std::uint32_t index = network_.packets.take();
  Packet& packet = network_.packets[index];
  packet.message = message_index;
  packet.destination = message.destination;
  packet.vc = message.vc;
  packet.input = static_cast<std::uint8_t>(first_port_ + lane_index);
  packet.axis = message.axis;
  packet.bytes = static_cast<std::uint32_t>(std::min(message.bytes_to_inject, largest_packet(message)));
  if (common_line_) [[unlikely]] packet.travel = message.travel;

  ExactTime not_before;
  if (message.special) [[unlikely]] not_before = mark(packet, message_index);
  const Cycle others_until = lane.clock.free_at();
  const ExactTime tail = lane.clock.occupy(now, packet.bytes, not_before, network_.injection_rate);
  if (network_.path != nullptr) [[unlikely]] {
    network_.path->injected(message_index, index, {now, others_until, std::max(lane.clock.free_at(), now + 1)});
  }
  lane.last_injection = now;
  lanes_.credit(lane, packet.vc).take(network_.buffered(packet.bytes));
  if (hardware.sram_bytes_per_cycle) sram_->nic_access(packet.bytes);
  ++packets_injected_;
  bytes_injected_ += packet.bytes;
  if (message.injected == kNever) message.injected = now;
  message.bytes_to_inject -= packet.bytes;

  // Ready messages take turns: served ones go to the end of the line.
  (before == kNil ? line.first : network_.messages[before].next) = message.next;
  if (line.last == message_index) line.last = before;
  if (message.bytes_to_inject != 0) {
    append(line, message_index);
    if (common_line_) [[unlikely]] {
      send_off(message);
      pending_lanes_ |= message.ports;
      network_.calendar.request_evaluation(*this);
    }
  } else {
    if (!message.trained || changed(message.sent_at, tail.ceil())) {
      network_.calendar.post(*this, tail.ceil(), kSendDone, message_index);
    }
    if (message.special && message.follows != kNil) [[unlikely]] network_.streams.sent(message.follows);
  }
  const Cycle head_at = now + hardware.injection_cycles;
  const ExactTime tail_at = tail.after(hardware.injection_cycles);
  if (router_ != nullptr) [[likely]] {
    router_->receive(index, head_at, tail_at);
    RouterEngine::prefetch_visit(router_, packet.input, vcs_);
    return router_->prefetch_output(packet.output);
  }
  other_router_->receive(index, head_at, tail_at);
}

void Nic::wait_for_credit(unsigned lane_index) {
  const Cycle now = network_.calendar.current();
  Cycle earliest = kNever;
  Lane& lane = lanes_[lane_index];
  for (std::uint32_t index = line_of(lane_index).first; index != kNil; index = network_.messages[index].next) {
    if (!may_take(lane_index, network_.messages[index])) continue;
    CreditCounter& counter = lanes_.credit(lane, network_.messages[index].vc);
    const Cycle next = counter.next_arrival(now);
    if (next == kNever) counter.wait();
    earliest = std::min(earliest, next);
  }
  if (earliest != kNever) wake(lane_index, earliest);
}

void Nic::wake(unsigned lane_index, Cycle at) {
  Lane& lane = lanes_[lane_index];
  if (lane.wake_at <= at) return;
  lane.wake_at = at;
  network_.calendar.post(*this, at, kInject, lane_index);
}

void Nic::credit(unsigned output, unsigned vc, Bytes bytes, Cycle at) {
  CreditCounter& counter = lanes_.credit(lanes_[output], vc);
  counter.give(bytes, at, network_.calendar.now(), network_.credits);
  if (counter.stop_waiting()) wake(output, at);
}

void Nic::eject(std::uint32_t index, Cycle head_at, const ExactTime& tail_at) {
  const Packet& packet = network_.packets[index];
  const std::uint32_t message_index =
      packet.multicast ? network_.multicasts.message_at(packet.destination, tile_) : packet.message;
  Message& message = network_.messages[message_index];
  if (network_.hardware.sram_bytes_per_cycle) sram_->nic_access(packet.bytes);
  bytes_ejected_ += packet.bytes;
  message.bytes_to_eject -= packet.bytes;
  message.queued += packet.queued;
  const Cycle tail = tail_at.ceil() + network_.hardware.ejection_cycles;
  if (network_.path != nullptr) [[unlikely]] {
    network_.path->ejected(message_index, index, tail > message.last_tail, tail_at.ceil());
  }
  message.last_tail = std::max(message.last_tail, tail);
  if (message.special) [[unlikely]] take_in(message, index, head_at, tail_at);
  if (network_.path != nullptr) [[unlikely]] network_.path->packet_gone(index);
  network_.packets.give_back(index);
  if (message.bytes_to_eject == 0) {
    const Cycle use = message.special && message.streamed ? network_.hardware.stream_cycles : 0;
    const Cycle at = message.last_tail + network_.hardware.message_overhead + use;
    if (!message.trained || changed(message.received_at, at)) network_.calendar.post(*this, at, kReceived, message_index);
  }
}

void Nic::prefetch(unsigned kind, std::uint32_t payload) const {
  if (kind == kInject) {
    lanes_.prefetch(payload);
    return;
  }
  if (kind == kStream) return;
  const char* const message = reinterpret_cast<const char*>(&network_.messages[payload]);
  __builtin_prefetch(message);
  __builtin_prefetch(message + 64);
  __builtin_prefetch(message + 128);
  __builtin_prefetch(core_);
  core_lines_.prefetch();
  sram_lines_.prefetch();
}

void Nic::prefetch_more(unsigned kind, std::uint32_t payload) const {
  if (kind != kReceived) return;
  prefetch_call();
  const Message& message = network_.messages[payload];
  mailbox_.prefetch_receive(message.source, message.key);
}

void Nic::prefetch_call() const {
  mailbox_.prefetch_receives();
  lanes_.prefetch(0);
  __builtin_prefetch(router_);
}

HotLines Nic::hot_lines() const { return {reinterpret_cast<const char*>(static_cast<const Client*>(this)), kHotBytes}; }

void Nic::prefetch_evaluation() const {
  __builtin_prefetch(router_);
  for (std::uint32_t pending = pending_lanes_; pending != 0; pending &= pending - 1) {
    lanes_.prefetch(static_cast<unsigned>(std::countr_zero(pending)));
  }
}

void Nic::update(unsigned kind, std::uint32_t payload) {
  switch (kind) {
    case kReady:
      first_prepared();
      break;
    case kSendDone: {
      const Message& message = network_.messages[payload];
      if (message.trained && !is_sent(message)) [[unlikely]] break;
      if (message.special && !all_left(message)) break;
      if (network_.path != nullptr) [[unlikely]] record_left(payload);
      core_->send_done(message.send_token);
      break;
    }
    case kReceived:
      if (network_.messages[payload].trained && !is_received(payload)) [[unlikely]] break;
      receive(payload);
      break;
    case kStream:
      pending_lanes_ |= network_.streams.tag(payload);
      network_.calendar.request_evaluation(*this);
      break;
    default: {
      Lane& lane = lanes_[payload];
      if (lane.wake_at != network_.calendar.now()) return;  // an earlier wake-up took its place
      lane.wake_at = kNever;
      pending_lanes_ |= 1u << payload;
      network_.calendar.request_evaluation(*this);
    }
  }
}

void Nic::receive(std::uint32_t index) {
  Message& message = network_.messages[index];
  const Cycle now = network_.calendar.now();
  if (network_.path != nullptr) [[unlikely]] network_.path->received(index, now);
  if (message.special && network_.hardware.fidelity == models::Fidelity::ideal) [[unlikely]] take_in_ideal(message);
  network_.flights[tile_].end(now);
  network_.flights[message.source].end(now);
  if (network_.components != nullptr) network_.components->received(message.source, tile_);
  ++messages_received_;
  bytes_received_ += message.bytes;
  if (message_sink_ != nullptr) {
    (*message_sink_)({message.source, message.destination, message.key, message.axis, message.tensor, message.bytes,
                      message.posted, message.injected, now, message.queued});
  }
  if (const auto waiting = mailbox_.take_receive(message.source, message.key)) {
    const Arrival arrival = arrival_of(message);
    hand_over(index, waiting->bytes);
    core_->received(waiting->token, arrival);
  } else {
    sram_->allocate(workloads::MemoryClass::communication_buffers, message.bytes);
    mailbox_.add_message(message.source, message.key, index);
  }
}

bool Nic::post_receive(const ReceiveRequest& request) {
  if (const auto index = mailbox_.take_message(request.source, request.key)) {
    sram_->free(workloads::MemoryClass::communication_buffers, network_.messages[*index].bytes);
    hand_over(*index, request.bytes);
    return true;
  }
  mailbox_.add_receive(request, network_.calendar.now());
  return false;
}

void Nic::hand_over(std::uint32_t index, Bytes expected) {
  const Message& message = network_.messages[index];
  if (message.bytes != expected) {
    throw PlanError(fmt::format("{}: a receive of {} B from tile {} met a message of {} B (key {:#x})", this->name(),
                                expected, message.source, message.bytes, message.key));
  }
  if (message.special) [[unlikely]] taken(message);
  if (network_.path != nullptr) [[unlikely]] network_.path->gone(index);
  network_.messages.give_back(index);
}

Arrival Nic::arrival_of(const Message& message) {
  return {message.source, message.key, message.axis, message.posted, message.sender_wait, message.sender_stage};
}

void Nic::measure(Cycle end, TileMeasurement& out) {
  out.messages_sent = messages_sent_;
  out.messages_received = messages_received_;
  out.bytes_sent = bytes_sent_;
  out.bytes_copied = bytes_copied_;
  out.bytes_received = bytes_received_;
  // On the ideal network there are no packets.
  const bool ideal = network_.hardware.fidelity == models::Fidelity::ideal;
  out.bytes_injected = ideal ? bytes_sent_ : bytes_injected_;
  out.bytes_ejected = ideal ? bytes_received_ : bytes_ejected_;
  out.communicating = network_.flights[tile_].total(end);
}

}  // namespace wafersim::sim
