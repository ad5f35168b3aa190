// What the critical path wants of folding (sim/folding.h): chains through periods and replicas that are not simulated.
//
// When a period begins that may come again, each chain gets a mark at its end. At the end of the period each chain comes from one
// of these marks: it is what a repetition adds to the chain that has the number of the mark. So what is kept of all repetitions is
// the ends of the chains behind the period, and a mark that says how often; the path is written out when it is asked for.
#include <algorithm>

#include "base/error.h"
#include "sim/path_recorder.h"
#include "sim/replicas.h"
#include "sim/state_archive.h"

namespace wafersim::sim {

void CorePath::write_relative(StateWriter& writer) const {
  writer.size(completions_.size());
  writer.size(ready_.size());
  writer.size(results_.size());
}

void CorePath::move(Cycle by) {
  opened_at_ += by;
  for (Freed& freed : freed_) {
    if (freed.at != kNever) freed.at += by;
  }
}

void CorePath::copy(const CorePath& other) {
  cause_ = other.cause_;
  opened_ = other.opened_;
  opened_at_ = other.opened_at_;
  completions_ = other.completions_;
  ready_ = other.ready_;
  results_ = other.results_;
  started_ = other.started_;
  freed_ = other.freed_;
}

void PathRecorder::write_way(StateWriter& writer, const Way& way) {
  writer.time(way.path.to);
  writer.time(way.at());
  for (const std::uint32_t cycles : {way.router, way.link, way.injection_queue, way.injection_room, way.ejection_queue,
                                     way.link_queue, way.link_room}) {
    writer.plain(cycles);
  }
  writer.plain(way.link_queue + way.link_room == 0 ? topology::LinkId{0} : way.link_waited);
}

/// By number: its place among `numbers`, or kNil.
std::vector<std::uint32_t> PathRecorder::places_of(const std::vector<std::uint32_t>& numbers) const {
  std::vector<std::uint32_t> places(messages_.size(), kNil);
  for (std::size_t i = 0; i < numbers.size(); ++i) places[numbers[i]] = static_cast<std::uint32_t>(i);
  return places;
}

/// That of the message of which the latest packet is kept there; kNil where it is not among them.
std::uint32_t PathRecorder::place_of(const VcWay& vc, const std::vector<std::uint32_t>& places) const {
  return vc.message == kNil || messages_[vc.message].serial != vc.serial ? kNil : places[vc.message];
}

void PathRecorder::write_relative(StateWriter& writer) {
  enter_grants();
  const NamedRecords& named = writer.named();
  for (const CorePath& core : cores_) core.write_relative(writer);
  for (const std::uint32_t number : named.messages) {
    const MessageWay& message = messages_[number];
    writer.time(message.ready.to);
    writer.time(message.followed.node == kNil ? kNever : message.followed.to);
    writer.plain(message.has_arrived);
    if (message.has_arrived) write_way(writer, message.arrived);
    writer.plain(message.has_injected);
    if (!message.has_injected) continue;
    writer.time(message.port_until);
    write_way(writer, message.injected);
  }
  for (const std::uint32_t number : named.packets) write_way(writer, packets_[number].way);
  const std::vector<std::uint32_t> places = places_of(named.messages);
  for (std::size_t i = 0; i < vcs_.size(); ++i) {
    const VcWay& vc = vcs_[i];
    const std::uint32_t place = place_of(vc, places);
    if (place == kNil) continue;
    writer.size(i);
    writer.plain(place);
    writer.time(vc.port_until);
    write_way(writer, vc.way);
  }
}

template <class Visit>
void PathRecorder::visit_numbered(const NamedRecords& named, const Visit& visit) {
  enter_grants();
  visit(last_);
  for (CorePath& core : cores_) core.visit_ends(visit);
  for (const std::uint32_t number : named.messages) {
    MessageWay& message = messages_[number];
    visit(message.ready);
    visit(message.followed);
    if (message.has_arrived) visit(message.arrived.path);
    if (message.has_injected) visit(message.injected.path);
  }
  for (const std::uint32_t number : named.packets) visit(packets_[number].way.path);
  const std::vector<std::uint32_t> places = places_of(named.messages);
  for (VcWay& vc : vcs_) {
    if (place_of(vc, places) != kNil) visit(vc.way.path);
  }
}

void PathRecorder::begin_period(const NamedRecords& named) {
  period_begun_ = network_.calendar.current();
  const auto number = static_cast<TileId>(periods_.size());
  periods_.emplace_back();
  std::uint32_t ends = 0;
  visit_numbered(named, [&](PathRef& path) {
    PathNode mark;
    mark.to = path.to;
    mark.mark = PathMark::period;
    mark.tile = number;
    mark.link = ends++;
    if (path.node != kNil) tree_.put(path, mark);
  });
}

void PathRecorder::end_period(const NamedRecords& named, const StateShift& one, std::uint64_t times) {
  Period& period = periods_.back();
  period.length = one.cycles;
  period.steps.assign(one.steps.begin(), one.steps.end());
  visit_numbered(named, [&](PathRef& path) { period.ends.push_back(path); });
  std::size_t end = 0;
  visit_numbered(named, [&](PathRef& path) { path = repeated(end++, times); });
}

/// An end of the latest period so many periods later.
PathRef PathRecorder::repeated(std::size_t end, std::uint64_t times) {
  const Period& period = periods_.back();
  const auto number = static_cast<TileId>(periods_.size() - 1);
  for (; times != 0; --times) {
    const PathRef& path = period.ends[end];
    if (tree_.full()) return {path.to > period_begun_ ? path.to + period.length * times : path.to, kNil};
    if (path.node == kNil) break;
    const PathNode& node = tree_[path.node];
    if (node.mark != PathMark::period || node.tile != number) {
      PathNode mark;
      mark.to = path.to + period.length * times;
      mark.mark = PathMark::repetition;
      mark.tile = number;
      mark.number = tree_.number(times);
      mark.link = static_cast<std::uint32_t>(end);
      PathRef result;
      tree_.put(result, mark);
      return result;
    }
    end = node.link;  // nothing happened in the period
  }
  return period.ends[end];
}

void PathRecorder::drop_period() { periods_.back() = {}; }

void PathRecorder::renumber(const NamedRecords& from, const NamedRecords& to, Cycle by) {
  enter_grants();
  const std::vector<std::uint32_t> places = places_of(from.messages);
  for (VcWay& vc : vcs_) {
    const std::uint32_t place = place_of(vc, places);
    if (place == kNil) {
      vc = {};
      continue;
    }
    vc.message = to.messages[place];
    vc.port_until += by;
  }
  HugeVector<MessageWay> messages;
  for (std::size_t i = 0; i < from.messages.size(); ++i) {
    MessageWay& message = at(messages, to.messages[i]);
    message = messages_[from.messages[i]];
    message.port_until += by;
  }
  messages_ = std::move(messages);
  HugeVector<PacketWay> packets;
  for (std::size_t i = 0; i < from.packets.size(); ++i) {
    PacketWay& packet = at(packets, to.packets[i]);
    packet = packets_[from.packets[i]];
  }
  packets_ = std::move(packets);
  for (CorePath& core : cores_) core.move(by);
  last_end_ = last_.to;
}

void PathRecorder::come_from_replica(PathRef& path, std::uint32_t replica) {
  if (path.node == kNil) return;
  PathNode mark;
  mark.to = path.to;
  mark.mark = PathMark::replica;
  mark.tile = replica;
  tree_.put(path, mark);
}

void PathRecorder::copy_first_replica(const Replica& replica) {
  enter_grants();
  replicas_.resize(std::max<std::size_t>(replicas_.size(), replica.number + std::size_t{1}));
  replicas_[replica.number] = replica.moved;
  const auto come_here = [&](PathRef& path) { come_from_replica(path, replica.number); };
  for (const auto& [from, to] : replica.cores) {
    cores_[to].copy(cores_[from]);
    cores_[to].visit_ends(come_here);
  }
  for (std::size_t i = 0; i < replica.from.messages.size(); ++i) {
    copy(messages_, replica.to.messages[i], replica.from.messages[i]);
    MessageWay& message = messages_[replica.to.messages[i]];
    for (PathRef* const path : {&message.ready, &message.followed, &message.arrived.path, &message.injected.path}) come_here(*path);
    for (Way* const way : {&message.arrived, &message.injected}) move(*way, replica.moved);
  }
  for (std::size_t i = 0; i < replica.from.packets.size(); ++i) {
    copy(packets_, replica.to.packets[i], replica.from.packets[i]);
    Way& way = packets_[replica.to.packets[i]].way;
    come_here(way.path);
    move(way, replica.moved);
  }
  const std::vector<std::uint32_t> places = places_of(replica.from.messages);
  const std::size_t vcs = vcs_.size();
  for (std::size_t i = 0; i < vcs; ++i) {
    const std::uint32_t place = place_of(vcs_[i], places);
    if (place == kNil) continue;
    const std::size_t other = std::size_t{replica.moved[i / input_vcs_]} * input_vcs_ + i % input_vcs_;
    copy(vcs_, other, i);
    VcWay& vc = vcs_[other];
    vc.message = replica.to.messages[place];
    come_here(vc.way.path);
    move(vc.way, replica.moved);
  }
}

void PathRecorder::move(Way& way, const std::vector<TileId>& moved) {
  if (way.link_queue + way.link_room != 0) way.link_waited = moved_link(way.link_waited, moved);
}

/// Of tiles of several replicas that end the run together the first one counts.
void PathRecorder::all_copied() {
  if (last_tile_ == kNoTile) return;
  const PathRef last = last_;
  const TileId tile = last_tile_;
  for (std::uint32_t number = 0; number < replicas_.size(); ++number) {
    if (replicas_[number].empty()) continue;
    PathRef path = last;
    come_from_replica(path, number);
    step_closed(path, replicas_[number][tile], last_end_);
  }
}

}  // namespace wafersim::sim
