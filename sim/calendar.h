#pragma once

#include <array>
#include <cstdint>
#include <exception>
#include <functional>
#include <limits>
#include <optional>
#include <vector>

#include <systemc>

#include "base/quantity.h"
#include "base/random.h"
#include "base/units.h"

namespace wafersim::sim {

/// The order of evaluation inside a cycle: all cores, then DRAMs, NICs and routers. What a lower rank does in a cycle is
/// seen by the higher ranks of the same tile in that cycle; between tiles every effect is an update of a later cycle.
enum class Rank : std::uint8_t { core = 0, dram = 1, nic = 2, router = 3 };
inline constexpr std::size_t kRanks = 4;

using ClientId = std::uint32_t;

/// A module that the calendar calls. Updates change state (arrivals, credits, completions), evaluations act on it
/// (issue, arbitration). An evaluation is made at most once for each time it was asked for in a cycle.
class Client {
 public:
  virtual ~Client() = default;
  /// Phase 1. `kind` (below 16) and `payload` are what was posted.
  virtual void update(unsigned kind, std::uint32_t payload) = 0;
  /// Phase 2.
  virtual void evaluate() = 0;
  /// Hints that update(kind, payload) comes soon: ask for the data that it will need, change nothing. The second comes
  /// later and may read what the first has asked for.
  virtual void prefetch(unsigned /*kind*/, std::uint32_t /*payload*/) const {}
  virtual void prefetch_more(unsigned /*kind*/, std::uint32_t /*payload*/) const {}
  /// A hint that evaluate() comes soon.
  virtual void prefetch_evaluation() const {}

 private:
  friend class Calendar;
  ClientId id_ = 0;
  Rank rank_ = Rank::core;
  bool queued_ = false;
};

/// The event calendar: one SC_METHOD that wakes at the next cycle that has work and runs its updates, then its
/// evaluations. Near events lie in a wheel with one bucket for each cycle, far ones in a heap. Cycles without work cost nothing.
/// `sc_time_stamp()` is now() times the nominal period (but see run_ahead()).
class Calendar : public sc_core::sc_module {
 public:
  SC_HAS_PROCESS(Calendar);
  /// The nominal period is 1 / clock rounded to picoseconds, at least one.
  Calendar(sc_core::sc_module_name name, const Frequency& clock);

  /// Registers a client; its id is its index in order of registration.
  void add(Client& client, Rank rank);

  /// The current cycle. From a process outside the calendar: the cycle of sc_time_stamp().
  Cycle now() const { return running_ ? now_ : outside_now(); }
  /// The last cycle that had work.
  Cycle last_busy() const { return now_; }
  sc_core::sc_time period() const { return period_; }

  /// Asks for client.update(kind, payload) in cycle `at` >= now() (> now() from outside). `kind` < 15.
  void post(const Client& client, Cycle at, unsigned kind, std::uint32_t payload) {
    insert(at, Event{client.id_ | (kind << kIdBits), payload});
  }
  /// Asks for client.evaluate() in this cycle; from outside the calendar, in the next.
  void request_evaluation(Client& client) {
    if (client.queued_) return;
    client.queued_ = true;
    if (running_) [[likely]] {
      evaluations_[static_cast<std::size_t>(client.rank_)].push_back(client.id_);
    } else {
      insert(outside_now() + 1, Event{client.id_ | (kEvaluate << kIdBits), 0});
    }
  }

  /// Asks for client.evaluate() in cycle 0; during elaboration only.
  void evaluate_at_start(Client& client) { insert(0, Event{client.id_ | (kEvaluate << kIdBits), 0}); }

  /// Lets one activation run many busy cycles, which saves a quarter of the time of runs with few events a cycle. Only for
  /// simulations in which nobody but the calendar's clients acts and nobody of them looks at sc_time_stamp(): it lags
  /// behind now() within an activation, and agrees again when the kernel has control.
  void run_ahead() { run_ahead_ = true; }

  /// Visits the updates and evaluations of a cycle in random order; results must not depend on it.
  void shuffle(std::uint64_t seed);
  /// Called about every `kPollInterval` busy cycles; returning false stops the simulation.
  void on_poll(std::function<bool()> poll) { poll_ = std::move(poll); }
  /// No cycle after this one is run.
  void set_limit(Cycle last) { limit_ = last; }

  /// Rethrows what a client threw inside the simulation.
  void rethrow() const;
  bool stopped_by_poll() const { return stopped_by_poll_; }
  /// Work is left beyond the limit.
  bool stopped_by_limit() const { return stopped_by_limit_; }
  std::uint64_t events() const { return events_; }

 private:
  struct Event {
    std::uint32_t client_and_kind;
    std::uint32_t payload;
  };
  struct FarEvent {
    Cycle at;
    Event event;
  };
  struct Later {
    bool operator()(const FarEvent& a, const FarEvent& b) const { return a.at > b.at; }
  };
  static constexpr std::size_t kChunkEvents = 31;
  /// Events of one cycle lie in a chain of chunks, so that the wheel's memory follows the number of pending events.
  struct Chunk {
    std::uint32_t next;
    std::uint32_t count;
    std::array<Event, kChunkEvents> events;
  };
  struct Bucket {
    std::uint32_t head = kNone;
    std::uint32_t tail = kNone;
  };
  static constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();
  static constexpr unsigned kIdBits = 28;
  static constexpr std::uint32_t kIdMask = (1u << kIdBits) - 1;
  static constexpr unsigned kEvaluate = 15;
  // Events of a cycle belong to modules all over the wafer: their data is asked for ahead of time, first the module, then what
  // its event will touch, in two steps.
  static constexpr std::uint32_t kFarAhead = 9;
  static constexpr std::uint32_t kMidAhead = 6;
  static constexpr std::uint32_t kNearAhead = 3;
  static constexpr Cycle kWheel = 4096;
  static constexpr std::uint32_t kPollInterval = 1u << 12;
  static constexpr int kCyclesAhead = 1024;

  void insert(Cycle at, Event event) {
    if (at - now_ < kWheel) [[likely]] {
      insert_near(at, event);
    } else {
      insert_far(at, event);
    }
    if (!running_) [[unlikely]] wake_for(at);
  }
  void insert_near(Cycle at, Event event) {
    const auto slot = static_cast<std::size_t>(at % kWheel);
    Bucket& bucket = wheel_[slot];
    if (bucket.tail == kNone || chunks_[bucket.tail].count == chunks_[bucket.tail].events.size()) grow(bucket, slot);
    Chunk& chunk = chunks_[bucket.tail];
    chunk.events[chunk.count++] = event;
  }
  void insert_far(Cycle at, Event event);
  void grow(Bucket& bucket, std::size_t slot);
  void wake_for(Cycle at);
  Cycle outside_now() const { return sc_core::sc_time_stamp().value() / period_.value(); }

  void tick();
  void run_cycle();
  bool may_go_on(Cycle next);
  void stop_at_limit();
  void drain_updates(std::size_t slot);
  void deliver(const Event& event);
  void prefetch_client(ClientId id) const {
    // The client's own data starts with it and goes on for a few cache lines.
    const char* const client = reinterpret_cast<const char*>(clients_[id]);
    __builtin_prefetch(client);
    __builtin_prefetch(client + 64);
    __builtin_prefetch(client + 128);
  }
  void prefetch_update(const Event& event) const {
    clients_[event.client_and_kind & kIdMask]->prefetch(event.client_and_kind >> kIdBits, event.payload);
  }
  void prefetch_more(const Event& event) const {
    clients_[event.client_and_kind & kIdMask]->prefetch_more(event.client_and_kind >> kIdBits, event.payload);
  }
  void move_near();
  Cycle next_busy_cycle() const;

  sc_core::sc_event wake_;
  sc_core::sc_time period_;
  Cycle now_ = 0;
  Cycle planned_ = kNever;
  Cycle limit_ = kNever;
  bool running_ = false;
  bool run_ahead_ = false;
  bool stopped_by_poll_ = false;
  bool stopped_by_limit_ = false;
  std::vector<Client*> clients_;
  std::vector<Bucket> wheel_;
  std::array<std::uint64_t, kWheel / 64> occupied_{};
  std::vector<Chunk> chunks_;
  std::uint32_t free_chunk_ = kNone;
  std::vector<FarEvent> far_;  ///< binary heap, earliest on top
  std::array<std::vector<ClientId>, kRanks> evaluations_;
  std::vector<ClientId> evaluating_;
  std::vector<Event> shuffled_;
  std::optional<RandomStream> shuffle_;
  std::function<bool()> poll_;
  std::uint32_t polls_ = 0;
  std::uint64_t events_ = 0;
  std::exception_ptr failure_;
};

}  // namespace wafersim::sim
