#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include <systemc>

#include "base/huge_pages.h"
#include "base/quantity.h"
#include "base/random.h"
#include "base/units.h"
#include "sim/pool.h"

namespace wafersim::sim {

/// The order of evaluation inside a cycle: all cores, then DRAMs, NICs and routers. What a lower rank does in a cycle is
/// seen by the higher ranks of the same tile in that cycle; between tiles every effect is an update of a later cycle.
enum class Rank : std::uint8_t { core = 0, dram = 1, nic = 2, router = 3 };
inline constexpr std::size_t kRanks = 4;

using ClientId = std::uint32_t;

class Client;

/// update(kind, payload) of a client of a fleet, as it lies in the calendar.
struct Event {
  static constexpr unsigned kIdBits = 28;
  static constexpr unsigned kEvaluate = 15;  ///< the kind that asks for an evaluation instead

  std::uint32_t client_and_kind = 0;
  std::uint32_t payload = 0;

  ClientId client() const { return client_and_kind & ((ClientId{1} << kIdBits) - 1); }
  unsigned kind() const { return client_and_kind >> kIdBits; }
};

/// The clients of one class: the calendar hands over all their updates or evaluations of a cycle at once (fleet.h).
class Fleet {
 public:
  virtual ~Fleet() = default;
  virtual void update(std::span<const Event> events) = 0;
  virtual void evaluate(std::span<const ClientId> clients) = 0;
};

/// Where a client is found: its lane (that of the clients without a fleet, or the fleet's) and its place there.
struct ClientHandle {
  ClientId id = 0;
  std::uint8_t lane = 0;
};

/// A module that the calendar calls. Updates change state (arrivals, credits, completions), evaluations act on it
/// (issue, arbitration). An evaluation is made at most once for each time it was asked for in a cycle.
class Client {
 public:
  virtual ~Client() = default;
  /// Phase 1. `kind` (below 16) and `payload` are what was posted.
  virtual void update(unsigned kind, std::uint32_t payload) = 0;
  /// Phase 2.
  virtual void evaluate() = 0;
  /// How much of an object, from its Client part on, its calls touch as a rule: asked for ahead of them. May be hidden by a
  /// class with a fleet (fleet.h).
  static constexpr std::size_t kHotBytes = 128;
  /// Hints that update(kind, payload) comes soon: ask for the data that it will need, change nothing. The second comes
  /// later and may read what the first has asked for.
  virtual void prefetch(unsigned /*kind*/, std::uint32_t /*payload*/) const {}
  virtual void prefetch_more(unsigned /*kind*/, std::uint32_t /*payload*/) const {}
  /// The same two hints for evaluate().
  virtual void prefetch_evaluation() const {}
  virtual void prefetch_evaluation_more() const {}

 private:
  friend class Calendar;
  template <class C>
  friend class FleetOf;
  ClientHandle handle_;
  std::uint8_t list_ = 0;  ///< of evaluations, see Calendar
  bool queued_ = false;
};

template <class C>
class FleetOf;

/// The event calendar: one SC_METHOD that wakes at the next cycle that has work and runs its updates, then its
/// evaluations. Near events lie in a wheel with one bucket for each cycle, far ones in a heap. Cycles without work cost nothing.
/// `sc_time_stamp()` is now() times the nominal period (but see run_ahead()).
class Calendar : public sc_core::sc_module {
 public:
  SC_HAS_PROCESS(Calendar);
  /// Events of that many cycles ahead lie in the wheel: more than most operations and serializations take.
  static constexpr std::size_t kWheel = std::size_t{1} << 16;
  /// Of the clients without a fleet, then of the fleet of each rank.
  static constexpr std::size_t kLanes = 1 + kRanks;

  /// The nominal period is 1 / clock rounded to picoseconds, at least one.
  Calendar(sc_core::sc_module_name name, const Frequency& clock);

  /// Registers a client.
  void add(Client& client, Rank rank);
  /// For add_to_fleet(): the one fleet of a rank, null until it has clients, and the registration of one of them.
  std::unique_ptr<Fleet>& fleet_of(Rank rank) { return fleets_[lane_of_fleet(rank)]; }
  void enlist(Client& client, Rank rank, ClientId id) { assign(client, rank, {id, lane_of_fleet(rank)}); }
  /// For posts to a client whose own data should not be touched.
  static ClientHandle handle(const Client& client) { return client.handle_; }

  /// The current cycle. From a process outside the calendar: the cycle of sc_time_stamp().
  Cycle now() const { return running_ ? now_ : outside_now(); }
  /// now() for clients that are called by the calendar, at less cost.
  Cycle current() const { return now_; }
  /// The last cycle that had work.
  Cycle last_busy() const { return now_; }
  sc_core::sc_time period() const { return period_; }

  /// Asks for client.update(kind, payload) in cycle `at` >= now() (> now() from outside). `kind` < 15.
  void post(const Client& client, Cycle at, unsigned kind, std::uint32_t payload) {
    post(client.handle_, at, kind, payload);
  }
  void post(ClientHandle client, Cycle at, unsigned kind, std::uint32_t payload) {
    insert(at, client.lane, Event{client.id | (kind << Event::kIdBits), payload});
  }
  /// Asks for client.evaluate() in this cycle; from outside the calendar, in the next.
  void request_evaluation(Client& client) {
    if (client.queued_) return;
    client.queued_ = true;
    if (running_) [[likely]] {
      evaluations_[client.list_].push_back(client.handle_.id);
      lists_to_evaluate_ |= 1u << client.list_;
    } else {
      post(client, outside_now() + 1, Event::kEvaluate, 0);
    }
  }

  /// Asks for client.evaluate() in cycle 0; during elaboration only.
  void evaluate_at_start(Client& client) { post(client, 0, Event::kEvaluate, 0); }

  /// Lets one activation run many busy cycles, which saves a quarter of the time of runs with few events a cycle. Only for
  /// simulations in which nobody but the calendar's clients acts and nobody of them looks at sc_time_stamp(): it lags
  /// behind now() within an activation, and agrees again when the kernel has control.
  void run_ahead() { run_ahead_ = true; }

  /// Visits the updates and evaluations of a cycle in random order; results must not depend on it.
  void shuffle(std::uint64_t seed);
  /// Called about every `kPollInterval` busy cycles; returning false stops the simulation.
  void on_poll(std::function<bool()> poll) { poll_ = std::move(poll); }
  /// Called before the first busy cycle at or after `first`; returns from when on it is to be called again. What happened
  /// before that cycle has been done, what happens in it has not.
  void sample(Cycle first, std::function<Cycle(Cycle now)> sampler) {
    sample_at_ = first;
    sampler_ = std::move(sampler);
  }
  /// From when on it is to be called, if not earlier.
  void sample_by(Cycle at) { sample_at_ = std::min(sample_at_, at); }
  /// Called at the begin (`over` false) and at the end of each busy cycle.
  void watch(std::function<void(Cycle now, bool over)> watch) { watch_ = std::move(watch); }
  /// No cycle after this one is run.
  void set_limit(Cycle last) { limit_ = last; }

  /// From here on the calendar is driven by run_to(), by somebody who is not of SystemC and never starts its kernel.
  void drive_by_hand() { running_ = true; }
  /// Runs all busy cycles up to and with `last`, which is then the current one.
  void run_to(Cycle last);

  /// An event that lies in the calendar.
  struct Pending {
    Cycle at = 0;
    std::uint8_t lane = 0;
    Event event;
  };
  // The next six only from the hooks below: between two cycles, when nothing is asked for in the current one any more.
  /// Called once, before the first cycle is run.
  void on_start(std::function<void()> start) { start_ = std::move(start); }
  /// Called behind a cycle in which request_boundary() was.
  void on_boundary(std::function<void()> boundary) { boundary_ = std::move(boundary); }
  void request_boundary() { boundary_wanted_ = true; }
  /// Likewise behind cycle `at`, which is run even if there is nothing to do in it; kNever: no more. It is asked for once.
  void set_alarm(Cycle at) { alarm_ = at; }
  /// Calls `act`, which may post, for the next cycle at the earliest. Also behind the last cycle, and when polled.
  template <class Act>
  void between_cycles(Act act) {
    between_ = true;
    act();
    between_ = false;
  }
  /// All events, ascending by cycle; of a cycle lane by lane in the order of posting, but far ones in any.
  std::vector<Pending> pending() const;
  /// Puts the calendar behind cycle `now` with these events and no others.
  void replace(Cycle now, std::span<const Pending> events);
  /// Takes out and returns those that `chosen(Pending)` is true of; puts such events back.
  template <class Chosen>
  std::vector<Pending> take_out(Chosen chosen) {
    std::vector<Pending> all = pending();
    const auto first = std::stable_partition(all.begin(), all.end(), [&](const Pending& event) { return !chosen(event); });
    std::vector<Pending> taken(first, all.end());
    all.erase(first, all.end());
    if (!taken.empty()) replace(now_, all);
    return taken;
  }
  void put(std::span<const Pending> events);
  /// Between these two the calendar stands behind cycle `now` with other events than its own, which run_to() runs; then it is
  /// where it was. The second returns what lies ahead.
  void begin_apart(Cycle now, std::span<const Pending> events);
  std::vector<Pending> end_apart();
  /// No cycle after this one is run.
  Cycle limit() const { return limit_; }

  /// Rethrows what a client threw inside the simulation.
  void rethrow() const;
  bool stopped_by_poll() const { return stopped_by_poll_; }
  /// Work is left beyond the limit.
  bool stopped_by_limit() const { return stopped_by_limit_; }
  std::uint64_t events() const { return events_; }

 private:
  struct FarEvent {
    Cycle at;
    Event event;
    std::uint8_t lane;
  };
  struct Later {
    bool operator()(const FarEvent& a, const FarEvent& b) const { return a.at > b.at; }
  };
  static constexpr std::uint8_t kCommonLane = 0;  ///< of the clients without a fleet
  static std::uint8_t lane_of_fleet(Rank rank) { return static_cast<std::uint8_t>(1 + static_cast<unsigned>(rank)); }
  /// Events of one cycle and lane lie in a chain of chunks, so that the wheel's memory follows the number of pending events.
  /// The first event of a chunk is its header, whose payload is the number of the next chunk.
  static constexpr std::uint32_t kChunk = 32;
  struct Bucket {
    std::uint32_t head = 0;  ///< first chunk; 0 = none, chunk 0 is not used
    std::uint32_t next = 0;  ///< place of the next event; where a chunk would begin, another must be got first
  };
  /// The events of one busy cycle. The wheel has only its number for each cycle: what was freed last is used next, and is
  /// still in the caches, where the wheel's own memory is not.
  struct alignas(64) BusyCycle {
    std::array<Bucket, kLanes> buckets;
    std::uint32_t lanes = 0;  ///< those that have events, a bit each
    std::uint32_t next = kNil;
  };
  /// All events that lie in the calendar, and where it stands.
  struct Aside {
    Cycle now = 0;
    Cycle alarm = kNever;
    bool boundary_wanted = false;
    HugeVector<std::uint32_t> wheel;
    Pool<BusyCycle> busy;
    std::array<std::uint64_t, kWheel / 64> occupied{};
    std::array<std::uint64_t, kWheel / 64 / 64> occupied_words{};
    HugeVector<Event> chunks;
    std::uint32_t free_chunk = 0;
    std::vector<FarEvent> far;
  };
  void exchange(Aside& other);
  static constexpr std::uint32_t kPollInterval = 1u << 12;
  static constexpr int kCyclesAhead = 1024;

  void insert(Cycle at, std::uint8_t lane, Event event) {
    if (at - now_ < kWheel) [[likely]] {
      insert_near(at, lane, event);
    } else {
      insert_far(at, lane, event);
    }
    if (!running_ && !between_) [[unlikely]] wake_for(at);
  }
  void insert_near(Cycle at, std::uint8_t lane, Event event) {
    std::uint32_t& index = wheel_[at % kWheel];
    if (index == kNil) index = begin_cycle(at % kWheel);
    Bucket& bucket = busy_[index].buckets[lane];
    if (bucket.next % kChunk == 0) grow(busy_[index], lane);
    chunks_[bucket.next++] = event;
  }
  void insert_far(Cycle at, std::uint8_t lane, Event event);
  std::uint32_t begin_cycle(std::size_t slot);
  void end_cycle(std::size_t slot);
  void grow(BusyCycle& cycle, std::uint8_t lane);
  void assign(Client& client, Rank rank, ClientHandle handle);
  void wake_for(Cycle at);
  Cycle outside_now() const { return sc_core::sc_time_stamp().value() / period_.value(); }

  void tick();
  void run_cycle();
  bool may_go_on(Cycle& next);
  bool start();
  void stop_at_limit();
  void drain_updates(std::size_t slot);
  void take_events(Bucket& bucket);
  void update_shuffled(std::uint32_t lanes, BusyCycle& cycle);
  void mark_occupied(std::size_t slot);
  void mark_empty(std::size_t slot);
  std::size_t first_occupied(std::size_t from) const;
  void move_near();
  Cycle next_busy_cycle() const;

  sc_core::sc_event wake_;
  sc_core::sc_time period_;
  Cycle now_ = 0;
  Cycle planned_ = kNever;
  Cycle limit_ = kNever;
  Cycle sample_at_ = kNever;
  Cycle alarm_ = kNever;
  bool running_ = false;
  bool between_ = false;
  bool run_ahead_ = false;
  bool boundary_wanted_ = false;
  bool stopped_by_poll_ = false;
  bool stopped_by_limit_ = false;
  std::array<std::unique_ptr<Fleet>, kLanes> fleets_;
  HugeVector<std::uint32_t> wheel_;               ///< by slot: its number in the pool, kNil when it has no events
  Pool<BusyCycle> busy_;
  std::array<std::uint64_t, kWheel / 64> occupied_{};         ///< slots that have any, a bit each
  std::array<std::uint64_t, kWheel / 64 / 64> occupied_words_{};  ///< words of `occupied_` that are not 0, a bit each
  HugeVector<Event> chunks_;
  std::uint32_t free_chunk_ = 0;
  std::vector<FarEvent> far_;  ///< binary heap, earliest on top
  std::array<std::vector<ClientId>, 2 * kRanks> evaluations_;  ///< by rank: common lane, then fleet
  std::uint32_t lists_to_evaluate_ = 0;                        ///< those that are not empty, a bit each
  std::vector<ClientId> evaluating_;
  std::vector<Event> updating_;
  std::optional<RandomStream> shuffle_;
  std::function<bool()> poll_;
  std::function<Cycle(Cycle)> sampler_;
  std::function<void(Cycle, bool)> watch_;
  std::function<void()> start_;
  std::function<void()> boundary_;
  std::unique_ptr<Aside> aside_;
  std::uint32_t polls_ = 0;
  std::uint64_t events_ = 0;
  std::exception_ptr failure_;
};

}  // namespace wafersim::sim
