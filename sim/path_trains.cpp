// What the critical path wants of trains (sim/trains.h): the chains of their packets, where somebody asks for one.
#include <algorithm>

#include "sim/path_recorder.h"
#include "sim/router_engine.h"
#include "sim/trains.h"

namespace wafersim::sim {
namespace {

/// When a packet would bid for the port of a stage if it was its message's only one.
Cycle ready_at(const Train& train, std::uint64_t packet, std::size_t stage) {
  return train.times.at(packet, stage - 1).at + train.stages[stage].before;
}

/// Whether the packet ahead held it up there.
bool held(const Train& train, std::uint64_t packet, std::size_t stage) {
  return packet != 0 && train.times.at(packet - 1, stage).free_at() > ready_at(train, packet, stage);
}

}  // namespace

void PathRecorder::wait_at(Way& way, const Train& train, std::size_t stage, Cycle queue_until, Cycle until) {
  const TrainPlace& place = train.place(stage);
  wait_at_output(way, queue_until, until, place.router->tile(), place.output, train.message);
}

/// From a packet's grant at the stage before until it may bid at `stage`.
void PathRecorder::go_on(Way& way, const Train& train, std::size_t stage) {
  const Cycle before = train.stages[stage].before, router = network_.router_cycles + train.place(stage).turn;
  way.router += static_cast<std::uint32_t>(router);
  way.link += static_cast<std::uint32_t>(before - router);
  come_to(way, way.at() + before);
}

/// The way of a packet to its injection, of which all from the second on are held up by the one ahead.
void PathRecorder::inject(Way& way, const Train& train, std::uint64_t packet) {
  const MessageWay& message = messages_[train.message];
  if (message.has_injected && packet + 1 == train.times.packets()) {
    way = message.injected;  // left() has looked it up
    return;
  }
  way.start_over(message.ready);
  wait_at_injection(way, train.stages[0].clock.free_at(), train.times.at(0, 0).at);
  if (packet == 0) return;
  way.injection_room += static_cast<std::uint32_t>(train.times.sum(packet + 1, [&](std::uint64_t number) {
    return number == 0 ? 0 : train.times.at(number, 0).at - train.times.at(number - 1, 0).free_at();
  }));
  come_to(way, train.times.at(packet, 0).at);
}

/// From a packet's grant at the stage before to that at `stage`.
void PathRecorder::advance(Way& way, const Train& train, std::uint64_t packet, std::size_t stage) {
  go_on(way, train, stage);
  const TrainStage& port = train.stages[stage];
  const TrainGrant grant = train.times.at(packet, stage);
  const Cycle port_free_at = packet == 0 ? port.clock.free_at() : train.times.at(packet - 1, stage).tail.floor();
  wait_at(way, train, stage, std::max(grant.bid_at, port_free_at), grant.at);
}

/// From the grant of the packet `times` ahead of `packet` at a stage to that of `packet`, where each was held up by the one
/// ahead of it, all alike. What they waited beyond that was for room.
void PathRecorder::hold(Way& way, const Train& train, std::uint64_t packet, std::size_t stage, std::uint64_t times) {
  const auto wait = [&](std::uint64_t number, std::uint64_t packets) {
    const Cycle granted = train.times.at(number, stage).at;
    const Cycle room = granted - train.times.at(number - 1, stage).free_at();
    const Cycle from = granted - room * packets;
    come_to(way, from);
    wait_at(way, train, stage, from, granted);
  };
  wait(packet - times + 1, 1);
  if (times != 1) wait(packet, times - 1);
}

/// The way of a packet up to its grant at a stage: back to the start of its message, and from there on.
void PathRecorder::make_way(Way& way, const Train& train, std::uint64_t packet, std::size_t stage) {
  const TrainTimes& times = train.times;
  Cycle before = 0, router = 0;
  for (std::size_t s = 1; s <= stage; ++s) {
    before += train.stages[s].before;
    router += network_.router_cycles + train.place(s).turn;
  }
  if (times.at(packet, 0).at + before == times.at(packet, stage).at) {  // it waited nowhere
    inject(way, train, packet);
    way.router += static_cast<std::uint32_t>(router);
    way.link += static_cast<std::uint32_t>(before - router);
    return come_to(way, way.at() + before);
  }
  steps_.clear();
  while (stage != 0) {
    if (!held(train, packet, stage)) {
      steps_.push_back({packet, stage--, 0});
      continue;
    }
    // Packets that do what the one ahead did are held up alike.
    const bool regular = packet >= times.regular_from() && times.bytes(packet) == times.bytes(0);
    const std::uint64_t alike = regular ? packet - times.regular_from() + 1 : 1;
    steps_.push_back({packet, stage, alike});
    packet -= alike;
  }
  inject(way, train, packet);
  for (auto step = steps_.rbegin(); step != steps_.rend(); ++step) {
    if (step->held == 0) {
      advance(way, train, step->packet, step->stage);
    } else {
      hold(way, train, step->packet, step->stage, step->held);
    }
  }
}

void PathRecorder::left(const Train& train, Cycle now) {
  inject_before(train, train.times.packets());
  left(train.message, now);
}

/// The first `count` packets have been injected.
void PathRecorder::inject_before(const Train& train, std::uint64_t count) {
  MessageWay& message = messages_[train.message];
  inject(message.injected, train, count - 1);
  message.port_until = train.times.at(count - 1, 0).free_at();
  message.has_injected = true;
}

void PathRecorder::settled(const Train& train, Cycle cycle) {
  const TrainTimes& times = train.times;
  const std::size_t last = train.stages.size() - 1;
  enter_grants();
  MessageWay& message = messages_[train.message];
  const std::uint64_t ejected = times.granted_before(last, cycle);
  if (ejected != 0) {
    // Of tails that leave in one cycle the first counts.
    const Cycle tail = times.at(ejected - 1, last).tail.ceil();
    std::uint64_t latest = ejected;
    while (latest > 1 && times.at(latest - 2, last).tail.ceil() == tail) --latest;
    make_way(message.arrived, train, latest - 1, last);
    arrive(message, tail);
  }
  if (network_.messages[train.message].sent_at >= cycle) {
    const std::uint64_t injected = times.granted_before(0, cycle);
    if (injected == 0) return;
    inject_before(train, injected);
  }
  if (ejected == times.packets()) return;
  for (std::size_t stage = 1; stage <= last; ++stage) {
    const std::uint64_t granted = times.granted_before(stage, cycle);
    if (granted == 0) break;
    if (granted == times.packets()) continue;
    const TrainPlace& place = train.place(stage);
    VcWay& vc = at(vcs_, std::size_t{place.router->tile()} * input_vcs_ + place.input_vc);
    vc.message = train.message;
    vc.serial = message.serial;
    vc.port_until = times.at(granted - 1, stage).free_at();
    make_way(vc.way, train, granted - 1, stage);
  }
}

void PathRecorder::placed(const Train& train, std::uint64_t number, std::size_t stage, std::uint32_t packet, bool arrived) {
  enter_grants();
  PacketWay& placed = at(packets_, packet);
  placed.several = true;
  placed.serial = messages_[train.message].serial;
  make_way(placed.way, train, number, stage - 1);
  if (arrived) go_on(placed.way, train, stage);
}

}  // namespace wafersim::sim
