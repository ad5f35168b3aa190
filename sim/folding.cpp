#include "sim/folding.h"

#include <algorithm>
#include <fmt/format.h>

#include "sim/state_visit.h"
#include "sim/trains.h"

namespace wafersim::sim {

Folding::Folding(const FoldingParts& parts, bool fold)
    : parts_(parts), fold_(fold), state_(parts.wafer, parts.network, parts.calendar) {
  if (!fold) return;
  parts_.recorder.set_observer(this);
  parts_.calendar.on_boundary([this] { at_boundary(); });
}

void Folding::find_replicas() {
  replicas_.emplace(parts_.trace, parts_.network.hardware, parts_.mesh, parts_.network.routes);
}

std::vector<Tile*> Folding::tiles_of(std::size_t replica) const {
  const std::vector<TileId>& ids = replicas_->tiles(replica);
  std::vector<Tile*> tiles;
  for (Tile* tile : state_.tiles()) {
    if (std::binary_search(ids.begin(), ids.end(), tile->id())) tiles.push_back(tile);
  }
  return tiles;
}

std::vector<Tile*> Folding::active() const { return alone_ ? tiles_of(0) : state_.tiles(); }

void Folding::watch(std::vector<Tile*> tiles) {
  if (recurrence_) {
    done_.skipped_periods += recurrence_->periods();
    done_.skipped_cycles += recurrence_->skipped_cycles();
    if (recurrence_->period() != 0) done_.period_cycles = recurrence_->period();
    folded_operations_ += recurrence_->skipped_operations();
  }
  recurrence_.reset();
  if (!fold_ || parts_.draws || !parts_.periods) return;
  recurrence_ = std::make_unique<Recurrence>(
      RecurrenceParts{state_, parts_.calendar, parts_.trace, parts_.recorder, parts_.shared, parts_.recorders}, std::move(tiles),
      parts_.eager);
}

/// Of runs of which nothing is recorded but sums and steps.
void Folding::find_components() {
  if (!fold_ || !parts_.stages) return;
  if (parts_.recorders.any()) {
    component_obstacle_ = "what happens when is recorded";
    return;
  }
  const ComponentParts parts{parts_.wafer, state_, parts_.network, parts_.calendar, parts_.trace, parts_.shared, parts_.mesh};
  components_ = std::make_unique<Components>(parts, parts_.eager);
  component_obstacle_ = components_->obstacle();
  if (!component_obstacle_.empty()) return components_.reset();
  components_->on_step([this](const workloads::TileBinding& binding, std::uint32_t index, const StepTimes& times) {
    parts_.recorder.record(binding, index, parts_.trace.trace().programs[binding.program].steps[index], times);
    if (recurrence_ && recurrence_->step_done(binding, index, times) && times.done == parts_.calendar.current()) look_ = true;
  });
  parts_.network.components = components_.get();
}

void Folding::start() {
  find_components();
  if (fold_ && parts_.trace.trace().replicas > 1) {
    find_replicas();
    recording_obstacle_ = replicas_->obstacle().empty() ? parts_.recorders.obstacle(*replicas_) : "";
    alone_ = obstacle().empty();
  }
  if (alone_) {
    for (std::size_t replica = 1; replica < static_cast<std::size_t>(replicas_->count()); ++replica) {
      state_.drop_events(tiles_of(replica));
    }
    done_.replicas_folded = replicas_->count();
  }
  watch(active());
}

void Folding::step_opened(const workloads::TileBinding& binding, std::uint32_t index) {
  if (!alone_ || index < replicas_->last_alone(binding.tile)) return;
  meets_ = true;
  parts_.calendar.request_boundary();
}

void Folding::step_done(const workloads::TileBinding& binding, std::uint32_t index, const StepTimes& times) {
  if (components_) components_->step_done(binding, index, times);
  if (!recurrence_ || !recurrence_->step_done(binding, index, times)) return;
  look_ = true;
  parts_.calendar.request_boundary();
}

/// So that what trains have done is in the state.
void Folding::settle_trains() {
  if (parts_.network.trains != nullptr) parts_.network.trains->settle_all(parts_.calendar.current() + 1);
}

void Folding::at_boundary() {
  if (components_) components_->at_boundary();
  if (look_) {
    if (components_) components_->wake_all(parts_.calendar.current());
    settle_trains();
    recurrence_->look();
    look_ = false;
  }
  if (alone_ && (meets_ || passed_last_alone())) unfold();
}

/// In a period that was skipped.
bool Folding::passed_last_alone() const {
  const std::vector<TileId>& ids = replicas_->tiles(0);
  return std::any_of(ids.begin(), ids.end(), [this](TileId id) {
    const std::uint32_t last = replicas_->last_alone(id);
    return last != ~std::uint32_t{0} && parts_.wafer.tile(id).trace_core()->next_step() > last;
  });
}

void Folding::unfold() {
  if (!alone_) return;
  if (components_) components_->wake_all(parts_.calendar.current());
  settle_trains();
  alone_ = false;
  const std::vector<Tile*> first = tiles_of(0);
  const ExactState state = state_.save(first);
  std::vector<NamedRecords> under_way(static_cast<std::size_t>(replicas_->count()));
  std::uint64_t operations = 0;
  for (const Tile* tile : first) operations += tile->trace_core()->operations();
  for (std::size_t replica = 1; replica < static_cast<std::size_t>(replicas_->count()); ++replica) {
    const std::vector<TileId> moved = replicas_->moved(replica);
    StateShift shift;
    shift.tiles = moved;
    const std::vector<Tile*> tiles = tiles_of(replica);
    under_way[replica] = state_.add(state.bytes, tiles, shift);
    parts_.shared.operations_done += operations;
    folded_operations_ += operations;
  }
  if (components_) components_->copy_first_replica();
  parts_.recorders.copy_first_replica(*replicas_, state.named, under_way);
  parts_.recorder.copy_first_replica(replicas_->count(), parts_.trace.trace().pipeline_stages);
  watch(state_.tiles());
}

void Folding::stop(Cycle now) {
  if (components_) components_->wake_all(now);
}

template <class Archive>
void Folding::visit_run(Archive& archive) {
  archive.plain(alone_);
  archive.plain(parts_.shared.operations_done);
  archive.plain(folded_operations_);
  archive.plain(done_.skipped_periods);
  archive.plain(done_.skipped_cycles);
  archive.plain(done_.period_cycles);
  archive.plain(done_.replicas_folded);
  archive.records(passing_);
  parts_.recorder.visit(archive);
  parts_.recorders.visit(archive);
}

std::vector<char> Folding::save() {
  if (components_) components_->wake_all(parts_.calendar.current());
  settle_trains();
  watch(active());  // which also adds up what was folded so far
  Cycle now = parts_.calendar.current();
  std::vector<char> tiles = state_.save(active()).bytes;
  passing_ = components_ ? components_->passing() : std::vector<std::uint32_t>{};
  StateWriter writer(parts_.network, now);
  writer.plain(now);
  visit_run(writer);
  writer.records(tiles);
  return writer.take_bytes();
}

void Folding::resume(std::span<const char> state) {
  StateReader reader(parts_.network, 0, state);
  Cycle now = 0;
  reader.plain(now);
  visit_run(reader);
  std::vector<char> tiles;
  reader.records(tiles);
  require_invariant(reader.at_end(), "the state of a simulation is damaged");
  if (parts_.trace.trace().replicas > 1) find_replicas();
  state_.load(tiles, now, active());
  find_components();
  if (components_ && !components_->resume(passing_)) {
    component_obstacle_ = "messages were not counted before the run was resumed";
    parts_.network.components = nullptr;
    components_.reset();
  }
  if (alone_ && !fold_) {
    unfold();
  } else {
    watch(active());
  }
}

FoldMeasurement Folding::measurement() const {
  FoldMeasurement out = done_;
  std::uint64_t folded = folded_operations_;
  if (recurrence_) {
    out.skipped_periods += recurrence_->periods();
    out.skipped_cycles += recurrence_->skipped_cycles();
    if (recurrence_->period() != 0) out.period_cycles = recurrence_->period();
    folded += recurrence_->skipped_operations();
  }
  if (components_) folded += components_->skipped_operations();
  const std::uint64_t all = parts_.shared.operations_done;
  if (all != 0) out.fraction = static_cast<double>(folded) / static_cast<double>(all);
  if (!fold_) return out;
  if (replicas_ && !obstacle().empty()) out.stopped_by.push_back("replicas: " + obstacle());
  if (parts_.draws) {
    out.stopped_by.push_back("periods: packets draw their ways");
  } else if (recurrence_ && recurrence_->too_much_recorded()) {
    out.stopped_by.push_back("periods: too much is recorded in one to be told again");
  } else if (out.skipped_periods == 0) {
    const bool recurred = recurrence_ && recurrence_->seen_again();
    out.stopped_by.push_back(recurred ? "periods: the programs do not go on alike where the state recurs"
                                      : "periods: the state does not recur");
  }
  if (!component_obstacle_.empty()) out.stopped_by.push_back("stages: " + component_obstacle_);
  return out;
}

}  // namespace wafersim::sim
