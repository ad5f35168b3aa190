#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "analysis/plan_space.h"
#include "analysis/replay_memory.h"
#include "analysis/step_costs.h"
#include "workloads/first_tiles.h"
#include "workloads/lowering.h"

namespace wafersim::analysis {

/// What is known of a plan without simulating it.
struct PlanVerdict {
  enum class Outcome : std::uint8_t {
    predicted,     ///< it fits; `cycles` is there
    does_not_fit,  ///< by the bound of its memory
    refused        ///< it cannot be lowered or routed; `fault` says why
  };
  Outcome outcome = Outcome::refused;
  Cycle cycles = 0;
  std::optional<double> joules;   ///< of the run, where energy is modelled
  workloads::MemoryBound memory;  ///< unless refused; of a plan that does not fit, of the tiles that were looked at
  std::string fault;
};

/// The routes of `input.hardware.routing`, safe from deadlock. Throws PlanError.
using RouteMaker = std::function<std::unique_ptr<topology::RoutingPolicy>(const workloads::LoweringInput& input,
                                                                          const workloads::Trace& trace)>;
/// The plan with a placement for every axis that is `optimized`, as `run` chooses it. Throws PlanError.
using MappingChooser = std::function<workloads::PlanSpec(const workloads::LoweringInput& input)>;

/// What plans are tried on. All must outlive the predictor.
struct PlanGround {
  const models::TransformerSpec& model;
  const workloads::PlacementSpec& placement;
  const models::HardwareModel& hardware;
  const topology::Mesh& mesh;
  CostModel cost_model = CostModel::alpha_beta_contention;
  std::uint64_t seed = 1;
  RouteMaker make_routes;
  MappingChooser choose_mapping;
};

/// Predicts plans by the analytic model (docs/model-analytic.md): the same cycles as `network.fidelity: analytic`. May be asked
/// by many threads; what it has been asked before it remembers.
class PlanPredictor {
 public:
  explicit PlanPredictor(PlanGround ground) : ground_(std::move(ground)) {}

  /// Axes that are `optimized` are placed first.
  PlanVerdict predict(const PlanPoint& point);
  /// What predict() has said of the point, here or elsewhere; nothing when it has not been asked.
  std::optional<PlanVerdict> recall(const PlanPoint& point);
  void remember(const PlanPoint& point, const PlanVerdict& verdict);
  /// By formulas alone, an order in which to look at plans and no prediction: work and traffic of a mean tile, one after the
  /// other, times the pipeline's bubble.
  double estimated_cycles(const PlanPoint& point) const;
  /// Of parameters, gradients and optimizer states the fullest tile has at least so many. Costs next to nothing.
  double static_bytes(const PlanPoint& point) const;
  /// The most that a tile can hold, in both memories.
  Bytes capacity() const { return ground_.hardware.sram_capacity + ground_.hardware.dram_capacity_per_tile(); }
  /// The plan with the degrees of attention and MLP that cost least (operator_chain). Nothing where both have the same, which
  /// makes another plan with common degrees, or operators cannot have degrees of their own. Throws PlanError when the plan
  /// cannot be laid out or routed.
  std::optional<PlanPoint> divided(const PlanPoint& point);
  /// The plan with all its axes placed for the smallest link load. Throws PlanError.
  workloads::PlanSpec mapped(const PlanPoint& point) const;
  const PlanGround& ground() const { return ground_; }

 private:
  PlanVerdict ask(const PlanPoint& point);
  std::optional<double> joules_of(const workloads::Trace& trace, const models::HardwareModel& hardware,
                                  const topology::RoutingPolicy& routing, Cycle cycles) const;
  workloads::LoweringInput input(const PlanPoint& point, const models::HardwareModel& hardware) const;
  /// Routes, and what plays on them came to; null for those of one plan.
  struct Routes {
    std::shared_ptr<const topology::RoutingPolicy> policy;
    std::shared_ptr<ReplayMemory> plays;
  };
  Routes routes(const workloads::LoweringInput& input, const workloads::Trace& trace);

  PlanGround ground_;
  workloads::FirstTiles first_tiles_;
  std::mutex mutex_;
  std::map<std::string, PlanVerdict> known_;  ///< by text of the plan
  std::map<std::string, Routes> routes_;      ///< by name, that do not depend on the traffic
};

}  // namespace wafersim::analysis
