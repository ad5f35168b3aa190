// Messages that leave as trains (sim/trains.h).
#include <algorithm>
#include <utility>

#include "sim/nic.h"
#include "sim/path_recorder.h"
#include "sim/router_engine.h"
#include "sim/sram.h"
#include "sim/trains.h"

namespace wafersim::sim {

bool Nic::may_depart(unsigned lane, const Message& message) const {
  return network_.trains != nullptr && message.bytes_to_inject == message.bytes &&
         message.bytes > (Trains::kLeastPackets - 1) * network_.hardware.packet_bytes && !message.trained && !message.special &&
         lanes_[lane].first == lanes_[lane].last && !common_line_ && router_ != nullptr && memory_ != nullptr &&
         directory_[message.destination]->memory_ != nullptr;
}

/// Whether a message, alone in its lane and about to be injected, leaves as a train.
[[gnu::noinline]] bool Nic::depart(unsigned lane_index, std::uint32_t index) {
  const models::HardwareModel& hardware = network_.hardware;
  Lane& lane = lanes_[lane_index];
  const Cycle now = network_.calendar.current();
  TrainStage stage;
  stage.rate = &network_.injection_rate;
  stage.credit_cycles = hardware.credit_cycles;
  stage.clock = lane.clock;
  stage.see(lanes_.credit(lane, network_.messages[index].vc).outlook(now, network_.credits));
  if (stage.room + stage.returning != hardware.vc_buffer_bytes) return false;  // others are behind this port
  Train* const train = network_.trains->form(index, stage, router_, first_port_ + lane_index);
  if (train == nullptr) return false;
  train->sender = this;
  train->lane = lane_index;
  lane.train = train->number;

  Message& message = network_.messages[index];
  Nic* const receiver = directory_[message.destination];
  const TrainTimes& times = train->times;
  const std::uint64_t last = times.packets() - 1;
  message.trained = true;
  message.train = train->number;
  message.injected = now;
  message.sent_at = times.at(last, 0).tail.ceil();
  message.received_at =
      times.at(last, train->stages.size() - 1).tail.ceil() + hardware.ejection_cycles + hardware.message_overhead;
  network_.calendar.post(*this, message.sent_at, kSendDone, index);
  network_.calendar.post(*receiver, message.received_at, kReceived, index);
  train->receiver = receiver;
  train->source_memory = memory_;
  train->destination_memory = receiver->memory_;
  memory_->begin(train->reads, times, 0);
  receiver->memory_->begin(train->writes, times, train->stages.size() - 1);
  return true;
}

/// What the packets that were injected before `cycle` have left behind.
void Nic::settle(const Train& train, Cycle cycle) {
  Lane& lane = lanes_[train.lane];
  Message& message = network_.messages[train.message];
  const TrainTimes& times = train.times;
  lane.train = kNil;
  const std::uint64_t injected = times.granted_before(0, cycle);
  if (injected == 0) return wake(train.lane, cycle);
  const TrainGrant last = times.at(injected - 1, 0);
  lane.clock = PortClock(last.tail);
  lane.last_injection = last.at;
  packets_injected_ += injected;
  bytes_injected_ += times.bytes_of(injected);
  message.bytes_to_inject -= times.bytes_of(injected);
  network_.trains->settle_credits(train, 0, lanes_.credit(lane, message.vc), cycle);
  if (message.bytes_to_inject == 0) {
    lane.first = lane.last = kNil;
  } else {
    wake(train.lane, std::max(last.free_at(), cycle));
  }
}

/// Whether an event has to be posted for `at`, as that of the train was for another cycle.
bool Nic::changed(Cycle& known, Cycle at) { return std::exchange(known, at) != at; }

/// Tells the recorder of the critical path that a message has left.
void Nic::record_left(std::uint32_t index) const {
  const Message& message = network_.messages[index];
  const Cycle now = network_.calendar.now();
  if (message.train != kNil) {
    network_.path->left((*network_.trains)[message.train], now);
  } else {
    network_.path->left(index, now);
  }
}

/// Of a message that left as a train: whether an event of this cycle is that in which it has been sent.
bool Nic::is_sent(const Message& message) const {
  return message.train != kNil || (message.bytes_to_inject == 0 && message.sent_at == network_.calendar.now());
}

/// Likewise received.
bool Nic::is_received(std::uint32_t index) {
  const Message& message = network_.messages[index];
  const Cycle now = network_.calendar.now();
  if (message.train != kNil) network_.trains->settle(message.train, now);
  return message.bytes_to_eject == 0 && message.received_at == now;
}

}  // namespace wafersim::sim
