#pragma once

#include <functional>
#include <memory_resource>
#include <optional>
#include <queue>
#include <span>
#include <vector>

#include <boost/container/small_vector.hpp>

#include "sim/calendar.h"
#include "sim/compiled_trace.h"
#include "sim/core.h"
#include "sim/cycle_account.h"
#include "sim/step_recorder.h"

namespace wafersim::sim {

class CorePath;

/// An operation of an open step.
struct OpRef {
  std::uint32_t slot = 0;
  std::uint32_t op = 0;
  std::uint64_t token() const { return (std::uint64_t{slot} << 32) | op; }
  static OpRef of(std::uint64_t token) {
    return {static_cast<std::uint32_t>(token >> 32), static_cast<std::uint32_t>(token)};
  }
};

/// What the cores of a simulation share. The lists are those of the core that is evaluated: one of each stays in the caches,
/// one in every core would not.
struct SharedByCores {
  std::uint64_t operations_done = 0;  ///< for progress
  /// Messages of different iterations that ended a wait of one tile together.
  std::uint64_t mixed_arrivals = 0;
  std::vector<OpRef> completing;
  std::vector<OpRef> instant;         ///< complete as soon as they were ready
};

/// Runs the program of a tile by the rules at the top of workloads/trace.h.
class TraceCore final : public Core, public Client {
 public:
  static constexpr std::size_t kHotBytes = 768;

  /// `tables` is where it keeps its tables.
  TraceCore(sc_core::sc_module_name name, Calendar& calendar, std::pmr::memory_resource& tables, const CompiledTrace& trace,
            const workloads::TileBinding& binding, StepRecorder& recorder, SharedByCores& shared);

  void send_done(std::uint64_t token) override;
  void received(std::uint64_t token, const Arrival& arrival) override;
  void dram_done(std::uint32_t engine) override;
  void update(unsigned kind, std::uint32_t payload) override;
  void evaluate() override;
  void prefetch(unsigned kind, std::uint32_t engine) const override;
  void prefetch_more(unsigned kind, std::uint32_t engine) const override;
  HotLines hot_lines() const override;
  void prefetch_evaluation() const override;
  void prefetch_evaluation_more() const override;

  bool finished() const override { return next_step_ == program_.steps.size() && order_.empty(); }
  std::string describe() const override;
  void measure(Cycle end, TileMeasurement& out) override;
  WorkTotals work() const;  ///< of the operations that have started
  /// Tells `activity` of charged cycles, steps and operations. Before the run.
  void record(TileActivity& activity) {
    activity_ = &activity;
    account_.record(&activity);
  }

  /// Tells `path` why operations start. Before the run.
  void record(CorePath& path) { path_ = &path; }

  /// Calls `sink` with each operation that took time, when it ends. It must outlive this. Before the run.
  void record(const std::function<void(const OperationRecord&)>& sink) { operation_sink_ = &sink; }

  /// Its state between two cycles, see sim/state_archive.h. `nic_total` is that of its SRAM.
  template <class Archive>
  void visit(Archive& archive, Cycle nic_total);
  /// The rank of a slot among the open steps, oldest first.
  std::uint32_t rank_of_slot(std::uint32_t slot) const;
  const workloads::TileBinding& binding() const { return binding_; }
  std::uint32_t next_step() const { return next_step_; }
  /// The oldest open step; next_step() when none is open.
  std::uint32_t oldest_step() const { return order_.empty() ? next_step_ : slots_[order_.front()].step; }
  Cycle charged() const { return account_.charged(); }
  std::uint64_t operations() const { return operations_; }

 private:
  /// An open step.
  struct OpenStep {
    explicit OpenStep(std::pmr::memory_resource* tables) : waiting(tables) {}
    const CompiledTemplate* code = nullptr;
    std::pmr::vector<std::uint16_t> waiting;       ///< dependencies left, by operation
    std::uint32_t step = 0;
    std::uint32_t operations_left = 0;
    std::uint32_t results_left = 0;
    bool background = false;
    std::array<std::uint32_t, kEngines> cursor{};  ///< into CompiledTemplate::in_order
    std::array<std::uint64_t, 2> keys{};           ///< step_key, by scope
    Cycle opened = 0;
    Cycle first_compute = kNever;
  };
  struct Running {
    bool active = false;
    bool sram_pending = false;   ///< its compute cycles or SRAM cycles are not over
    bool dram_pending = false;
    OpRef op;
    Cycle start = 0;
    Cycle sram_cycles = 0;
    Cycle nic_busy_at_start = 0;
  };
  struct ReadyReduction {
    std::uint32_t step;
    OpRef op;
    bool operator>(const ReadyReduction& other) const {
      return step != other.step ? step > other.step : op.op > other.op.op;
    }
  };
  struct KnownPeer {
    std::uint32_t index = kNil;
    TileId tile = kNoTile;
  };

  const workloads::Step& step_of(const OpenStep& open) const { return program_.steps[open.step]; }
  void end_of_elaboration() override;
  template <class Archive>
  void visit_open(Archive& archive, OpenStep& open);
  template <class Archive>
  void visit_running(Archive& archive, Running& running, Cycle nic_total);
  template <class Archive>
  void visit_reductions(Archive& archive);
  /// Makes what follows from the number of an open step, and from all of them.
  void restore(OpenStep& open) const;
  void restore_results();
  void prefetch_successors(OpRef ref) const;
  void check_engine(std::size_t engine);
  void finish_part(std::size_t engine);
  void stop_engines();
  void open_steps();
  bool may_open(const workloads::Step& step) const;
  void open_step();
  void close_step(std::uint32_t slot);
  void record_step();
  void record_operation(const Running& running, Cycle end) const;
  void record_path(Engine engine, const Running& running, Cycle end);
  void became_ready(OpRef ref);
  void complete(OpRef ref);
  /// Completes the given operations and all that completes at once because of them.
  void complete_all(std::span<const OpRef> list);
  bool issue_matrix();
  bool issue_vector();
  std::optional<OpRef> next_in_order(Engine engine) const;
  void start(Engine engine, OpRef ref);
  Bytes through_dram(const workloads::Work& work) const;
  TileId peer(std::uint32_t index);
  void post_forward(OpRef ref, const SendRequest& request);
  void completes_at_once(OpRef ref);

  // Short lists lie in the core itself: one cache line less to wait for.
  template <class T, std::size_t kUsual>
  using ShortList = boost::container::small_vector<T, kUsual>;

  // In order of use: what every event of a message touches comes first.
  Calendar& calendar_;
  NicIf* nic_ = nullptr;         ///< what the ports are bound to
  SramIf* sram_ = nullptr;
  std::uint32_t foreground_open_ = 0;
  bool results_changed_ = true;  ///< since steps were last opened
  bool may_issue_ = false;       ///< an engine or an operation became free for the other since the last look
  ShortList<OpRef, 2> completed_;         ///< in the updates of this cycle
  std::array<Running, kEngines> running_;
  std::uint64_t operations_ = 0;
  SharedByCores& shared_;
  CycleAccount account_;
  HotLines nic_lines_;
  HotLines sram_lines_;
  ShortList<std::uint32_t, 4> order_;     ///< slots of the open steps, oldest first
  std::priority_queue<ReadyReduction, ShortList<ReadyReduction, 2>, std::greater<>> reductions_;
  std::array<KnownPeer, 4> known_peers_;  ///< by index modulo its size; the trace's table is large and read at random
  std::array<Cycle, kEngines> busy_{};
  ShortList<OpenStep, 2> slots_;
  const workloads::TileBinding& binding_;
  const CompiledTrace& trace_;
  Bytes dram_bytes_ = 0;         ///< of operations that have started
  const workloads::Program& program_;
  const bool uses_dram_;  ///< some class may lie there
  std::pmr::memory_resource& tables_;
  StepRecorder& recorder_;
  TileActivity* activity_ = nullptr;
  const std::function<void(const OperationRecord&)>* operation_sink_ = nullptr;
  CorePath* path_ = nullptr;
  std::uint32_t next_step_ = 0;
  std::vector<std::uint32_t> free_slots_;
  std::vector<bool> result_there_;       ///< by step of the program
};

}  // namespace wafersim::sim
