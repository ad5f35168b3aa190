#include "sim/path_recorder.h"

#include <algorithm>
#include <limits>

#include "base/error.h"

namespace wafersim::sim {
namespace {

/// 1 GiB of nodes, half of which may be needed.
constexpr std::size_t kMostNodes = std::size_t{1} << 25;

template <class Noted>
const PathRef* find(const Noted& noted, std::uint64_t key) {
  const auto found =
      std::find_if(noted.begin(), noted.end(), [key](const auto& entry) { return entry.first == key; });
  return found == noted.end() ? nullptr : &found->second;
}

PathKind kind_of(workloads::OpKind kind) {
  if (kind == workloads::OpKind::matrix) return PathKind::matrix;
  return kind == workloads::OpKind::reduce ? PathKind::reduce : PathKind::vector;
}

/// A node of a message, of no kind and length yet.
PathNode node_of(const Message& message) {
  PathNode node;
  node.tile = message.source;
  node.other = message.destination;
  node.axis = message.axis;
  return node;
}

}  // namespace

void CorePath::completed(std::uint64_t token) { completions_.push_back({token, all_.cause}); }

void CorePath::completing(std::uint64_t token) {
  const auto found = std::find_if(completions_.begin(), completions_.end(),
                                  [token](const auto& entry) { return entry.first == token; });
  if (found == completions_.end()) return;
  cause_ = found->second;
  if (found + 1 != completions_.end()) *found = completions_.back();
  completions_.pop_back();
}

void CorePath::sending() const { all_.cause = cause_; }

void CorePath::opening(std::span<const std::uint32_t> waits, Cycle now) {
  const PathRef* latest = nullptr;
  for (const std::uint32_t step : waits) {
    if (const PathRef* const path = find(results_, step)) latest = path;
  }
  if (latest != nullptr) {
    cause_ = *latest;
  } else if (opened_at_ == now) {
    cause_ = opened_;  // steps open in order
  }
  opened_ = cause_;
  opened_at_ = now;
}

/// Why an operation starts in this cycle, and not before.
PathRef CorePath::why(Engine engine, std::uint64_t token, Cycle now) const {
  const Freed& freed = freed_[static_cast<std::size_t>(engine)];
  const PathRef* const ready = find(ready_, token);
  const PathRef path = ready != nullptr ? *ready : freed.at == now ? freed.path : opened_;
  require_invariant(path.to == now, "an operation started without a cause");
  return path;
}

void CorePath::engine_started(Engine engine, std::uint64_t token, const Needs& needs, Cycle now) {
  const Cycle dram = needs.dram_bytes == 0 ? 0 : all_.dram_cycles(needs.dram_bytes);
  started_[static_cast<std::size_t>(engine)] = {why(engine, token, now), needs.compute,
                                                std::max(needs.sram_cycles, dram)};
}

void CorePath::engine_stopped(Engine engine, const Stopped& operation, Cycle now) {
  all_.tidy();
  Freed& freed = freed_[static_cast<std::size_t>(engine)];
  freed = {};
  const Started& started = started_[static_cast<std::size_t>(engine)];
  PathRef path = started.path;
  const Cycle start = path.to;
  PathNode node;
  node.tile = tile_;
  node.other = operation.step;
  node.axis = operation.axis;
  node.kind = kind_of(operation.kind);
  node.to = now;
  node.number = 1;
  if (now != start + started.compute) {
    node.parts = true;
    node.number = all_.tree().number(started.compute);
    node.link = all_.tree().number(std::min(now, start + std::max(started.compute, started.memory)) - (start + started.compute));
  }
  all_.tree().grow(path, node);
  freed = {now, path};
  completions_.push_back({operation.token, path});
}

void CorePath::engine_passed(Engine engine, std::uint64_t token, Cycle now) {
  Freed& freed = freed_[static_cast<std::size_t>(engine)];
  freed = {now, why(engine, token, now)};
  completions_.push_back({token, freed.path});
}

void CorePath::step_closed(Cycle now) const { all_.step_closed(cause_, tile_, now); }

PathRecorder::PathRecorder(const CompiledTrace& trace, const NetworkContext& network)
    : network_(network),
      tree_(kMostNodes),
      input_vcs_(network.layout.count() * static_cast<unsigned>(network.hardware.virtual_channels)) {
  for (const workloads::TileBinding& binding : trace.trace().tiles) cores_.emplace_back(*this, binding.tile);
}

template <class Visit>
void PathRecorder::visit_ends(const Visit& visit) {
  visit(last_);
  visit(cause);
  for (CorePath& core : cores_) core.visit_ends(visit);
  for (MessageWay& message : messages_) {
    if (!message.under_way) continue;
    visit(message.ready);
    visit(message.followed);
    if (message.has_arrived) visit(message.arrived.path);
    if (message.has_injected) visit(message.injected.path);
  }
  for (PacketWay& packet : packets_) visit(packet.way.path);
  for (VcWay& vc : vcs_) visit(vc.way.path);
  for (std::vector<StreamPacket>& packets : streams_) {
    for (StreamPacket& packet : packets) visit(packet.path);
  }
  for (Period& period : periods_) {
    for (PathRef& end : period.ends) visit(end);
  }
}

void PathRecorder::collect() {
  enter_grants();
  for (VcWay& vc : vcs_) {
    if (vc.message == kNil) continue;
    const MessageWay& message = messages_[vc.message];
    if (!message.under_way || message.serial != vc.serial) vc = {};
  }
  tree_.collect([this](const auto& visit) { visit_ends(visit); });
}

/// Of steps that end the run together, that of the first tile: the order of visits does not decide.
void PathRecorder::step_closed(const PathRef& path, TileId tile, Cycle now) {
  if (now < last_end_ || (now == last_end_ && last_tile_ < tile)) return;
  last_ = path;
  last_end_ = now;
  last_tile_ = tile;
}

/// What a way has come to since its last node becomes nodes: first what it waited in the NIC, last what it
/// waited in routers.
void PathRecorder::close(Way& way, const Message& message) {
  if (way.after == 0) return;
  const Cycle end = way.at();
  PathNode node = node_of(message);
  node.to = way.path.to;
  const auto add = [&](Cycle cycles, PathKind kind) {
    if (cycles == 0) return;
    node.kind = kind;
    node.to += cycles;
    tree_.grow(way.path, node);
  };
  add(way.injection_queue, PathKind::injection_queue);
  add(way.injection_room, PathKind::injection_room);
  const Cycle last_waits = way.ejection_queue + way.link_queue + way.link_room;
  node.number = way.router;
  node.link = way.link;
  add(end - node.to - last_waits, PathKind::wire);
  node.link = 0;
  if (last_waits != 0) {
    node.number = way.link_waited;
    add(way.link_queue, PathKind::link_queue);
    add(way.link_room, PathKind::link_room);
    node.number = 0;
    add(way.ejection_queue, PathKind::ejection_queue);
  }
  way.start_over(way.path);
}

void PathRecorder::overhead(PathRef& path, Cycle until, const Message& message) {
  if (until <= path.to) return;
  PathNode node = node_of(message);
  node.kind = PathKind::overhead;
  node.to = until;
  tree_.grow(path, node);
}

/// A way that takes longer than can be counted has no nodes, and so has the path.
void PathRecorder::come_to(Way& way, Cycle cycle) {
  const Cycle after = cycle - way.path.to;
  if (after > std::numeric_limits<std::uint32_t>::max()) [[unlikely]] {
    tree_.give_up();
    return way.start_over({cycle, kNil});
  }
  way.after = static_cast<std::uint32_t>(after);
}

/// Waits for the port until `queue_until`, and from then for room behind it.
void PathRecorder::wait_at_injection(Way& way, Cycle queue_until, Cycle until) {
  const Cycle from = way.at();
  if (until <= from) return;
  queue_until = std::clamp(queue_until, from, until);
  way.injection_queue += static_cast<std::uint32_t>(queue_until - from);
  way.injection_room += static_cast<std::uint32_t>(until - queue_until);
  come_to(way, until);
}

/// Waits for the output until `queue_until`, and from then for room behind it.
void PathRecorder::wait_at_output(Way& way, Cycle queue_until, Cycle until, TileId tile, unsigned output,
                                  std::uint32_t message) {
  const Cycle from = way.at();
  if (until <= from) return;
  if (output >= network_.layout.mesh) {
    way.ejection_queue += static_cast<std::uint32_t>(until - from);
  } else {
    const topology::LinkId link = topology::Mesh::link(tile, static_cast<topology::Direction>(output));
    if (way.link_queue + way.link_room != 0 && way.link_waited != link)
      close(way, network_.messages[message]);
    queue_until = std::clamp(queue_until, from, until);
    way.link_waited = link;
    way.link_queue += static_cast<std::uint32_t>(queue_until - from);
    way.link_room += static_cast<std::uint32_t>(until - queue_until);
  }
  come_to(way, until);
}

void PathRecorder::posted(std::uint32_t message) {
  tidy();
  MessageWay& way = at(messages_, message);
  way.ready = cause;
  way.followed = {};
  way.under_way = true;
  way.serial = ++serial_;
  way.has_injected = way.has_arrived = false;
  require_invariant(cause.to == network_.messages[message].posted, "a message was sent without a cause");
}

void PathRecorder::ready(std::uint32_t message, Cycle now) {
  overhead(messages_[message].ready, now, network_.messages[message]);
}

void PathRecorder::injected(std::uint32_t message, std::uint32_t packet, const Injection& times) {
  tidy();  // there may be nothing but packets for a long time
  MessageWay& whole = messages_[message];
  Way& way = way_of(packet);
  if (whole.has_injected && whole.port_until > whole.ready.to) {
    way = whole.injected;
    come_to(way, std::min(whole.port_until, times.now));
  } else {
    way.start_over(whole.ready);
  }
  if (whole.followed.to > way.at()) way.start_over(whole.followed);
  wait_at_injection(way, times.others_until, times.now);
  whole.injected = way;
  whole.port_until = times.port_until;
  whole.has_injected = true;
  packets_[packet].serial = whole.serial;
  packets_[packet].several = network_.messages[message].bytes > network_.hardware.packet_bytes;
}

void PathRecorder::left(std::uint32_t message, Cycle now) {
  const Way& way = messages_[message].injected;
  leave(way.path, way.injection_queue, way.injection_room, message, now);
}

/// What its last packet waited at the NIC, and its serialization.
void PathRecorder::leave(PathRef path, std::uint32_t queue, std::uint32_t room, std::uint32_t index, Cycle now) {
  PathNode node = node_of(network_.messages[index]);
  node.kind = PathKind::injection_queue;
  node.parts = true;
  node.number = queue;
  node.link = room;
  node.to = now;
  tree_.grow(path, node);
  cause = path;
}

void PathRecorder::ejected(std::uint32_t message, std::uint32_t packet, bool latest, Cycle tail) {
  if (!latest) return;
  MessageWay& whole = messages_[message];
  whole.arrived = way_of(packet);
  arrive(whole, tail);
}

/// Its latest packet so far, which has come to its grant.
void PathRecorder::arrive(MessageWay& message, Cycle tail) {
  message.has_arrived = true;
  message.arrived.link += static_cast<std::uint32_t>(network_.hardware.ejection_cycles);
  come_to(message.arrived, tail + network_.hardware.ejection_cycles);
}

void PathRecorder::delivered(std::uint32_t message) {
  MessageWay& way = messages_[message];
  way.has_arrived = true;
  way.arrived.start_over(cause);
}

void PathRecorder::received(std::uint32_t message, Cycle now) {
  Way& arrived = messages_[message].arrived;
  close(arrived, network_.messages[message]);
  overhead(arrived.path, now, network_.messages[message]);
  cause = arrived.path;
}

void PathRecorder::stream_arrived(std::uint32_t entry, std::uint32_t packet, Bytes bytes, Cycle usable_at) {
  const Message& message = network_.messages[network_.packets[packet].message];
  Way way = way_of(packet);
  way.link += static_cast<std::uint32_t>(network_.hardware.ejection_cycles);
  come_to(way, way.at() + network_.hardware.ejection_cycles);
  close(way, message);
  overhead(way.path, usable_at, message);
  std::vector<StreamPacket>& packets = at(streams_, entry);
  packets.push_back({(packets.empty() ? 0 : packets.back().end) + bytes, way.path});
}

void PathRecorder::follows(std::uint32_t message, std::span<const std::uint32_t> entries, Bytes bytes) {
  PathRef& followed = messages_[message].followed;
  followed = {};
  for (const std::uint32_t entry : entries) {
    const std::vector<StreamPacket>& packets = at(streams_, entry);
    const auto last =
        std::lower_bound(packets.begin(), packets.end(), bytes,
                         [](const StreamPacket& packet, Bytes end) { return packet.end < end; });
    if (last != packets.end() && last->path.to > followed.to) followed = last->path;
  }
}

void PathRecorder::arrived(std::uint32_t packet, Cycle now, Cycle pipeline, Cycle turn) {
  Way& way = way_of(packet);
  way.link += static_cast<std::uint32_t>(now - pipeline - way.at());
  way.router += static_cast<std::uint32_t>(pipeline + turn);
  come_to(way, now + turn);
}

void PathRecorder::turned(std::uint32_t packet, Cycle turn) {
  Way& way = way_of(packet);
  way.router += static_cast<std::uint32_t>(turn);
  come_to(way, way.at() + turn);
}

void PathRecorder::granted(std::uint32_t packet, const Grant& grant) {
  // Behind others in its VC, and for the port.
  const Packet& record = network_.packets[packet];
  granted_[grants_++] = {packet, record.message, std::max(record.bid_at, grant.others_until), grant};
  const std::size_t vc = std::size_t{grant.tile} * input_vcs_ + grant.input_vc;
  if (packet < packets_.size()) __builtin_prefetch(&packets_[packet], 1);
  if (vc < vcs_.size()) __builtin_prefetch(&vcs_[vc], 1);
  if (grants_ == granted_.size()) enter_all_grants();
}

void PathRecorder::enter_all_grants() {
  for (std::size_t i = 0; i < grants_; ++i) enter(granted_[i]);
  grants_ = 0;
}

void PathRecorder::enter(const Granted& granted) {
  const Grant& grant = granted.grant;
  PacketWay& mine = at(packets_, granted.packet);
  VcWay* const ahead =
      mine.several ? &at(vcs_, std::size_t{grant.tile} * input_vcs_ + grant.input_vc) : nullptr;
  if (ahead != nullptr && ahead->message == granted.message && ahead->serial == mine.serial &&
      ahead->port_until > mine.way.at()) {
    mine.way = ahead->way;
    come_to(mine.way, std::min(ahead->port_until, grant.now));
  }
  wait_at_output(mine.way, granted.queue_until, grant.now, grant.tile, grant.output, granted.message);
  if (ahead != nullptr) *ahead = {granted.message, mine.serial, grant.port_until, mine.way};
}

void PathRecorder::head_sent(std::uint32_t packet, TileId tile, unsigned output, Cycle now, Cycle waited) {
  Way& way = way_of(packet);
  come_to(way, std::max(way.at(), now - waited));
  wait_at_output(way, now, now, tile, output, network_.packets[packet].message);
}

}  // namespace wafersim::sim
