#include "sim/calendar.h"

#include <algorithm>
#include <bit>

#include "base/error.h"

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
    : sc_module(name), period_(nominal_period(clock)), wheel_(kWheel) {
  SC_METHOD(tick);
  sensitive << wake_;
  dont_initialize();
}

void Calendar::add(Client& client, Rank rank) {
  require_invariant(clients_.size() < (std::size_t{1} << kIdBits), "too many modules for one calendar");
  client.id_ = static_cast<ClientId>(clients_.size());
  client.rank_ = rank;
  clients_.push_back(&client);
}

void Calendar::shuffle(std::uint64_t seed) { shuffle_.emplace(seed, "calendar.shuffle"); }

void Calendar::rethrow() const {
  if (failure_) std::rethrow_exception(failure_);
}

void Calendar::insert_far(Cycle at, Event event) {
  require_invariant(at >= now_, "an event was posted for the past");
  far_.push_back({at, event});
  std::push_heap(far_.begin(), far_.end(), Later{});
}

void Calendar::grow(Bucket& bucket, std::size_t slot) {
  std::uint32_t fresh = free_chunk_;
  if (fresh == kNone) {
    fresh = static_cast<std::uint32_t>(chunks_.size());
    chunks_.emplace_back();
  } else {
    free_chunk_ = chunks_[fresh].next;
  }
  chunks_[fresh].next = kNone;
  chunks_[fresh].count = 0;
  if (bucket.tail == kNone) {
    bucket.head = fresh;
    occupied_[slot / 64] |= std::uint64_t{1} << (slot % 64);
  } else {
    chunks_[bucket.tail].next = fresh;
  }
  bucket.tail = fresh;
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
    for (int cycles = run_ahead_ ? kCyclesAhead : 1; cycles > 0; --cycles) {
      running_ = true;
      move_near();
      run_cycle();
      running_ = false;
      const Cycle next = next_busy_cycle();
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

/// Whether the next busy cycle is to be run.
bool Calendar::may_go_on(Cycle next) {
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
  }
  return true;
}

void Calendar::stop_at_limit() {
  stopped_by_limit_ = true;
  sc_core::sc_stop();
}

void Calendar::run_cycle() {
  const auto slot = static_cast<std::size_t>(now_ % kWheel);
  while (true) {
    drain_updates(slot);
    const auto rank = std::find_if(evaluations_.begin(), evaluations_.end(), [](const auto& list) { return !list.empty(); });
    if (rank == evaluations_.end()) return;
    evaluating_.swap(*rank);
    if (shuffle_) shuffle_in_place(evaluating_, *shuffle_);
    const std::size_t count = evaluating_.size();
    for (std::size_t i = 0; i < count; ++i) {
      if (i + kFarAhead < count) prefetch_client(evaluating_[i + kFarAhead]);
      if (i + kNearAhead < count) clients_[evaluating_[i + kNearAhead]]->prefetch_evaluation();
      Client& client = *clients_[evaluating_[i]];
      client.queued_ = false;
      client.evaluate();
    }
    events_ += evaluating_.size();
    evaluating_.clear();
  }
}

void Calendar::deliver(const Event& event) {
  Client& client = *clients_[event.client_and_kind & kIdMask];
  const unsigned kind = event.client_and_kind >> kIdBits;
  if (kind == kEvaluate) [[unlikely]] {
    client.queued_ = false;
    request_evaluation(client);
  } else {
    client.update(kind, event.payload);
  }
}

[[gnu::flatten]] void Calendar::drain_updates(std::size_t slot) {
  Bucket& bucket = wheel_[slot];
  while (bucket.head != kNone) {
    const std::uint32_t first = bucket.head;
    const std::uint32_t last = bucket.tail;
    bucket = {};
    occupied_[slot / 64] &= ~(std::uint64_t{1} << (slot % 64));
    if (shuffle_) {
      shuffled_.clear();
      for (std::uint32_t at = first; at != kNone; at = chunks_[at].next) {
        const Chunk& chunk = chunks_[at];
        shuffled_.insert(shuffled_.end(), chunk.events.begin(), chunk.events.begin() + chunk.count);
      }
      shuffle_in_place(shuffled_, *shuffle_);
      for (const Event& event : shuffled_) deliver(event);
      events_ += shuffled_.size();
    } else {
      for (std::uint32_t at = first; at != kNone; at = chunks_[at].next) {
        const std::uint32_t count = chunks_[at].count;
        // A copy: an update may grow the chunk storage.
        const std::array<Event, kChunkEvents> events = chunks_[at].events;
        for (std::uint32_t i = 0; i < std::min(count, kFarAhead); ++i) prefetch_client(events[i].client_and_kind & kIdMask);
        for (std::uint32_t i = 0; i < std::min(count, kMidAhead); ++i) prefetch_update(events[i]);
        for (std::uint32_t i = 0; i < std::min(count, kNearAhead); ++i) prefetch_more(events[i]);
        for (std::uint32_t i = 0; i < count; ++i) {
          if (i + kFarAhead < count) prefetch_client(events[i + kFarAhead].client_and_kind & kIdMask);
          if (i + kMidAhead < count) prefetch_update(events[i + kMidAhead]);
          if (i + kNearAhead < count) prefetch_more(events[i + kNearAhead]);
          deliver(events[i]);
        }
        events_ += count;
      }
    }
    chunks_[last].next = free_chunk_;
    free_chunk_ = first;
  }
}

void Calendar::move_near() {
  while (!far_.empty() && far_.front().at - now_ < kWheel) {
    insert_near(far_.front().at, far_.front().event);
    std::pop_heap(far_.begin(), far_.end(), Later{});
    far_.pop_back();
  }
}

Cycle Calendar::next_busy_cycle() const {
  constexpr std::size_t words = kWheel / 64;
  const auto start = static_cast<std::size_t>(now_ % kWheel);
  // From the current slot once around the wheel; the first word is looked at twice, its upper and then its lower part.
  for (std::size_t step = 0; step <= words; ++step) {
    const std::size_t word = (start / 64 + step) % words;
    std::uint64_t bits = occupied_[word];
    if (step == 0) bits &= ~std::uint64_t{0} << (start % 64);
    if (step == words) bits &= ~(~std::uint64_t{0} << (start % 64));
    if (bits == 0) continue;
    const std::size_t slot = word * 64 + static_cast<std::size_t>(std::countr_zero(bits));
    return now_ + (slot + kWheel - start) % kWheel;
  }
  return far_.empty() ? kNever : far_.front().at;
}

}  // namespace wafersim::sim
