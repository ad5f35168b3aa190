#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sim/components.h"
#include "sim/recurrence.h"
#include "sim/replicas.h"

namespace wafersim::sim {

/// What folding acts on; all must outlive it.
struct FoldingParts {
  const Wafer& wafer;
  NetworkContext& network;
  Calendar& calendar;
  const CompiledTrace& trace;
  StepRecorder& recorder;
  SharedByCores& shared;
  Recorders& recorders;
  const topology::Mesh& mesh;
  bool draws;  ///< packets draw their ways
  bool eager;
  bool periods;  ///< are looked for
  bool stages;   ///< likewise what a stage does again
};

/// Does what repeats only once (docs/folding.md), and keeps and takes up the state of a run. Three ways: replicas that
/// do not meet yet are simulated as one (Replicas), periods after which the state recurs are skipped (Recurrence), and what a stage
/// does again is not simulated again (Components).
class Folding final : public StepObserver {
 public:
  Folding(const FoldingParts& parts, bool fold);

  /// From a hook of the calendar, before the first cycle: a run from its start, or from a state saved earlier.
  void start();
  void resume(std::span<const char> state);
  /// Between two cycles. The state is the same whatever was folded.
  std::vector<char> save();
  /// When the run is over: all that was simulated is what it is behind cycle `now`.
  void stop(Cycle now);
  /// Gives all replicas their state.
  void unfold();

  FoldMeasurement measurement() const;

  void step_opened(const workloads::TileBinding& binding, std::uint32_t index) override;
  void step_done(const workloads::TileBinding& binding, std::uint32_t index, const StepTimes& times) override;

 private:
  void find_components();
  void settle_trains();
  void at_boundary();
  void watch(std::vector<Tile*> tiles);
  void find_replicas();
  bool passed_last_alone() const;
  /// Why replicas are not simulated as one.
  const std::string& obstacle() const { return replicas_->obstacle().empty() ? recording_obstacle_ : replicas_->obstacle(); }
  std::vector<Tile*> tiles_of(std::size_t replica) const;
  std::vector<Tile*> active() const;
  template <class Archive>
  void visit_run(Archive& archive);

  FoldingParts parts_;
  bool fold_;
  WaferState state_;
  std::optional<Replicas> replicas_;
  std::string recording_obstacle_;
  std::unique_ptr<Recurrence> recurrence_;
  std::unique_ptr<Components> components_;
  std::string component_obstacle_;
  std::vector<std::uint32_t> passing_;  ///< messages that pass components, in a state that is kept
  bool alone_ = false;        ///< only the first replica runs
  bool meets_ = false;        ///< it meets the others in one of the next cycles
  bool look_ = false;
  FoldMeasurement done_;      ///< by recurrences of earlier
  std::uint64_t folded_operations_ = 0;
};

}  // namespace wafersim::sim
