// How components (sim/components.h) that sleep are what they are again.
#include <algorithm>

#include "sim/components.h"
#include "sim/state_visit.h"
#include "sim/trains.h"

namespace wafersim::sim {
namespace {

StepTimes later(const StepTimes& times, Cycle by) {
  return {times.opened + by, times.first_compute == kNever ? kNever : times.first_compute + by, times.done + by};
}

}  // namespace

MemoryLevels Components::plus(const MemoryLevels& a, const MemoryLevels& b) {
  MemoryLevels sum{{}, a.sram + b.sram, a.dram + b.dram, a.total + b.total};
  for (std::size_t i = 0; i < sum.by_class.size(); ++i) sum.by_class[i] = a.by_class[i] + b.by_class[i];
  return sum;
}

/// Modulo 2^64, so that it can be added again.
MemoryLevels Components::minus(const MemoryLevels& a, const MemoryLevels& b) {
  MemoryLevels rest{{}, a.sram - b.sram, a.dram - b.dram, a.total - b.total};
  for (std::size_t i = 0; i < rest.by_class.size(); ++i) rest.by_class[i] = a.by_class[i] - b.by_class[i];
  return rest;
}

MemoryLevels Components::above(const MemoryLevels& levels, const MemoryLevels& start) {
  const auto more = [](Bytes now, Bytes before) { return now - std::min(now, before); };
  MemoryLevels result{{}, more(levels.sram, start.sram), more(levels.dram, start.dram), more(levels.total, start.total)};
  for (std::size_t i = 0; i < result.by_class.size(); ++i) result.by_class[i] = more(levels.by_class[i], start.by_class[i]);
  return result;
}

void Components::wake_all(Cycle now) {
  for (Component& component : components_) {
    if (component.mode == Mode::recording) {
      stop_recording(component);
      component.opens.clear();
      stand_up(component, now);
    } else if (component.mode == Mode::asleep) {
      wake(component, now, false);
    }
    component.nap = 0;
  }
  alarms_ = {};  // time may be moved on
  for (const std::uint32_t index : touched_) components_[index].touched = false;
  touched_.clear();
  set_alarm();
}

/// Of one that sleeps: what it is behind cycle `now`, or asleep again from there on. With `keep` what is found by simulation is
/// kept, and it may fall asleep.
void Components::wake(Component& component, Cycle now, bool keep) {
  if (now == component.from.at + component.episode->horizon) {
    wake_at_horizon(component, keep);
  } else {
    wake_between(component, now, keep);
  }
}

void Components::wake_at_horizon(Component& component, bool keep) {
  Episode& episode = *component.episode;
  Mark& end = episode.marks.back();
  pass(component, end);
  const bool alone = episode.opens.empty() && component.foreign == 0 && keep;
  if (alone && end.situation != nullptr) {
    Episode* const next = usable(component, component.from, *end.situation);
    if (next != nullptr) return fall_asleep(component, *end.situation, *next);
  }
  const Cycle now = component.from.at;
  make_true(component);
  stand_up(component, now);
  for (const auto& [from, to] : episode.opens) {
    const TileId source = moved(from, episode.component, number(component));
    const TileId destination = moved(to, episode.component, number(component));
    if (!opened(source, destination)) parts_.network.flights[destination].begin(now);
  }
  if (alone) look(component, &end);
}

void Components::wake_between(Component& component, Cycle now, bool keep) {
  Episode& episode = *component.episode;
  const auto is_ahead = [&](const Mark& mark) { return component.from.at + mark.elapsed() > now; };
  const auto ahead = std::find_if(episode.marks.begin(), episode.marks.end(), is_ahead);
  Mark fresh;
  fresh.from = component.from;
  fresh.peaks.resize(component.tiles.size());
  if (ahead != episode.marks.begin()) {
    fresh.peaks = std::prev(ahead)->peaks;
    pass(component, *std::prev(ahead));
  }
  make_true(component);
  if (component.from.at != now) {
    const bool has_room = keep && kept_ <= kMostKept && episode.marks.size() < kMostMarks;
    simulate_apart(component, now, has_room ? &fresh : nullptr);
    if (has_room) episode.marks.insert(ahead, std::move(fresh));
  }
  stand_up(component, now);
}

/// It is, in numbers, what it was at the mark; its tiles still hold what they held.
void Components::pass(Component& component, const Mark& mark) {
  Standing& here = component.from;
  for (Done done : mark.done) {
    done.index += here.positions[done.place].next - mark.from.positions[done.place].next;
    done.times = later(done.times, here.at - mark.from.at);
    step_sink_(component.tiles[done.place]->trace_core()->binding(), done.index, done.times);
    component.done.push_back(done);
  }
  for (std::size_t i = 0; i < here.counters.size(); ++i) here.counters[i] += mark.at.counters[i] - mark.from.counters[i];
  for (std::size_t i = 0; i < component.tiles.size(); ++i) {
    component.peaks[i] = largest(component.peaks[i], plus(here.levels[i], mark.peaks[i]));
    here.levels[i] = plus(here.levels[i], minus(mark.at.levels[i], mark.from.levels[i]));
    const std::uint32_t by = here.positions[i].next - mark.from.positions[i].next;
    here.positions[i] = {mark.at.positions[i].next + by, mark.at.positions[i].oldest + by};
  }
  here.microbatch += mark.at.microbatch - mark.from.microbatch;
  here.iteration += mark.at.iteration - mark.from.iteration;
  here.at += mark.elapsed();
  const std::uint64_t operations = mark.at.operations - mark.from.operations;
  here.operations += operations;
  skipped_operations_ += operations;
  parts_.shared.operations_done += operations;
  if (component.episode->mixed) ++parts_.shared.mixed_arrivals;
  component.mark = &mark;
}

/// Its tiles hold what it is.
void Components::make_true(Component& component) {
  if (component.mark == nullptr) return;
  const Mark& mark = *std::exchange(component.mark, nullptr);
  const Standing& here = component.from;
  StateShift shift;
  shift.cycles = here.at - mark.at.at;
  shift.microbatches = here.microbatch - mark.at.microbatch;
  shift.iterations = here.iteration - mark.at.iteration;
  std::vector<std::uint64_t> counters(here.counters.size());
  for (std::size_t i = 0; i < counters.size(); ++i) counters[i] = here.counters[i] - mark.at.counters[i];
  shift.counters = counters;
  std::vector<std::uint32_t> steps(place_.size());
  for (std::size_t i = 0; i < component.tiles.size(); ++i) {
    steps[component.tiles[i]->id()] = here.positions[i].next - mark.at.positions[i].next;
  }
  shift.steps = steps;
  std::vector<TileId> tiles;
  if (mark.component != number(component)) {
    tiles.resize(component_.size());
    for (TileId tile = 0; tile < tiles.size(); ++tile) tiles[tile] = moved(tile, mark.component, number(component));
  }
  shift.tiles = tiles;
  component.events = parts_.state.exchange(component.tiles, component.events, mark.state, mark.at.at, shift);
  for (std::size_t i = 0; i < component.tiles.size(); ++i) {
    component.tiles[i]->sram->set_levels(here.levels[i]);
    component.tiles[i]->sram->set_peaks(component.peaks[i]);
  }
}

/// What its tiles hold goes on alone up to cycle `now`. `kept`, which has a start and the peaks up to what they hold, becomes what
/// is seen.
void Components::simulate_apart(Component& component, Cycle now, Mark* kept) {
  std::vector<MemoryLevels> peaks;
  for (Tile* const tile : component.tiles) {
    peaks.push_back(tile->sram->peaks());
    tile->sram->set_peaks(tile->sram->levels());
  }
  apart_ = &component;
  parts_.calendar.begin_apart(component.from.at, component.events);
  parts_.calendar.run_to(now);
  settle_trains(component, now + 1);
  if (kept != nullptr) {
    RelativeState relative;
    kept->at = standing(component, relative);
    kept->at.microbatch = kept->from.microbatch;
    kept->at.iteration = kept->from.iteration;
    keep_state(component, *kept);
  }
  component.events = parts_.calendar.end_apart();
  apart_ = nullptr;
  for (std::size_t i = 0; i < component.tiles.size(); ++i) {
    Sram& sram = *component.tiles[i]->sram;
    const MemoryLevels seen = sram.peaks();
    sram.set_peaks(largest(peaks[i], seen));
    if (kept != nullptr) kept->peaks[i] = largest(kept->peaks[i], above(seen, kept->from.levels[i]));
  }
}

/// Its events are among those of all, from behind cycle `now` on.
void Components::stand_up(Component& component, Cycle now) {
  if (component.mode == Mode::asleep) {
    parts_.calendar.put(component.events);
    component.events.clear();
    component.nap = 0;
  }
  component.mode = Mode::awake;
  for (const TileId tile : component.begins) parts_.network.flights[tile].begin(now);
  component.begins.clear();
}

}  // namespace wafersim::sim
