#include "sim/calendar.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "base/error.h"
#include "sim/fleet.h"

namespace wafersim::sim {

namespace {

sc_core::sc_time nominal_period(const Frequency& clock) {
  const double picoseconds = 1e12 / clock.hertz.to_double();
  const auto whole = static_cast<std::uint64_t>(picoseconds + 0.5);
  return sc_core::sc_time(static_cast<double>(std::max<std::uint64_t>(whole, 1)), sc_core::SC_PS);
}

template <class T>
void shuffle_in_place(std::vector<T>& items, RandomStream& random) {
  for (std::size_t i = items.size(); i > 1; --i) std::swap(items[i - 1], items[random.below(i)]);
}

}  // namespace

Calendar::Calendar(sc_core::sc_module_name name, const Frequency& clock)
    : sc_module(name), period_(nominal_period(clock)), wheel_(kWheel, kNil), chunks_(kChunk) {
  fleets_[kCommonLane] = std::make_unique<FleetOf<Client>>(*this);
  SC_METHOD(tick);
  sensitive << wake_;
  dont_initialize();
}

void Calendar::add(Client& client, Rank rank) {
  assign(client, rank, {static_cast<FleetOf<Client>&>(*fleets_[kCommonLane]).enlist(client), kCommonLane});
}

void Calendar::assign(Client& client, Rank rank, ClientHandle handle) {
  require_invariant(handle.id < (ClientId{1} << Event::kIdBits), "too many modules for one calendar");
  client.handle_ = handle;
  client.list_ = static_cast<std::uint8_t>(2 * static_cast<unsigned>(rank) + (handle.lane != kCommonLane ? 1 : 0));
}

void Calendar::shuffle(std::uint64_t seed) { shuffle_.emplace(seed, "calendar.shuffle"); }

void Calendar::rethrow() const {
  if (failure_) std::rethrow_exception(failure_);
}

void Calendar::insert_far(Cycle at, std::uint8_t lane, Event event) {
  require_invariant(at >= now_, "an event was posted for the past");
  far_.push_back({at, event, lane});
  std::push_heap(far_.begin(), far_.end(), Later{});
}

std::uint32_t Calendar::begin_cycle(std::size_t slot) {
  mark_occupied(slot);
  return busy_.take();
}

void Calendar::end_cycle(std::size_t slot) {
  if (wheel_[slot] == kNil) return;
  busy_.give_back(std::exchange(wheel_[slot], kNil));
  mark_empty(slot);
}

void Calendar::grow(BusyCycle& cycle, std::uint8_t lane) {
  std::uint32_t fresh = free_chunk_;
  if (fresh == 0) {
    fresh = static_cast<std::uint32_t>(chunks_.size() / kChunk);
    chunks_.resize(chunks_.size() + kChunk);
  } else {
    free_chunk_ = chunks_[fresh * kChunk].payload;
  }
  chunks_[fresh * kChunk].payload = 0;
  Bucket& bucket = cycle.buckets[lane];
  if (bucket.next == 0) {
    bucket.head = fresh;
    cycle.lanes |= 1u << lane;
  } else {
    chunks_[bucket.next - kChunk].payload = fresh;
  }
  bucket.next = fresh * kChunk + 1;
}

/// The kernel keeps the earliest pending notification, so a request from outside may only move the wake-up forward.
void Calendar::wake_for(Cycle at) {
  if (at >= planned_) return;
  planned_ = at;
  const sc_core::sc_time when = sc_core::sc_time::from_value(at * period_.value());
  wake_.notify(when - sc_core::sc_time_stamp());
}

void Calendar::tick() {
  try {
    planned_ = kNever;
    if (outside_now() > limit_) return stop_at_limit();  // a process outside asked for it
    now_ = outside_now();
    if (start_ && !start()) return;
    for (int cycles = run_ahead_ ? kCyclesAhead : 1; cycles > 0; --cycles) {
      running_ = true;
      move_near();
      run_cycle();
      running_ = false;
      if (alarm_ <= now_) [[unlikely]] {
        alarm_ = kNever;
        boundary_wanted_ = true;
      }
      if (boundary_wanted_) [[unlikely]] {
        boundary_wanted_ = false;
        boundary_();
      }
      Cycle next = next_busy_cycle();
      if (!may_go_on(next)) break;
      if (cycles == 1) {
        wake_for(next);
      } else {
        now_ = next;
      }
    }
    // The time stamp ends where the calendar does.
    if (planned_ == kNever && outside_now() < now_) wake_for(now_);
  } catch (...) {
    running_ = false;
    failure_ = std::current_exception();
    sc_core::sc_stop();
  }
}

void Calendar::run_to(Cycle last) {
  for (Cycle next = next_busy_cycle(); next <= last; next = next_busy_cycle()) {
    now_ = next;
    move_near();
    run_cycle();
  }
  now_ = last;
  move_near();
}

/// Runs the hook and goes to the first busy cycle behind what it left; false when there is none to run.
bool Calendar::start() {
  std::exchange(start_, nullptr)();
  Cycle next = next_busy_cycle();
  if (!may_go_on(next)) return false;
  now_ = next;
  return true;
}

std::vector<Calendar::Pending> Calendar::pending() const {
  std::vector<Pending> all;
  const auto start = static_cast<std::size_t>(now_ % kWheel);
  for (std::size_t offset = 0; offset < kWheel; ++offset) {
    const std::size_t slot = first_occupied((start + offset) % kWheel);
    const std::size_t next = slot == kWheel ? first_occupied(0) : slot;
    if (next == kWheel) break;
    const std::size_t ahead = (next - start) % kWheel;
    if (ahead < offset) break;  // round again
    offset = ahead;
    const BusyCycle& cycle = busy_[wheel_[next]];
    for (std::uint32_t lanes = cycle.lanes; lanes != 0; lanes &= lanes - 1) {
      const auto lane = static_cast<std::uint8_t>(std::countr_zero(lanes));
      const Bucket& bucket = cycle.buckets[lane];
      const std::uint32_t last = (bucket.next - 1) / kChunk;
      for (std::uint32_t chunk = bucket.head; chunk != 0; chunk = chunks_[chunk * kChunk].payload) {
        const std::uint32_t end = chunk == last ? (bucket.next - 1) % kChunk + 1 : kChunk;
        for (std::uint32_t i = 1; i < end; ++i) all.push_back({now_ + ahead, lane, chunks_[chunk * kChunk + i]});
        if (chunk == last) break;
      }
    }
  }
  const auto near = static_cast<std::ptrdiff_t>(all.size());
  for (const FarEvent& event : far_) all.push_back({event.at, event.lane, event.event});
  std::sort(all.begin() + near, all.end(), [](const Pending& a, const Pending& b) { return a.at < b.at; });
  return all;
}

void Calendar::replace(Cycle now, std::span<const Pending> events) {
  require_invariant(!running_ && lists_to_evaluate_ == 0, "the calendar was replaced within a cycle");
  now_ = now;
  for (std::size_t slot = first_occupied(0); slot != kWheel; slot = first_occupied(slot)) {
    wheel_[slot] = kNil;
    mark_empty(slot);
  }
  busy_.clear();
  chunks_.assign(kChunk, {});
  free_chunk_ = 0;
  far_.clear();
  put(events);
}

void Calendar::put(std::span<const Pending> events) {
  for (const Pending& event : events) {
    if (event.at - now_ < kWheel) {
      insert_near(event.at, event.lane, event.event);
    } else {
      insert_far(event.at, event.lane, event.event);
    }
  }
}

void Calendar::exchange(Aside& other) {
  std::swap(now_, other.now);
  std::swap(alarm_, other.alarm);
  std::swap(boundary_wanted_, other.boundary_wanted);
  std::swap(wheel_, other.wheel);
  std::swap(busy_, other.busy);
  std::swap(occupied_, other.occupied);
  std::swap(occupied_words_, other.occupied_words);
  std::swap(chunks_, other.chunks);
  std::swap(free_chunk_, other.free_chunk);
  std::swap(far_, other.far);
}

void Calendar::begin_apart(Cycle now, std::span<const Pending> events) {
  require_invariant(!running_ && lists_to_evaluate_ == 0, "the calendar was left within a cycle");
  if (!aside_) {
    aside_ = std::make_unique<Aside>();
    aside_->wheel.assign(kWheel, kNil);
    aside_->chunks.assign(kChunk, {});
  }
  exchange(*aside_);
  replace(now, events);
  running_ = true;
}

std::vector<Calendar::Pending> Calendar::end_apart() {
  running_ = false;
  std::vector<Pending> ahead = pending();
  replace(now_, {});
  alarm_ = kNever;
  boundary_wanted_ = false;
  exchange(*aside_);
  return ahead;
}

/// Whether the next busy cycle is to be run; the poll may have posted for an earlier one.
bool Calendar::may_go_on(Cycle& next) {
  if (next == kNever) return false;
  if (next > limit_) {
    stop_at_limit();
    return false;
  }
  if (++polls_ == kPollInterval) {
    polls_ = 0;
    if (poll_ && !poll_()) {
      stopped_by_poll_ = true;
      sc_core::sc_stop();
      return false;
    }
    next = next_busy_cycle();
  }
  return true;
}

void Calendar::stop_at_limit() {
  stopped_by_limit_ = true;
  sc_core::sc_stop();
}

void Calendar::run_cycle() {
  if (now_ >= sample_at_) [[unlikely]] sample_at_ = sampler_(now_);
  const auto slot = static_cast<std::size_t>(now_ % kWheel);
  if (watch_) [[unlikely]] watch_(now_, false);
  while (true) {
    drain_updates(slot);
    if (lists_to_evaluate_ == 0) {
      if (watch_) [[unlikely]] watch_(now_, true);
      return end_cycle(slot);
    }
    const auto list = static_cast<unsigned>(std::countr_zero(lists_to_evaluate_));
    lists_to_evaluate_ &= lists_to_evaluate_ - 1;
    evaluating_.swap(evaluations_[list]);
    if (shuffle_) shuffle_in_place(evaluating_, *shuffle_);
    const std::size_t lane = list % 2 == 0 ? kCommonLane : lane_of_fleet(static_cast<Rank>(list / 2));
    fleets_[lane]->evaluate(evaluating_);
    events_ += evaluating_.size();
    evaluating_.clear();
  }
}

void Calendar::drain_updates(std::size_t slot) {
  const std::uint32_t index = wheel_[slot];
  if (index == kNil) return;
  while (busy_[index].lanes != 0) {
    std::uint32_t lanes = std::exchange(busy_[index].lanes, 0);
    if (shuffle_) {
      update_shuffled(lanes, busy_[index]);
      continue;
    }
    for (; lanes != 0; lanes &= lanes - 1) {
      const auto lane = static_cast<std::size_t>(std::countr_zero(lanes));
      updating_.clear();
      take_events(busy_[index].buckets[lane]);
      fleets_[lane]->update(updating_);
      events_ += updating_.size();
    }
  }
}

/// Moves the events of a bucket to the end of `updating_`: in one piece they can be prefetched across chunks, and updates may
/// post into the same cycle.
void Calendar::take_events(Bucket& bucket) {
  const std::uint32_t last = (bucket.next - 1) / kChunk;
  for (std::uint32_t chunk = bucket.head; chunk != 0;) {
    const Event* const events = &chunks_[chunk * kChunk];
    const std::uint32_t end = chunk == last ? (bucket.next - 1) % kChunk + 1 : kChunk;
    updating_.insert(updating_.end(), events + 1, events + end);
    chunk = events->payload;
  }
  chunks_[last * kChunk].payload = free_chunk_;
  free_chunk_ = bucket.head;
  bucket = {};
}

void Calendar::update_shuffled(std::uint32_t lanes, BusyCycle& cycle) {
  std::vector<std::pair<std::size_t, Event>> events;
  for (; lanes != 0; lanes &= lanes - 1) {
    const auto lane = static_cast<std::size_t>(std::countr_zero(lanes));
    updating_.clear();
    take_events(cycle.buckets[lane]);
    for (const Event& event : updating_) events.emplace_back(lane, event);
  }
  shuffle_in_place(events, *shuffle_);
  for (const auto& [lane, event] : events) fleets_[lane]->update({&event, 1});
  events_ += events.size();
}

void Calendar::move_near() {
  while (!far_.empty() && far_.front().at - now_ < kWheel) {
    insert_near(far_.front().at, far_.front().lane, far_.front().event);
    std::pop_heap(far_.begin(), far_.end(), Later{});
    far_.pop_back();
  }
}

void Calendar::mark_occupied(std::size_t slot) {
  const std::size_t word = slot / 64;
  occupied_[word] |= std::uint64_t{1} << (slot % 64);
  occupied_words_[word / 64] |= std::uint64_t{1} << (word % 64);
}

void Calendar::mark_empty(std::size_t slot) {
  const std::size_t word = slot / 64;
  occupied_[word] &= ~(std::uint64_t{1} << (slot % 64));
  if (occupied_[word] == 0) occupied_words_[word / 64] &= ~(std::uint64_t{1} << (word % 64));
}

/// The first slot at or behind `from` that has events; kWheel when there is none.
std::size_t Calendar::first_occupied(std::size_t from) const {
  const std::size_t word = from / 64;
  const std::uint64_t bits = occupied_[word] & (~std::uint64_t{0} << (from % 64));
  if (bits != 0) return word * 64 + static_cast<std::size_t>(std::countr_zero(bits));
  std::uint64_t words = occupied_words_[word / 64] & (~std::uint64_t{1} << (word % 64));
  for (std::size_t group = word / 64;; words = occupied_words_[group]) {
    if (words != 0) {
      const std::size_t found = group * 64 + static_cast<std::size_t>(std::countr_zero(words));
      return found * 64 + static_cast<std::size_t>(std::countr_zero(occupied_[found]));
    }
    if (++group == occupied_words_.size()) return kWheel;
  }
}

Cycle Calendar::next_busy_cycle() const {
  const auto start = static_cast<std::size_t>(now_ % kWheel);
  if (const std::size_t slot = first_occupied(start); slot != kWheel) return std::min(alarm_, now_ + (slot - start));
  if (const std::size_t slot = first_occupied(0); slot != kWheel) return std::min(alarm_, now_ + (slot + kWheel - start));
  return std::min(alarm_, far_.empty() ? kNever : far_.front().at);
}

}  // namespace wafersim::sim
