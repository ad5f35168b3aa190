#include "sim/components.h"

#include <xxhash.h>

#include <algorithm>
#include <set>

#include "sim/state_visit.h"
#include "sim/trains.h"

namespace wafersim::sim {
namespace {

/// Bytes of states that may be written for each event without anything being saved, a few percent of the time; and at the start.
constexpr std::uint64_t kBytesPerEvent = 2;
constexpr std::uint64_t kBytesAhead = std::uint64_t{1} << 21;
/// States of more tiles are not looked at.
constexpr std::size_t kMostTiles = 100'000;
/// An operation is a few dozen events.
constexpr std::uint64_t kBytesPerOperation = 64;

}  // namespace

Components::Components(const ComponentParts& parts, bool eager) : parts_(parts), eager_(eager) {
  const models::HardwareModel& hardware = parts_.network.hardware;
  if (hardware.fidelity != models::Fidelity::packet) {
    obstacle_ = "messages take no time";
  } else if (!parts_.network.routes.plain()) {
    obstacle_ = "the routes of packets are not a function of place and destination";
  } else if (parts_.mesh.concentrated()) {
    obstacle_ = "tiles share routers";
  } else if (parts_.wafer.used_tiles().size() > kMostTiles) {
    obstacle_ = "there are too many tiles";
  } else if (hardware.injection_cycles + parts_.network.router_cycles == 0) {
    obstacle_ = "packets leave a tile in the cycle in which they are sent";
  } else {
    find_components();
  }
}

void Components::find_components() {
  component_.assign(parts_.mesh.tile_count(), kNone);
  group_.assign(parts_.mesh.tile_count(), kNone);
  place_.assign(parts_.mesh.tile_count(), 0);
  for (Tile* const tile : parts_.wafer.used_tiles()) {
    const workloads::TileBinding& binding = tile->trace_core()->binding();
    const auto group = static_cast<std::size_t>(binding.group);
    if (components_.size() <= group) components_.resize(group + 1);
    Component& component = components_[group];
    if (component.tiles.empty()) component.first = &binding;
    place_[tile->id()] = static_cast<std::uint32_t>(component.tiles.size());
    component_[tile->id()] = group_[tile->id()] = static_cast<std::uint32_t>(group);
    component.tiles.push_back(tile);
  }
  bool any = false;
  std::vector<std::uint32_t> none;
  for (const Component& component : components_) {
    if (is_apart(component)) {
      any = true;
    } else {
      none.push_back(number(component));
    }
  }
  for (std::uint32_t& component : component_) {
    if (std::find(none.begin(), none.end(), component) != none.end()) component = kNone;
  }
  if (!any) obstacle_ = "no stage has links and DRAM of its own";
  find_twins();
}

int Components::replica_of(std::uint32_t component) const {
  return static_cast<int>(component) / parts_.trace.trace().pipeline_stages;
}

const workloads::Program& Components::program_of(const Component& component, std::size_t place) const {
  return parts_.trace.trace().programs[component.tiles[place]->trace_core()->binding().program];
}

/// A stage of another replica that lies as that of the first one does and has the same steps does what was seen of that.
void Components::find_twins() {
  constexpr TileId kElsewhere = TileId{1} << 31;
  const auto stages = static_cast<std::size_t>(parts_.trace.trace().pipeline_stages);
  names_.assign((components_.size() + stages - 1) / stages, std::vector<TileId>(component_.size()));
  for (std::vector<TileId>& names : names_) {
    for (TileId tile = 0; tile < names.size(); ++tile) names[tile] = tile | kElsewhere;
  }
  for (std::size_t i = 0; i < components_.size(); ++i) {
    const Component& first = components_[i % stages];
    const std::size_t tiles = std::min(first.tiles.size(), components_[i].tiles.size());
    for (std::size_t t = 0; t < tiles; ++t) names_[i / stages][components_[i].tiles[t]->id()] = first.tiles[t]->id();
  }
  for (std::size_t i = 0; i < components_.size(); ++i) {
    components_[i].memory = static_cast<std::uint32_t>(are_twins(components_[i % stages], components_[i]) ? i % stages : i);
  }
}

/// A tile of the replica of component `from` in that of `to`, others as they are.
TileId Components::moved(TileId tile, std::uint32_t from, std::uint32_t to) const {
  const std::uint32_t own = group_[tile];
  if (own == kNone || replica_of(own) != replica_of(from)) return tile;
  const auto shift = (to / parts_.trace.trace().pipeline_stages - from / parts_.trace.trace().pipeline_stages) *
                     parts_.trace.trace().pipeline_stages;
  return components_[own + static_cast<std::uint32_t>(shift)].tiles[place_[tile]]->id();
}

/// Tiles, links, programs as far as templates go, and what each names its peers are alike.
bool Components::are_twins(const Component& first, const Component& other) const {
  if (&first == &other || first.tiles.size() != other.tiles.size() || first.tiles.empty()) return false;
  const workloads::Trace& trace = parts_.trace.trace();
  const topology::Mesh& mesh = parts_.mesh;
  const std::uint32_t from = number(first), to = number(other);
  if (component_[first.tiles.front()->id()] != from || component_[other.tiles.front()->id()] != to) return false;
  const auto inside = [&](const Component& of, TileId tile) {
    return group_[tile] != kNone && replica_of(group_[tile]) == replica_of(number(of));
  };
  const std::vector<TileId>& names = names_[static_cast<std::size_t>(replica_of(to))];
  const auto same_place = [&](TileId here, TileId there) { return names_.front()[here] == names[there]; };
  for (std::size_t i = 0; i < first.tiles.size(); ++i) {
    const workloads::TileBinding& one = first.tiles[i]->trace_core()->binding();
    const workloads::TileBinding& two = other.tiles[i]->trace_core()->binding();
    if (one.stage != two.stage || one.layout != two.layout || one.peer_count != two.peer_count) return false;
    if (!parts_.network.flow_places.empty() &&
        parts_.network.flow_places[one.tile].position != parts_.network.flow_places[two.tile].position) {
      return false;
    }
    for (std::uint32_t direction = 0; direction < topology::kDirections; ++direction) {
      const auto way = static_cast<topology::Direction>(direction);
      const auto kind = [&](TileId tile) { return mesh.link_class(topology::Mesh::link(tile, way)); };
      if (kind(one.tile) != kind(two.tile)) return false;
    }
    for (std::uint32_t peer = 0; peer < one.peer_count; ++peer) {
      const TileId here = trace.peer(one, peer), there = trace.peer(two, peer);
      if (inside(first, here) != inside(other, there)) return false;
      if (!inside(first, here)) continue;
      if (!same_place(here, there)) return false;
      if (component_[here] != from) continue;
      for (TileId a = one.tile, b = two.tile; a != here;) {
        const topology::Hop hop = parts_.network.routes.next(a, here);
        if (parts_.network.routes.next(b, there) != hop) return false;
        a = mesh.neighbour(a, static_cast<topology::Direction>(hop));
        b = mesh.neighbour(b, static_cast<topology::Direction>(hop));
        if (!same_place(a, b)) return false;
      }
    }
  }
  return true;
}

/// Messages between its tiles stay on them, and no DRAM is shared with others.
bool Components::is_apart(const Component& component) const {
  const std::uint32_t own = number(component);
  const auto inside = [&](TileId tile) { return component_[tile] == own; };
  std::set<const Dram*> drams;
  for (const Tile* const tile : component.tiles) {
    if (tile->dram != nullptr) drams.insert(tile->dram);
  }
  for (const Tile* const tile : parts_.wafer.used_tiles()) {
    if (drams.contains(tile->dram) && !inside(tile->id())) return false;
  }
  const auto stays = [&](TileId at, TileId destination) {
    while (at != destination) {
      at = parts_.mesh.neighbour(at, static_cast<topology::Direction>(parts_.network.routes.next(at, destination)));
      if (!inside(at)) return false;
    }
    return true;
  };
  const workloads::Trace& trace = parts_.trace.trace();
  for (const Tile* const tile : component.tiles) {
    const workloads::TileBinding& binding = tile->trace_core()->binding();
    for (std::uint32_t peer = 0; peer < binding.peer_count; ++peer) {
      const TileId other = trace.peer(binding, peer);
      if (inside(other) && !stays(tile->id(), other)) return false;
    }
  }
  return !component.tiles.empty();
}

const std::vector<std::uint32_t>& Components::way(TileId source, TileId destination) {
  const auto [at, fresh] = ways_.try_emplace(std::uint64_t{source} << 32 | destination);
  if (!fresh) return at->second;
  std::vector<std::uint32_t>& way = at->second;
  const auto add = [&](TileId tile) {
    const std::uint32_t component = component_[tile];
    if (component != kNone && std::find(way.begin(), way.end(), component) == way.end()) way.push_back(component);
  };
  add(source);
  for (TileId tile = source; tile != destination; add(tile)) {
    tile = parts_.mesh.neighbour(tile, static_cast<topology::Direction>(parts_.network.routes.next(tile, destination)));
  }
  return way;
}

bool Components::opened_foreign(TileId source, TileId destination) {
  require_invariant(apart_ == nullptr, "a component that is alone sends a message to others");
  for (const std::uint32_t index : way(source, destination)) {
    Component& component = components_[index];
    ++component.foreign;
    if (component.mode != Mode::awake) {
      touch(index);
    } else {
      component.nap = 0;
    }
  }
  if (const std::uint32_t own = component_[source]; own != kNone && components_[own].mode == Mode::recording) {
    components_[own].opens.emplace_back(source, destination);
  }
  const std::uint32_t other = component_[destination];
  if (other == kNone || components_[other].mode == Mode::awake) return false;
  components_[other].begins.push_back(destination);
  return true;
}

void Components::received_foreign(TileId source, TileId destination) {
  for (const std::uint32_t index : way(source, destination)) {
    if (--components_[index].foreign == 0) wait_for_quiet(components_[index]);
  }
}

bool Components::all_awake(TileId source, TileId destination) {
  const std::vector<std::uint32_t>& on_it = way(source, destination);
  return std::all_of(on_it.begin(), on_it.end(), [this](std::uint32_t c) { return components_[c].mode == Mode::awake; });
}

void Components::touch(std::uint32_t index) {
  if (std::exchange(components_[index].touched, true)) return;
  touched_.push_back(index);
  parts_.calendar.request_boundary();
}

void Components::ask(std::uint32_t index) {
  if (std::exchange(components_[index].asked, true)) return;
  asked_.push_back(index);
  parts_.calendar.request_boundary();
}

/// The last message of others has gone. It is neither recorded nor asleep, as one passed it.
void Components::wait_for_quiet(Component& component) {
  component.nap = ++naps_;
  alarms_.push({parts_.calendar.now() + components_[component.memory].quiet, number(component), component.nap});
  set_alarm();
}

void Components::step_done(const workloads::TileBinding& binding, std::uint32_t index, const StepTimes& times) {
  const std::uint32_t own = component_[binding.tile];
  if (own == kNone) return;
  Component& component = components_[own];
  if (component.mode != Mode::awake) component.done.push_back({place_[binding.tile], index, times});
  if (apart_ == nullptr && &binding == component.first && component.foreign == 0) ask(own);
}

void Components::at_boundary() {
  const Cycle now = parts_.calendar.current();
  for (; !alarms_.empty() && alarms_.top().at <= now; alarms_.pop()) {
    const Alarm& alarm = alarms_.top();
    Component& component = components_[alarm.component];
    if (component.nap != alarm.nap) continue;
    if (component.mode == Mode::asleep) {
      touch(alarm.component);
    } else if (component.mode == Mode::awake && component.foreign == 0 && may_look()) {
      look(component, nullptr, true);
    }
  }
  // Who wakes may send to others, which wake then.
  for (std::size_t i = 0; i < touched_.size(); ++i) {
    Component& component = components_[touched_[i]];
    component.touched = false;
    if (component.mode == Mode::recording) {
      settle_trains(component, now + 1);
      RelativeState relative;
      end_recording(component, standing(component, relative));
      stand_up(component, now);
    } else if (component.mode == Mode::asleep) {
      wake(component, now, true);
    }
  }
  touched_.clear();
  for (std::size_t i = 0; i < asked_.size(); ++i) {
    Component& component = components_[asked_[i]];
    component.asked = false;
    if (component.foreign != 0 || component.mode == Mode::asleep) continue;
    if (component.mode == Mode::recording || may_look()) look(component, nullptr);
  }
  asked_.clear();
  set_alarm();
}

void Components::set_alarm() {
  while (!alarms_.empty() && components_[alarms_.top().component].nap != alarms_.top().nap) alarms_.pop();
  parts_.calendar.set_alarm(alarms_.empty() ? kNever : alarms_.top().at);
}

/// States are written no more often than what they have saved, or the run without them, makes good.
bool Components::may_look() const {
  return eager_ || written_ <= kBytesAhead + kBytesPerEvent * parts_.calendar.events() + kBytesPerOperation * skipped_operations_;
}

void Components::settle_trains(const Component& component, Cycle cycle) {
  if (parts_.network.trains == nullptr) return;
  const std::uint32_t own = number(component);
  parts_.calendar.between_cycles([&] {
    parts_.network.trains->settle_from([&](TileId source) { return component_[source] == own; }, cycle);
  });
}

/// Of a component whose tiles hold its state, with that in relative form.
Components::Standing Components::standing(const Component& component, RelativeState& relative) const {
  Standing now;
  now.at = parts_.calendar.current();
  const TraceCore& first = *component.tiles.front()->trace_core();
  const std::vector<workloads::Step>& steps = parts_.trace.trace().programs[component.first->program].steps;
  const std::size_t step = std::min<std::size_t>(first.oldest_step(), steps.size() - 1);
  now.microbatch = std::max(steps[step].microbatch, 0);
  now.iteration = steps[step].iteration;
  for (const Tile* const tile : component.tiles) {
    const TraceCore& core = *tile->trace_core();
    now.positions.push_back({core.next_step(), core.oldest_step()});
    now.levels.push_back(tile->sram->levels());
    now.operations += core.operations();
  }
  const std::vector<TileId>& names = names_[static_cast<std::size_t>(replica_of(number(component)))];
  relative = parts_.state.relative_part(component.tiles, now.microbatch, now.iteration, names);
  now.counters = std::move(relative.counters);
  return now;
}

/// Finds what the component does from here on, or begins to see it. It is awake or being recorded, no other's message passes it.
/// `reached` is a mark of which this is the state.
void Components::look(Component& component, Mark* reached, bool after_others) {
  const Cycle now = parts_.calendar.current();
  if (component.mode == Mode::recording && component.from.at == now) return;
  settle_trains(component, now + 1);
  RelativeState relative;
  Standing here = standing(component, relative);
  if (component.mode == Mode::recording) reached = end_recording(component, here);
  component.after_others = after_others;
  component.nap = 0;
  const std::uint64_t size = relative.bytes.size();
  if (relative.events == 0) return;
  Situation& situation = situation_of(component, std::move(relative.bytes));
  if (reached != nullptr) {
    reached->situation = &situation;
    reached->at.microbatch = here.microbatch;
    reached->at.iteration = here.iteration;
  }
  component.from = std::move(here);
  component.peaks.clear();
  for (Tile* const tile : component.tiles) component.peaks.push_back(tile->sram->peaks());
  component.mark = nullptr;
  if (Episode* const episode = usable(component, component.from, situation)) {
    component.events = parts_.state.take_events(component.tiles);
    return fall_asleep(component, situation, *episode);
  }
  written_ += size;
  if (kept_ <= kMostKept) start_recording(component, situation);
}

void Components::start_recording(Component& component, Situation& situation) {
  component.mode = Mode::recording;
  component.situation = &situation;
  component.mixed_before = parts_.shared.mixed_arrivals;
  component.done.clear();
  component.opens.clear();
  for (Tile* const tile : component.tiles) tile->sram->set_peaks(tile->sram->levels());
}

/// The component is awake behind it; flights that begin in this cycle have not begun.
void Components::stop_recording(Component& component) {
  component.mode = Mode::awake;
  for (std::size_t i = 0; i < component.tiles.size(); ++i) {
    Sram& sram = *component.tiles[i]->sram;
    sram.set_peaks(largest(component.peaks[i], sram.peaks()));
  }
}

/// What was recorded is kept as an episode, whose mark is returned; null when nothing was.
Components::Mark* Components::end_recording(Component& component, const Standing& now) {
  std::vector<MemoryLevels> peaks;
  for (std::size_t i = 0; i < component.tiles.size(); ++i) {
    peaks.push_back(above(component.tiles[i]->sram->peaks(), component.from.levels[i]));
  }
  stop_recording(component);
  const Cycle length = now.at - component.from.at;
  if (now.operations - component.from.operations < (eager_ ? 1 : kLeastOperations)) {
    Component& memory = components_[component.memory];
    const bool too_soon = component.after_others && component.foreign != 0 && length < kMostQuiet;
    if (too_soon) memory.quiet = std::max(memory.quiet, length + 1);
    component.opens.clear();
    return nullptr;
  }
  Episode& episode = component.situation->episodes.emplace_back();
  episode.component = number(component);
  episode.from = component.from;
  episode.end = now.positions;
  episode.horizon = length;
  episode.mixed = parts_.shared.mixed_arrivals != component.mixed_before;
  episode.opens = std::exchange(component.opens, {});
  const int replica = replica_of(episode.component);
  episode.own = std::any_of(episode.opens.begin(), episode.opens.end(), [&](const auto& ends) {
    const std::uint32_t there = group_[ends.second];
    return there == kNone || replica_of(there) != replica;
  });
  Mark& mark = episode.marks.emplace_back();
  mark.from = component.from;
  mark.at = now;
  mark.at.microbatch = mark.from.microbatch;
  mark.at.iteration = mark.from.iteration;
  mark.peaks = std::move(peaks);
  keep_state(component, mark);
  return &mark;
}

void Components::keep_state(Component& component, Mark& mark) {
  mark.component = number(component);
  mark.done = component.done;
  mark.state = parts_.state.save(component.tiles).bytes;
  kept_ += mark.state.size() + 16 * mark.at.counters.size();
  written_ += mark.state.size();
}

Components::Situation& Components::situation_of(Component& component, std::vector<char> bytes) {
  const XXH128_hash_t hash = XXH3_128bits(bytes.data(), bytes.size());
  std::deque<Situation>& alike = components_[component.memory].situations[{hash.low64, hash.high64}];
  for (Situation& situation : alike) {
    if (situation.bytes == bytes) return situation;
  }
  kept_ += bytes.size();
  alike.push_back({std::move(bytes), {}});
  return alike.back();
}

/// What was seen from a situation on that will happen again from `now` on.
Components::Episode* Components::usable(Component& component, const Standing& now, Situation& situation) {
  for (Episode& episode : situation.episodes) {
    const std::int32_t iterations = now.iteration - episode.from.iteration;
    if ((episode.mixed && iterations != 0) || (episode.own && episode.component != number(component))) continue;
    bool alike = fits(component, now, episode.marks.back());
    for (std::size_t i = 0; alike && i < component.tiles.size(); ++i) {
      const ProgramPosition& from = episode.from.positions[i];
      const ProgramStretch stretch{program_of(components_[episode.component], i), program_of(component, i), from,
                                   now.positions[i], now.microbatch - episode.from.microbatch, iterations};
      // The step that a program will open next was looked at.
      for (std::uint32_t step = from.next; alike && step <= episode.end[i].next; ++step) alike = stretch.alike(step);
    }
    if (alike) return &episode;
  }
  return nullptr;
}

/// What the tiles would hold has room.
bool Components::fits(const Component& component, const Standing& now, const Mark& mark) const {
  for (std::size_t i = 0; i < component.tiles.size(); ++i) {
    const Bytes sram = now.levels[i].sram + mark.peaks[i].sram, dram = now.levels[i].dram + mark.peaks[i].dram;
    if (!component.tiles[i]->sram->fits(sram, dram)) return false;
  }
  return true;
}

void Components::fall_asleep(Component& component, Situation& situation, Episode& episode) {
  component.mode = Mode::asleep;
  component.situation = &situation;
  component.episode = &episode;
  component.done.clear();
  component.nap = ++naps_;
  alarms_.push({component.from.at + episode.horizon, number(component), component.nap});
}

std::vector<std::uint32_t> Components::passing() const {
  std::vector<std::uint32_t> passing;
  for (const Component& component : components_) passing.push_back(component.foreign);
  return passing;
}

bool Components::resume(const std::vector<std::uint32_t>& passing) {
  if (passing.size() != components_.size()) return false;
  for (std::size_t i = 0; i < passing.size(); ++i) components_[i].foreign = passing[i];
  return true;
}

void Components::copy_first_replica() {
  const auto stages = static_cast<std::size_t>(parts_.trace.trace().pipeline_stages);
  for (std::size_t i = stages; i < components_.size(); ++i) components_[i].foreign = components_[i % stages].foreign;
}

}  // namespace wafersim::sim
