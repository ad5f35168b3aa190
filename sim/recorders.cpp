#include "sim/recorders.h"

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

#include "workloads/message_keys.h"

namespace wafersim::sim {

using topology::LinkId;

namespace {

/// What the matrix engine of the busiest tile computes: no run takes less.
Cycle least_cycles(const CompiledTrace& trace) {
  std::vector<Cycle> of_template;
  for (std::size_t i = 0; i < trace.trace().templates.size(); ++i) {
    const CompiledTemplate& step = trace.step_template(static_cast<std::uint32_t>(i));
    Cycle sum = 0;
    for (const std::uint32_t op : step.in_order[static_cast<std::size_t>(Engine::matrix)]) {
      sum += step.ops[op].compute_cycles;
    }
    of_template.push_back(sum);
  }
  Cycle most = 0;
  for (const workloads::Program& program : trace.trace().programs) {
    Cycle sum = 0;
    for (const workloads::Step& step : program.steps) sum += of_template[step.step_template];
    most = std::max(most, sum);
  }
  return most;
}

}  // namespace

Recorders::Recorders(const Parts& parts) : parts_(parts) {
  if (parts.options.record_memory) attach_timelines();
  if (parts.options.record_activity || parts.options.record_links) attach_windows();
  if (parts.options.record_activity) attach_activity();
  if (!parts.options.observer.tiles.empty()) attach_observer();
  attach_messages();
  if (parts.options.record_path) attach_path();
}

/// All tiles share a number of rows: which are the fullest and the emptiest is known at the end only.
void Recorders::attach_timelines() {
  constexpr std::size_t kLeast = 16, kMost = std::size_t{1} << 16;
  const std::size_t tiles = std::max<std::size_t>(parts_.wafer.used_tiles().size(), 1);
  const std::size_t rows = std::clamp(parts_.options.memory_rows / tiles, kLeast, kMost);
  timelines_.reserve(parts_.wafer.used_tiles().size());
  for (Tile* tile : parts_.wafer.used_tiles()) {
    timelines_.emplace_back(tile->sram->levels(), rows);
    tile->sram->set_timeline(&timelines_.back());
  }
}

void Recorders::attach_windows() {
  const std::size_t tiles = parts_.options.record_activity ? parts_.wafer.used_tiles().size() : 0;
  windows_.emplace(tiles, parts_.loads.links().size(), least_cycles(parts_.trace));
  parts_.calendar.sample(windows_->next_sample(), [this](Cycle now) {
    sample_links(now);
    return windows_->next_sample();
  });
}

void Recorders::attach_activity() {
  activity_ = std::make_unique<Activity>(parts_.trace, *windows_, parts_.options.activity_tiles);
  for (std::size_t i = 0; i < parts_.wafer.used_tiles().size(); ++i) {
    if (auto* const core = dynamic_cast<TraceCore*>(parts_.wafer.used_tiles()[i]->core)) core->record(activity_->tile(i));
  }
}

void Recorders::attach_observer() {
  const TileObserver& observer = parts_.options.observer;
  operation_sink_ = [this](const OperationRecord& operation) { happened(operation); };
  for (const TileId id : observer.tiles) {
    if (observed_.size() <= id) observed_.resize(std::size_t{id} + 1);
    observed_[id] = true;
    const Tile& tile = parts_.wafer.tile(id);
    auto* const core = dynamic_cast<TraceCore*>(tile.core);
    if (observer.on_operation && core != nullptr) core->record(operation_sink_);
    if (!observer.on_memory) continue;
    observer.on_memory(id, 0, tile.sram->levels());
    level_sinks_.push_back([this, id](Cycle cycle, const MemoryLevels& levels) { happened(Level{id, cycle, levels}); });
    tile.sram->set_level_sink(&level_sinks_.back());
  }
}

void Recorders::attach_messages() {
  const auto& on_message = parts_.options.on_message;
  const bool observes = parts_.options.observer.on_message != nullptr;
  if (!activity_ && !observes && !on_message) return;
  message_sink_ = [this, observes](const MessageRecord& message) {
    if (activity_) activity_->message(message);
    if (observes && (is_observed(message.source) || is_observed(message.destination))) happened(message);
    if (parts_.options.on_message) parts_.options.on_message(message);
  };
  for (Tile* tile : parts_.wafer.used_tiles()) tile->nic->set_message_sink(&message_sink_);
}

void Recorders::attach_path() {
  if (parts_.options.core_factory) throw PlanError("the critical path is recorded for cores that run the trace only");
  path_ = std::make_unique<PathRecorder>(parts_.trace, parts_.network);
  parts_.network.path = path_.get();
  const std::vector<Tile*>& tiles = parts_.wafer.used_tiles();
  for (std::size_t i = 0; i < tiles.size(); ++i) tiles[i]->trace_core()->record(path_->core(i));
}

bool Recorders::is_observed(TileId tile) const { return tile < observed_.size() && observed_[tile]; }

/// Adds what links did in all stretches that ended by `now`.
void Recorders::sample_links(Cycle now) {
  while (windows_->next_sample() <= now) windows_->sample(parts_.loads.all_before(windows_->next_sample()));
}

void Recorders::measure_memory(Measurements& out) const {
  if (timelines_.empty()) return;
  const auto fuller = [](const TileMeasurement& a, const TileMeasurement& b) { return a.peak_bytes < b.peak_bytes; };
  std::set<TileId> wanted(parts_.options.memory_tiles.begin(), parts_.options.memory_tiles.end());
  wanted.insert(std::max_element(out.tiles.begin(), out.tiles.end(), fuller)->tile);
  wanted.insert(std::min_element(out.tiles.begin(), out.tiles.end(), fuller)->tile);
  for (std::size_t i = 0; i < out.tiles.size(); ++i) {
    if (wanted.contains(out.tiles[i].tile)) out.memory.push_back({out.tiles[i].tile, timelines_[i].rows(out.cycles)});
  }
}

void Recorders::measure_windows(Measurements& out) {
  if (!windows_) return;
  sample_links(out.cycles);
  windows_->end_at(out.cycles);
  sample_links(out.cycles);
  out.windows = windows_->take(out.cycles);
}

void Recorders::happened(const Event& event) {
  if (happened_at_ != parts_.calendar.now()) tell_cycle();
  happened_at_ = parts_.calendar.now();
  happened_.push_back(event);
}

/// In an order that does not depend on that in which tiles were visited.
void Recorders::tell_cycle() {
  std::stable_sort(happened_.begin(), happened_.end(), before);
  for (const Event& event : happened_) tell(event);
  if (period_ && !period_->too_many) {
    period_->too_many = period_->events.size() + happened_.size() > parts_.options.repeated_events;
    if (!period_->too_many) period_->events.insert(period_->events.end(), happened_.begin(), happened_.end());
  }
  happened_.clear();
}

bool Recorders::before(const Event& a, const Event& b) {
  if (a.index() != b.index()) return a.index() < b.index();
  const auto key = [](const Event& event) {
    if (const auto* operation = std::get_if<OperationRecord>(&event)) {
      return std::tuple(operation->tile, operation->start, std::uint64_t{operation->step}, static_cast<int>(operation->kind));
    }
    if (const auto* message = std::get_if<MessageRecord>(&event)) {
      return std::tuple(message->source, message->posted, message->key, static_cast<int>(message->destination));
    }
    const Level& level = std::get<Level>(event);
    return std::tuple(level.tile, level.cycle, std::uint64_t{0}, 0);
  };
  return key(a) < key(b);
}

void Recorders::tell(const Event& event) const {
  const TileObserver& observer = parts_.options.observer;
  if (const auto* operation = std::get_if<OperationRecord>(&event)) {
    observer.on_operation(*operation);
  } else if (const auto* message = std::get_if<MessageRecord>(&event)) {
    observer.on_message(*message);
  } else {
    const Level& level = std::get<Level>(event);
    observer.on_memory(level.tile, level.cycle, level.levels);
  }
}

void Recorders::begin_period(Cycle length, std::uint64_t times, const NamedRecords& named) {
  tell_cycle();
  const Cycle now = parts_.calendar.current();
  period_ = std::make_unique<Period>(Period{length, times, {}, false});
  for (MemoryTimeline& timeline : timelines_) timeline.begin_period();
  if (path_) path_->begin_period(named);
  if (activity_) activity_->begin_period(length, times);
  if (!windows_) return;
  windows_->begin_period(now, length, times, parts_.loads.all_before(now + 1));
  parts_.calendar.sample_by(windows_->next_sample());
}

bool Recorders::end_period(const StateShift& one, const NamedRecords& named) {
  tell_cycle();
  if (period_->too_many || (activity_ && activity_->too_many_messages())) {
    drop_period();
    return false;
  }
  const std::unique_ptr<Period> period = std::move(period_);
  for (MemoryTimeline& timeline : timelines_) timeline.end_period(period->length, period->times);
  if (windows_) windows_->end_period(parts_.loads.all_before(parts_.calendar.current() + 1));
  if (activity_) activity_->end_period();
  if (path_) path_->end_period(named, one, period->times);
  for (std::uint64_t k = 1; k <= period->times && !period->events.empty(); ++k) {
    for (Event& event : period->events) {
      move(event, one);
      tell(event);
    }
  }
  return true;
}

void Recorders::move(Event& event, const StateShift& by) {
  if (auto* const operation = std::get_if<OperationRecord>(&event)) {
    operation->step += by.steps[operation->tile];
    operation->start += by.cycles;
    operation->end += by.cycles;
  } else if (auto* const message = std::get_if<MessageRecord>(&event)) {
    message->key = workloads::shifted_key(message->key, by.microbatches, by.iterations);
    message->posted += by.cycles;
    message->injected += by.cycles;
    message->received += by.cycles;
  } else {
    std::get<Level>(event).cycle += by.cycles;
  }
}

void Recorders::renumber(const NamedRecords& from, const NamedRecords& to, Cycle by) {
  if (path_) path_->renumber(from, to, by);
}

void Recorders::drop_period() {
  if (!std::exchange(period_, nullptr)) return;
  if (path_) path_->drop_period();
  for (MemoryTimeline& timeline : timelines_) timeline.drop_period();
  if (windows_) windows_->drop_period();
  if (activity_) activity_->drop_period();
}

void Recorders::measure(Measurements& out) {
  tell_cycle();
  measure_memory(out);
  measure_windows(out);
  if (activity_) out.activity = activity_->take();
  if (path_ && !out.partial) out.critical_path = path_->take(out.cycles);
}

std::string Recorders::obstacle(const Replicas& replicas) const {
  const std::vector<TileId>& first = replicas.tiles(0);
  const auto all_there = [&first](const std::vector<TileId>& tiles) {
    return std::all_of(tiles.begin(), tiles.end(), [&](TileId tile) { return std::binary_search(first.begin(), first.end(), tile); });
  };
  const bool spans_there = !activity_ || all_there(parts_.options.activity_tiles);
  if (spans_there && all_there(parts_.options.observer.tiles)) return "";
  return "what tiles of other replicas than the first do is recorded";
}

void Recorders::copy_first_replica(const Replicas& replicas, const NamedRecords& first, const std::vector<NamedRecords>& under_way) {
  Activity::Moves tiles, links;
  for (std::size_t replica = 1; replica < static_cast<std::size_t>(replicas.count()); ++replica) {
    const std::vector<TileId> moved = replicas.moved(replica);
    const Activity::Moves tiles_here = moves_of_tiles(replicas, moved);
    tiles.insert(tiles.end(), tiles_here.begin(), tiles_here.end());
    if (windows_) add_moves_of_links(replicas, moved, links);
    if (path_) path_->copy_first_replica({static_cast<std::uint32_t>(replica), moved, tiles_here, first, under_way[replica]});
  }
  for (const auto& [from, to] : tiles) {
    if (!timelines_.empty()) timelines_[to] = timelines_[from];
    if (activity_) windows_->copy_tile(from, to);
  }
  for (const auto& [from, to] : links) windows_->copy_link(from, to);
  if (activity_) activity_->copy_first_replica(tiles);
  if (path_) path_->all_copied();
}

Activity::Moves Recorders::moves_of_tiles(const Replicas& replicas, const std::vector<TileId>& moved) const {
  Activity::Moves moves;
  for (const TileId id : replicas.tiles(0)) {
    moves.emplace_back(parts_.wafer.tile(id).used_index, parts_.wafer.tile(moved[id]).used_index);
  }
  return moves;
}

void Recorders::add_moves_of_links(const Replicas& replicas, const std::vector<TileId>& moved, Activity::Moves& moves) const {
  const std::vector<LinkId>& links = parts_.loads.links();
  for (std::size_t place = 0; place < links.size(); ++place) {
    const TileId source = topology::Mesh::link_source(links[place]);
    if (!std::binary_search(replicas.tiles(0).begin(), replicas.tiles(0).end(), source)) continue;
    const LinkId link = moved_link(links[place], moved);
    const auto other = std::lower_bound(links.begin(), links.end(), link);
    if (other != links.end() && *other == link) moves.emplace_back(place, other - links.begin());
  }
}

}  // namespace wafersim::sim
