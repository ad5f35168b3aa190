#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "models/transformer.h"
#include "topology/mesh.h"
#include "workloads/plan.h"

/// The plans among which a search chooses.
namespace wafersim::analysis {

/// What a search may choose. Named as the keys of a scenario: plan.dp, ..., training.recompute, router.routing.
enum class PlanKey : std::uint8_t { dp, tp, tatp, sp, ep, pp, schedule, zero, recompute, microbatch, mapping, routing };
std::string to_string(PlanKey key);
const std::vector<PlanKey>& plan_keys();

/// Which plans a search may take: all, or only those of a known system.
/// `megatron`: dp x tp x pp with zero 0 or 1 (its distributed optimizer), no sequence parallelism; `megatron_sp`: the same with
/// the residual stream cut over tp; `fsdp`: zero 3 over replicas alone.
enum class PlanFamily : std::uint8_t { all, megatron, megatron_sp, fsdp };
const char* to_string(PlanFamily family);

/// A plan and what it does to training.
struct PlanPoint {
  workloads::PlanSpec plan;
  workloads::TrainingSpec training;
  std::string routing;
};

/// "dp 4 x tp 8 x pp 2, sp megatron, 1f1b, zero 1, recompute full, microbatch 2"; degrees of 1 and what says nothing is left
/// out. Without the mapping and the routing.
std::string plan_text(const PlanPoint& point);
/// "attention tatp 8, mlp tp 8": the operators that divide a model group in another way than the plan, without degrees of 1;
/// empty when none does.
std::string operators_text(const workloads::PlanSpec& plan);
/// "tp block 2x4, pp snake 2x2, order tp pp dp"; "default" without entries.
std::string mapping_text(const workloads::PlanSpec& plan);

struct PlanSpaceRequest {
  const models::TransformerSpec& model;
  PlanPoint base;  ///< everything that is not searched comes from here
  const topology::Mesh& mesh;
  PlanFamily family = PlanFamily::all;
  std::set<PlanKey> kept;  ///< that stay as they are in `base`
};

/// All valid plans of a family on a wafer, by number.
///
/// Degrees of tp, tatp, sp and pp are divisors of the number of tiles of the mesh, those of ep divisors of the number of
/// experts; dp is the largest number that divides the batch, for which there are tiles and which the standard mapping can lay
/// out. Degrees that leave more tiles idle than half of what the fullest use are left out. For each: kinds of sequence
/// parallelism; schedules, interleaved with 2, 4, 8, ... chunks; zero 0 to 3 with several replicas; recomputation (selective
/// where it means something); microbatches that divide a replica's batch. A key that decides nothing has one value: 1f1b with
/// one stage, zero 0 with one replica. What is valid is up to workloads::validate_plan(). Operators have the plan's degrees, but
/// where tp and tatp are kept, those of the base.
class PlanSpace {
 public:
  explicit PlanSpace(const PlanSpaceRequest& request);

  std::size_t size() const { return choices_.size(); }
  PlanPoint at(std::size_t number) const;
  /// Plans with the same degrees have the same number, below degrees().
  std::size_t degrees_of(std::size_t number) const { return choices_[number].degrees; }
  std::size_t degrees() const { return degrees_.size(); }
  /// The fault of the first plan that was refused, of the base itself where none was looked at; empty when there is none.
  const std::string& first_fault() const { return first_fault_; }

 private:
  struct Choice {
    std::uint32_t degrees = 0;
    workloads::PipelineSchedule schedule = workloads::PipelineSchedule::one_f_one_b;
    int virtual_stages = 1;
    int zero = 0;
    models::Recompute recompute = models::Recompute::none;
    std::int64_t microbatch = 1;
  };
  using Sequence = std::pair<workloads::SequenceParallel, int>;

  bool kept(PlanKey key) const { return request_.kept.contains(key); }
  std::vector<int> degrees_for(PlanKey key, int given) const;
  std::vector<Sequence> sequences(int tp) const;
  void add_degrees(workloads::PlanSpec plan);
  bool can_be_laid_out(const workloads::PlanSpec& plan);
  void drop_small();
  void add_choices(std::uint32_t number);
  bool valid(const PlanPoint& point);

  PlanSpaceRequest request_;
  std::int64_t live_tiles_ = 0;
  std::vector<workloads::PlanSpec> degrees_;
  std::vector<Choice> choices_;
  std::string first_fault_;
};

}  // namespace wafersim::analysis
