#include "analysis/step_replay.h"

#include <algorithm>
#include <numeric>
#include <tuple>

#include "analysis/replay_memory.h"
#include "base/error.h"

namespace wafersim::analysis {

namespace {

using sim::CompiledOp;
using workloads::OpKind;

enum EventKind : std::uint32_t { kEngine, kHop, kSent, kReceived, kOutsideArrival };
constexpr std::uint32_t kOutside = ~std::uint32_t{0};

}  // namespace

CauseCycles& CauseCycles::operator+=(const CauseCycles& more) {
  compute += more.compute;
  memory_stall += more.memory_stall;
  for (std::size_t i = 0; i < waiting.size(); ++i) waiting[i] += more.waiting[i];
  other += more.other;
  return *this;
}

CauseCycles CauseCycles::operator-(const CauseCycles& less) const {
  CauseCycles result = *this;
  result += less * -1.0;
  return result;
}

CauseCycles CauseCycles::operator*(double times) const {
  CauseCycles result = *this;
  result.compute *= times;
  result.memory_stall *= times;
  for (double& cycles : result.waiting) cycles *= times;
  result.other *= times;
  return result;
}

double CauseCycles::total() const { return std::accumulate(waiting.begin(), waiting.end(), compute + memory_stall + other); }

StepReplay::StepReplay(const sim::CompiledTrace& trace, const models::HardwareModel& hardware, MessageTiming& messages,
                       const topology::Mesh& mesh, const std::vector<TileId>& used, ReplayMemory* memory)
    : trace_(trace), hardware_(hardware), messages_(messages), mesh_(mesh), memory_(memory) {
  if (memory_ != nullptr) keys_ = std::make_unique<ReplayKeys>(trace, hardware);
  if (hardware.dram_capacity == 0) return;
  for (const TileId tile : used) ++dies_[die_of(tile)].used;
  if (memory_ == nullptr) return;
  sharers_.resize(mesh.tile_count());
  for (const TileId tile : used) sharers_[tile] = dies_.at(die_of(tile)).used;
}

StepReplay::~StepReplay() = default;

std::uint32_t StepReplay::die_of(TileId tile) const {
  const topology::Coord at = mesh_.coord(tile);
  return static_cast<std::uint32_t>((at.y / hardware_.dram_die.rows) * mesh_.cols() + at.x / hardware_.dram_die.cols);
}

std::uint64_t StepReplay::match_key(TileId source, TileId destination, std::uint64_t key) const {
  std::uint64_t mixed = key ^ (std::uint64_t{source} << 32 | destination) * 0x9e3779b97f4a7c15ULL;
  mixed ^= mixed >> 29;
  mixed *= 0xbf58476d1ce4e5b9ULL;
  return mixed ^ mixed >> 32;
}

Played StepReplay::play(const std::vector<PlayedTile>& tiles, Cycle outside) {
  const auto key = keys_ == nullptr ? std::nullopt : keys_->of(tiles, outside, sharers_);
  if (!key) return play_afresh(tiles, outside);
  if (auto known = memory_->recall(*key)) return *std::move(known);
  Played played = play_afresh(tiles, outside);
  memory_->remember(*key, played);
  return played;
}

Played StepReplay::play_afresh(const std::vector<PlayedTile>& tiles, Cycle outside) {
  require_invariant(!tiles.empty(), "no tile takes part");
  now_ = 0;
  outside_ = outside;
  order_ = 0;
  messages_.clear();
  by_tile_.resize(mesh_.tile_count(), kOutside);
  for (const Tile& tile : tiles_) by_tile_[tile.binding->tile] = kOutside;
  waiting_.clear();
  flights_.clear();
  free_flights_.clear();
  for (auto& [die, state] : dies_) state.free = state.playing = 0;
  for (const PlayedTile& tile : tiles) {
    if (!dies_.empty()) ++dies_.at(die_of(tile.binding->tile)).playing;
  }
  tiles_.assign(tiles.size(), {});
  played_ = {};
  played_.steps.resize(tiles.front().steps.size());
  for (std::uint32_t i = 0; i < tiles.size(); ++i) {
    Tile& tile = tiles_[i];
    tile.binding = tiles[i].binding;
    tile.program = &trace_.trace().programs[tile.binding->program];
    tile.steps = &tiles[i].steps;
    tile.result_there.assign(tile.steps->size(), false);
    const workloads::MemoryLayout& layout = trace_.trace().layouts[tile.binding->layout];
    tile.uses_dram = std::any_of(layout.begin(), layout.end(), [](const auto& quota) { return !quota.whole(); });
    const workloads::StaticMemory& statics = trace_.trace().statics[tile.binding->statics];
    for (std::size_t c = 0; c < tile.held.size(); ++c) tile.held[c] = static_cast<std::int64_t>(statics.bytes[c]);
    by_tile_[tile.binding->tile] = i;
  }
  for (std::uint32_t i = 0; i < tiles_.size(); ++i) {
    tiles_[i].dirty = true;
    dirty_.push_back(i);
  }
  while (true) {
    // Until nothing more happens in this cycle: updates first, then what they make ready.
    while (!dirty_.empty() || !done_.empty()) {
      drain();
      issuing_.clear();
      issuing_.swap(dirty_);
      for (const std::uint32_t tile : issuing_) {
        tiles_[tile].dirty = false;
        issue(tile);
      }
      while (!events_.empty() && events_.top().at == now_) {
        const Event event = events_.top();
        events_.pop();
        engine_event(event);
      }
    }
    if (events_.empty()) break;
    now_ = events_.top().at;
    while (!events_.empty() && events_.top().at == now_) {
      const Event event = events_.top();
      events_.pop();
      engine_event(event);
    }
  }
  for (const Tile& tile : tiles_) {
    played_.vector_busy = std::max(played_.vector_busy, tile.vector_busy);
    require_invariant(tile.next == tile.steps->size() && tile.order.empty(), "the steps of a replay wait for each other");
  }
  played_.end = now_;
  played_.ports = messages_.usage();
  return std::move(played_);
}

void StepReplay::post(Cycle at, std::uint32_t kind, std::uint32_t tile, std::uint32_t a, std::uint32_t b) {
  events_.push({at, kind, tile, a, b, order_++});
}

void StepReplay::engine_event(const Event& event) {
  Tile* const tile = event.tile == kOutside ? nullptr : &tiles_[event.tile];
  switch (event.kind) {
    case kEngine: {
      Running& running = tile->running[event.a];
      const Cycle nic = running.sram_cycles == 0 ? 0 : nic_busy(*tile) - running.nic_at_start;
      const Cycle had = now_ - running.start - nic;
      if (had < running.sram_cycles) {
        post(now_ + running.sram_cycles - had, kEngine, event.tile, event.a, 0);
        return;
      }
      settle(*tile);
      running.active = false;
      if (event.a == static_cast<std::uint32_t>(sim::Engine::vector)) tile->vector_busy += now_ - running.start;
      done_.push_back({event.tile, running.slot, running.op});
      return;
    }
    case kHop:
      return hop(event.a, now_);
    case kSent:
      done_.push_back({event.tile, event.a, event.b});
      return;
    case kReceived:
    case kOutsideArrival: {
      settle(*tile, static_cast<int>(tile->slots[event.a].code->ops[event.b].axis));
      done_.push_back({event.tile, event.a, event.b});
      return;
    }
    default:
      throw InternalError("unknown event");
  }
}

void StepReplay::hop(std::uint32_t index, Cycle head) {
  const bool injecting = flights_[index].flight.port == 0;
  Cycle left = 0;
  const bool over = messages_.pass(flights_[index].flight, head, left);
  const Message& message = flights_[index];
  if (injecting && message.last_copy) post(std::max(left, now_), kSent, message.from, message.slot, message.op);
  if (!over) return post(head, kHop, kOutside, index, 0);
  if (message.to == kOutside) {
    PlayedStep& step = played_.steps[message.number];
    step.sent_on = std::max(step.sent_on, head);
  } else {
    Tile& tile = tiles_[message.to];
    if (messages_.model() != CostModel::roofline) nic_access(tile, message.flight.bytes);
    if (const auto posted = waiting_.pop_if(message.match, [](const Waiting& w) { return w.posted; })) {
      post(head, kReceived, message.to, posted->slot, posted->op);
    } else {
      waiting_.push(message.match, {message.to, 0, 0, head, false});
    }
  }
  free_flights_.push_back(index);
}

void StepReplay::nic_access(Tile& tile, Bytes bytes) const {
  if (!hardware_.sram_bytes_per_cycle) return;
  const Cycle cycles = cycles_at_rate(bytes, *hardware_.sram_bytes_per_cycle);
  tile.nic_until = std::max(tile.nic_until, now_) + cycles;
  tile.nic_total += cycles;
}

Cycle StepReplay::nic_busy(const Tile& tile) const {
  return tile.nic_total - (tile.nic_until > now_ ? tile.nic_until - now_ : 0);
}

void StepReplay::open_steps(std::uint32_t index) {
  Tile& tile = tiles_[index];
  while (tile.next < tile.steps->size()) {
    const workloads::Step& step = tile.program->steps[(*tile.steps)[tile.next]];
    for (std::uint32_t i = 0; i < step.wait_count; ++i) {
      const std::uint32_t before = tile.program->waits[step.first_wait + i];
      std::uint32_t number = tile.next;  // from behind: what a step waits for is not far back
      while (number > 0 && (*tile.steps)[number - 1] != before) --number;
      if (number > 0 && !tile.result_there[number - 1]) return;
    }
    std::uint32_t slot = 0;
    if (tile.free_slots.empty()) {
      slot = static_cast<std::uint32_t>(tile.slots.size());
      tile.slots.emplace_back();
    } else {
      slot = tile.free_slots.back();
      tile.free_slots.pop_back();
    }
    Open& open = tile.slots[slot];
    open.code = &trace_.step_template(step.step_template);
    open.number = tile.next++;
    open.operations_left = static_cast<std::uint32_t>(open.code->ops.size());
    open.results_left = open.code->result_count;
    open.cursor = {};
    for (const auto scope : {workloads::MatchScope::step, workloads::MatchScope::microbatch}) {
      open.keys[static_cast<std::size_t>(scope)] = sim::step_key(scope, step);
    }
    open.waiting.assign(open.code->dependency_counts.begin(), open.code->dependency_counts.end());
    tile.order.push_back(slot);
    played_.operations += open.operations_left;
    if (open.results_left == 0) {
      tile.result_there[open.number] = true;
      played_.steps[open.number].end = std::max(played_.steps[open.number].end, now_);
    }
    if (open.operations_left == 0) {
      tile.order.pop_back();
      tile.free_slots.push_back(slot);
      continue;
    }
    for (const std::uint32_t op : open.code->roots) ready(index, slot, op);
  }
}

void StepReplay::ready(std::uint32_t index, std::uint32_t slot, std::uint32_t op) {
  Tile& tile = tiles_[index];
  const Open& open = tile.slots[slot];
  const CompiledOp& compiled = open.code->ops[op];
  switch (compiled.kind) {
    case OpKind::matrix:
    case OpKind::vector:
      return;
    case OpKind::reduce:
      tile.reductions.push({open.number, op, slot});
      return;
    case OpKind::send:
    case OpKind::multicast:
      return send(index, slot, op);
    case OpKind::receive:
      return receive(index, slot, op);
    case OpKind::allocate:
      tile.held[static_cast<std::size_t>(compiled.memory_class)] += static_cast<std::int64_t>(compiled.bytes);
      done_.push_back({index, slot, op});
      return;
    case OpKind::free:
      tile.held[static_cast<std::size_t>(compiled.memory_class)] -= static_cast<std::int64_t>(compiled.bytes);
      done_.push_back({index, slot, op});
      return;
  }
}

void StepReplay::send(std::uint32_t index, std::uint32_t slot, std::uint32_t op) {
  Tile& tile = tiles_[index];
  const Open& open = tile.slots[slot];
  const CompiledOp& compiled = open.code->ops[op];
  const workloads::StepTemplate& source = *open.code->source;
  const std::span<const std::uint32_t> peers = workloads::peers_of(source, source.ops[op]);
  const std::uint64_t key = open.keys[static_cast<std::size_t>(compiled.scope)] ^ compiled.key;
  if (messages_.model() != CostModel::roofline) nic_access(tile, source.ops[op].bytes);
  for (std::size_t i = 0; i < peers.size(); ++i) {
    const TileId destination = trace_.trace().peer(*tile.binding, peers[i]);
    std::uint32_t message = 0;
    if (free_flights_.empty()) {
      message = static_cast<std::uint32_t>(flights_.size());
      flights_.emplace_back();
    } else {
      message = free_flights_.back();
      free_flights_.pop_back();
    }
    Cycle head = 0;
    const TileId from = tile.binding->tile;
    flights_[message] = {messages_.depart(from, destination, source.ops[op].bytes, now_, head),
                         match_key(from, destination, key),
                         index,
                         by_tile_[destination],
                         slot,
                         op,
                         open.number,
                         i + 1 == peers.size()};
    post(head, kHop, kOutside, message, 0);
  }
}

void StepReplay::receive(std::uint32_t index, std::uint32_t slot, std::uint32_t op) {
  Tile& tile = tiles_[index];
  const Open& open = tile.slots[slot];
  const CompiledOp& compiled = open.code->ops[op];
  const TileId source = trace_.trace().peer(*tile.binding, compiled.peer);
  if (by_tile_[source] == kOutside) {
    played_.steps[open.number].waits_outside = true;
    if (outside_ <= now_) {
      done_.push_back({index, slot, op});
    } else {
      post(outside_, kOutsideArrival, index, slot, op);
    }
    return;
  }
  const std::uint64_t key = open.keys[static_cast<std::size_t>(compiled.scope)] ^ compiled.key;
  const std::uint64_t match = match_key(source, tile.binding->tile, key);
  const auto arrived = waiting_.pop_if(match, [](const Waiting& w) { return !w.posted; });
  if (!arrived) {
    waiting_.push(match, {index, slot, op, 0, true});
    return;
  }
  if (arrived->arrived > now_) {
    post(arrived->arrived, kReceived, index, slot, op);
  } else {
    done_.push_back({index, slot, op});
  }
}

/// All that completes at once because of what has completed.
void StepReplay::drain() {
  for (std::size_t i = 0; i < done_.size(); ++i) {
    const Done ended = done_[i];
    complete(ended.tile, ended.slot, ended.op);
  }
  done_.clear();
}

void StepReplay::complete(std::uint32_t index, std::uint32_t slot, std::uint32_t op) {
  Tile& tile = tiles_[index];
  if (!tile.dirty) {
    tile.dirty = true;
    dirty_.push_back(index);
  }
  Open& open = tile.slots[slot];
  const CompiledOp& compiled = open.code->ops[op];
  if (!compiled.detached && --open.results_left == 0) {
    tile.result_there[open.number] = true;
    settle(tile);
    PlayedStep& step = played_.steps[open.number];
    step.end = std::max(step.end, now_);
    step.causes += tile.causes;
  }
  const sim::CompiledTemplate& code = *open.code;
  for (std::uint32_t i = 0; i < compiled.successor_count; ++i) {
    const std::uint32_t next = code.successors[compiled.first_successor + i];
    if (--tile.slots[slot].waiting[next] == 0) ready(index, slot, next);
  }
  if (--tile.slots[slot].operations_left == 0) {
    tile.order.erase(std::find(tile.order.begin(), tile.order.end(), slot));
    tile.free_slots.push_back(slot);
  }
}

void StepReplay::issue(std::uint32_t index) {
  do {
    open_steps(index);
    drain();
  } while (issue_on(index, sim::Engine::matrix) || issue_on(index, sim::Engine::vector));
}

bool StepReplay::issue_on(std::uint32_t index, sim::Engine engine) {
  Tile& tile = tiles_[index];
  const auto e = static_cast<std::size_t>(engine);
  if (tile.running[e].active) return false;
  bool found = false;
  std::uint32_t slot = 0, op = 0, number = 0;
  for (const std::uint32_t open_slot : tile.order) {
    const Open& open = tile.slots[open_slot];
    const std::vector<std::uint32_t>& list = open.code->in_order[e];
    if (open.cursor[e] == list.size()) continue;
    slot = open_slot;
    op = list[open.cursor[e]];
    number = open.number;
    found = open.waiting[op] == 0;
    break;
  }
  if (engine == sim::Engine::vector && !tile.reductions.empty()) {
    const Reduction oldest = tile.reductions.top();
    if (!found || std::tie(oldest.number, oldest.op) < std::tie(number, op)) {
      tile.reductions.pop();
      return start(index, engine, oldest.slot, oldest.op);
    }
  }
  if (!found) return false;
  ++tile.slots[slot].cursor[e];
  return start(index, engine, slot, op);
}

/// Always true: something was issued.
bool StepReplay::start(std::uint32_t index, sim::Engine engine, std::uint32_t slot, std::uint32_t op) {
  Tile& tile = tiles_[index];
  const sim::CompiledTemplate& code = *tile.slots[slot].code;
  const CompiledOp& compiled = code.ops[op];
  Bytes dram = 0;
  if (tile.uses_dram) dram = through_dram(tile, trace_.trace().works[code.source->ops[op].work]);
  if (compiled.compute_cycles == 0 && compiled.sram_cycles == 0 && dram == 0) {
    done_.push_back({index, slot, op});
    drain();
    return true;
  }
  settle(tile);
  Running& running = tile.running[static_cast<std::size_t>(engine)];
  running = {true, slot, op, now_, compiled.sram_cycles, compiled.compute_cycles, nic_busy(tile)};
  Cycle until = now_ + std::max(compiled.compute_cycles, compiled.sram_cycles);
  if (dram != 0) {
    Die& die = dies_.at(die_of(tile.binding->tile));
    const double bytes = static_cast<double>(dram) * die.used / die.playing;
    die.free = std::max(die.free, static_cast<double>(now_)) + bytes / hardware_.dram_bytes_per_cycle.to_double();
    until = std::max(until, rounded_up(die.free));
  }
  post(until, kEngine, index, static_cast<std::uint32_t>(engine), 0);
  return true;
}

Bytes StepReplay::through_dram(const Tile& tile, const workloads::Work& work) const {
  const workloads::MemoryLayout& layout = trace_.trace().layouts[tile.binding->layout];
  Bytes total = 0;
  for (std::size_t c = 0; c < work.class_bytes.size(); ++c) {
    if (work.class_bytes[c] == 0) continue;
    total += layout[c].through_dram(work.class_bytes[c], static_cast<Bytes>(std::max<std::int64_t>(tile.held[c], 0)));
  }
  return total;
}

/// Gives the cycles since the last call their cause. `axis`: of the message whose arrival ends them, if one does.
void StepReplay::settle(Tile& tile, int axis) {
  if (now_ == tile.settled) return;
  const double span = static_cast<double>(now_ - tile.settled);
  Cycle computed = tile.settled;
  bool busy = false;
  for (const Running& running : tile.running) {
    if (!running.active) continue;
    busy = true;
    computed = std::max(computed, std::min(now_, running.start + running.compute));
  }
  const double computing = static_cast<double>(computed - tile.settled);
  tile.causes.compute += computing;
  if (busy) {
    tile.causes.memory_stall += span - computing;
  } else if (axis >= 0) {
    tile.causes.waiting[static_cast<std::size_t>(axis)] += span;
  } else {
    tile.causes.other += span;
  }
  tile.settled = now_;
}

}  // namespace wafersim::analysis
