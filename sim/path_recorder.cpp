#include "sim/path_recorder.h"

#include <algorithm>
#include <array>

#include "base/error.h"

namespace wafersim::sim {
namespace {

/// 1.5 GiB of nodes.
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

/// Operations of a step one after the other become one segment: which of them lie in one node depends on who
/// else held it.
void join_operations(std::vector<PathSegment>& segments) {
  std::vector<PathSegment> joined;
  for (const PathSegment& segment : segments) {
    PathSegment* const last = joined.empty() ? nullptr : &joined.back();
    if (last != nullptr && is_operation(segment.kind) && last->kind == segment.kind &&
        last->axis == segment.axis && last->tile == segment.tile && last->step == segment.step) {
      last->to = segment.to;
      last->operations += segment.operations;
    } else {
      joined.push_back(segment);
    }
  }
  segments = std::move(joined);
}

}  // namespace

const char* to_string(PathKind kind) {
  constexpr std::array<const char*, kPathKinds> kNames = {
      "matrix", "vector",          "reduce",         "memory_stall", "memory_wait", "overhead",
      "wire",   "injection_queue", "injection_room", "link_queue",   "link_room",   "ejection_queue"};
  return kNames.at(static_cast<std::size_t>(kind));
}

void CorePath::completed(std::uint64_t token) { completions_.push_back({token, std::move(all_.cause)}); }

void CorePath::completing(std::uint64_t token) {
  const auto found = std::find_if(completions_.begin(), completions_.end(),
                                  [token](const auto& entry) { return entry.first == token; });
  if (found == completions_.end()) return;
  cause_ = std::move(found->second);
  if (found + 1 != completions_.end()) *found = std::move(completions_.back());
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
  PathRef path = ready != nullptr ? *ready : freed.at == now ? freed.path : opened_;
  require_invariant(path.to() == now || all_.tree().full(), "an operation started without a cause");
  return path;
}

void CorePath::engine_started(Engine engine, std::uint64_t token, const Needs& needs, Cycle now) {
  const Cycle dram = needs.dram_bytes == 0 ? 0 : all_.dram_cycles(needs.dram_bytes);
  started_[static_cast<std::size_t>(engine)] = {why(engine, token, now), needs.compute,
                                                std::max(needs.sram_cycles, dram)};
}

void CorePath::engine_stopped(Engine engine, const Stopped& operation, Cycle now) {
  Freed& freed = freed_[static_cast<std::size_t>(engine)];
  freed = {};
  Started& started = started_[static_cast<std::size_t>(engine)];
  PathRef path = std::move(started.path);
  const Cycle start = path.to();
  PathNode node;
  node.tile = tile_;
  node.other = operation.step;
  node.axis = operation.axis;
  node.kind = kind_of(operation.kind);
  node.to = start + started.compute;
  node.number = 1;
  all_.tree().grow(path, node);
  node.kind = PathKind::memory_stall;
  node.link = started.compute;
  node.to = std::min(now, start + std::max(started.compute, started.memory));
  all_.tree().grow(path, node);
  node.kind = PathKind::memory_wait;
  node.to = now;
  all_.tree().grow(path, node);
  freed = {now, path};
  completions_.push_back({operation.token, std::move(path)});
}

void CorePath::engine_passed(Engine engine, std::uint64_t token, Cycle now) {
  Freed& freed = freed_[static_cast<std::size_t>(engine)];
  freed = {now, why(engine, token, now)};
  completions_.push_back({token, freed.path});
}

void CorePath::step_closed(Cycle now) const { all_.step_closed(cause_, tile_, now); }

PathRecorder::PathRecorder(const CompiledTrace& trace, const NetworkContext& network)
    : tree_(kMostNodes),
      network_(network),
      input_vcs_(network.layout.count() * static_cast<unsigned>(network.hardware.virtual_channels)) {
  for (const workloads::TileBinding& binding : trace.trace().tiles) cores_.emplace_back(*this, binding.tile);
}

/// Of steps that end the run together, that of the first tile: the order of visits does not decide.
void PathRecorder::step_closed(const PathRef& path, TileId tile, Cycle now) {
  if (now < last_end_ || (now == last_end_ && last_tile_ < tile)) return;
  last_ = path;
  last_end_ = now;
  last_tile_ = tile;
}

PathMeasurement PathRecorder::take(Cycle end) const {
  PathMeasurement result;
  result.complete = !tree_.full();
  if (!result.complete) return result;
  require_invariant(last_.to() == end, "the critical path is not as long as the run");
  for (std::uint32_t index = last_.node(); index != kNil; index = tree_[index].next) {
    const PathNode& node = tree_[index];
    PathSegment segment;
    segment.from = node.next == kNil ? 0 : tree_[node.next].to;
    segment.to = node.to;
    segment.kind = node.kind;
    segment.axis = node.axis;
    segment.tile = node.tile;
    if (is_core(node.kind)) {
      segment.step = node.other;
      segment.operations = is_operation(node.kind) ? node.number : 0;
      segment.computed = node.link;
    } else {
      segment.destination = node.other;
      segment.link = node.number;
      segment.router_cycles = node.router;
      segment.link_cycles = node.link;
    }
    result.segments.push_back(segment);
  }
  std::reverse(result.segments.begin(), result.segments.end());
  join_operations(result.segments);
  return result;
}

void PathRecorder::add(Way& way, PathNode node, Cycle cycles, PathKind kind) {
  node.kind = kind;
  node.to = way.path.to() + cycles;
  tree_.grow(way.path, node);
}

/// What a way has come to since its last node becomes nodes: first what it waited in the NIC, last what it
/// waited in routers.
void PathRecorder::close(Way& way, const Message& message) {
  if (way.at == way.path.to()) return;
  PathNode node;
  node.tile = message.source;
  node.other = message.destination;
  node.axis = message.axis;
  const Cycle waits =
      way.injection_queue + way.injection_room + way.ejection_queue + way.link_queue + way.link_room;
  PathNode wires = node;
  wires.router = way.router;
  wires.link = way.link;
  const Cycle wire = way.at - way.path.to() - waits;
  add(way, node, way.injection_queue, PathKind::injection_queue);
  add(way, node, way.injection_room, PathKind::injection_room);
  add(way, wires, wire, PathKind::wire);
  node.number = way.link_waited;
  add(way, node, way.link_queue, PathKind::link_queue);
  add(way, node, way.link_room, PathKind::link_room);
  node.number = 0;
  add(way, node, way.ejection_queue, PathKind::ejection_queue);
  way = Way::to(std::move(way.path));
}

void PathRecorder::overhead(Way& way, Cycle until, const Message& message) {
  if (until <= way.at) return;
  close(way, message);
  PathNode node;
  node.tile = message.source;
  node.other = message.destination;
  node.axis = message.axis;
  add(way, node, until - way.at, PathKind::overhead);
  way.at = until;
}

/// Waits for the output until `queue_until`, and from then for room behind it.
void PathRecorder::wait_at_output(Way& way, Cycle queue_until, Cycle until, TileId tile, unsigned output,
                                  std::uint32_t message) {
  if (until <= way.at) return;
  if (output >= network_.layout.mesh) {
    way.ejection_queue += until - way.at;
  } else {
    const topology::LinkId link = topology::Mesh::link(tile, static_cast<topology::Direction>(output));
    if (way.link_queue + way.link_room != 0 && way.link_waited != link)
      close(way, network_.messages[message]);
    queue_until = std::clamp(queue_until, way.at, until);
    way.link_waited = link;
    way.link_queue += queue_until - way.at;
    way.link_room += until - queue_until;
  }
  way.at = until;
}

void PathRecorder::posted(std::uint32_t message) {
  MessageWay& way = at(messages_, message);
  way = {};
  way.ready.path = cause;
  way.ready.at = way.ready.path.to();
  require_invariant(way.ready.at == network_.messages[message].posted || tree_.full(),
                    "a message was sent without a cause");
}

void PathRecorder::ready(std::uint32_t message, Cycle now) {
  overhead(messages_[message].ready, now, network_.messages[message]);
}

void PathRecorder::injected(std::uint32_t message, std::uint32_t packet, const Injection& times) {
  MessageWay& whole = messages_[message];
  const bool several = network_.messages[message].bytes > network_.hardware.packet_bytes;
  Way way = several ? whole.ready : std::move(whole.ready);
  if (whole.has_injected && whole.port_until > way.at) {
    way = whole.injected;
    way.at = std::min(whole.port_until, times.now);
  }
  if (whole.followed.to() > way.at) way = Way::to(whole.followed);
  const Cycle queue_until = std::clamp(times.others_until, way.at, times.now);
  way.injection_queue += queue_until - way.at;
  way.injection_room += times.now - queue_until;
  way.at = times.now;
  whole.injected = way;
  whole.port_until = times.port_until;
  whole.has_injected = true;
  at(packets_, packet) = {std::move(way), several};
}

void PathRecorder::left(std::uint32_t message, Cycle now) {
  Way way = std::move(messages_[message].injected);
  way.at = now;
  close(way, network_.messages[message]);
  cause = std::move(way.path);
}

void PathRecorder::ejected(std::uint32_t message, std::uint32_t packet, bool latest, Cycle tail) {
  if (!latest) return;
  Way& mine = at(packets_, packet).way;
  Way& arrived = at(messages_, message).arrived;
  if (network_.messages[message].streamed) {
    arrived = mine;
  } else {
    arrived = std::move(mine);
  }
  arrived.link += network_.hardware.ejection_cycles;
  arrived.at = tail + network_.hardware.ejection_cycles;
}

void PathRecorder::received(std::uint32_t message, Cycle now) {
  Way& arrived = messages_[message].arrived;
  close(arrived, network_.messages[message]);
  overhead(arrived, now, network_.messages[message]);
  cause = std::move(arrived.path);
}

void PathRecorder::stream_arrived(std::uint32_t entry, std::uint32_t packet, Bytes bytes, Cycle usable_at) {
  const Message& message = network_.messages[network_.packets[packet].message];
  Way way = at(packets_, packet).way;
  way.link += network_.hardware.ejection_cycles;
  way.at += network_.hardware.ejection_cycles;
  close(way, message);
  overhead(way, usable_at, message);
  std::vector<StreamPacket>& packets = at(streams_, entry);
  packets.push_back({(packets.empty() ? 0 : packets.back().end) + bytes, std::move(way.path)});
}

void PathRecorder::follows(std::uint32_t message, std::span<const std::uint32_t> entries, Bytes bytes) {
  PathRef& followed = messages_[message].followed;
  followed = {};
  for (const std::uint32_t entry : entries) {
    const std::vector<StreamPacket>& packets = at(streams_, entry);
    const auto last =
        std::lower_bound(packets.begin(), packets.end(), bytes,
                         [](const StreamPacket& packet, Bytes end) { return packet.end < end; });
    if (last != packets.end() && last->path.to() > followed.to()) followed = last->path;
  }
}

void PathRecorder::arrived(std::uint32_t packet, Cycle now, Cycle pipeline, Cycle turn) {
  Way& way = at(packets_, packet).way;
  way.link += now - pipeline - way.at;
  way.router += pipeline + turn;
  way.at = now + turn;
}

void PathRecorder::turned(std::uint32_t packet, Cycle turn) {
  Way& way = at(packets_, packet).way;
  way.router += turn;
  way.at += turn;
}

void PathRecorder::granted(std::uint32_t packet, const Grant& grant) {
  PacketWay& mine = at(packets_, packet);
  const std::uint32_t index = network_.packets[packet].message;
  VcWay* const ahead =
      mine.several ? &at(vcs_, std::size_t{grant.tile} * input_vcs_ + grant.input_vc) : nullptr;
  if (ahead != nullptr && ahead->message == index && ahead->port_until > mine.way.at) {
    mine.way = ahead->way;
    mine.way.at = std::min(ahead->port_until, grant.now);
  }
  // Behind others in its VC, and for the port.
  const Cycle queue_until = std::max(network_.packets[packet].bid_at, grant.others_until);
  wait_at_output(mine.way, queue_until, grant.now, grant.tile, grant.output, index);
  if (ahead != nullptr) *ahead = {index, grant.port_until, mine.way};
}

void PathRecorder::head_sent(std::uint32_t packet, TileId tile, unsigned output, Cycle now, Cycle waited) {
  Way& way = at(packets_, packet).way;
  way.at = std::max(way.at, now - waited);
  wait_at_output(way, now, now, tile, output, network_.packets[packet].message);
}

}  // namespace wafersim::sim
