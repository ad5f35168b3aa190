#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "analysis/step_replay.h"
#include "workloads/mapping.h"

namespace wafersim::analysis {

/// What a foreground step of a stage costs its tiles, all of them together, and the background steps that start with it.
/// Cycles.
struct ForegroundCost {
  Cycle alone = 0;                     ///< from idle tiles to the last result
  Cycle after = 0;                     ///< from the last result of the foreground step before to that of this one
  std::vector<Cycle> background_ends;  ///< from the same until the background steps between the two have ended
  bool blocked = false;                ///< its vector operations wait until those of the background steps have been issued
  Cycle late = 0;         ///< from the arrival of what other stages send, everything else being done, to the last result
  std::int64_t sent = 0;  ///< from the last result until what goes to other stages has arrived there
  bool waits = false;     ///< for a message of another stage
  Cycle vector_busy = 0;  ///< of the vector engine that it uses most
  CauseCycles causes;     ///< of the cycles of `after`, summed over the tiles of the stage
  std::vector<MessageTiming::Usage> ports;  ///< for how long it keeps them busy, on the first stage that had such a step
  TileId at = kNoTile;                      ///< the representative of that stage
};

/// What a step costs that overlaps with others, or that all stages do together.
struct BackgroundCost {
  Cycle alone = 0;     ///< from start to end with links of its own
  CauseCycles causes;  ///< of these cycles, summed over the tiles of a replica
  Cycle vector_busy = 0;
  std::vector<MessageTiming::Usage> ports;
  TileId at = kNoTile;
};

/// A lowered plan and the machine that it runs on. All must outlive what is made from it.
struct CostInput {
  const workloads::Trace& trace;
  const workloads::Mapping& mapping;
  const workloads::PlanSpec& plan;
  const models::HardwareModel& hardware;
  const topology::Mesh& mesh;
  const topology::RoutingPolicy& routing;
  CostModel model = CostModel::alpha_beta_contention;
  std::uint64_t seed = 1;  ///< of routes that are drawn
  /// Of plays on the same machine, routes, cost model and seed, for this or other plans.
  ReplayMemory* memory = nullptr;
};

/// The costs of the steps of a trace, found by playing each kind of step once: a step's templates say what it costs, so steps
/// with equal templates have equal costs, whatever their microbatch, layer and stage.
class StepCosts {
 public:
  explicit StepCosts(const CostInput& input);
  /// Whether a template costs the same wherever it runs.
  static bool same_everywhere(const topology::Mesh& mesh) { return mesh.uniform() && !mesh.has_faults() && !mesh.wraps(); }

  /// The tile that stands for a stage: that of the first ranks of the first replica.
  const workloads::TileBinding& tile_of(int stage) const { return *representatives_[static_cast<std::size_t>(stage)]; }
  const workloads::Program& program_of(int stage) const { return trace_.programs[tile_of(stage).program]; }
  /// The stage of the tile with which an operation exchanges a message.
  int stage_of_peer(int stage, std::uint32_t peer) const;
  const MessageTiming& messages() const { return messages_; }
  std::size_t tiles_per_stage() const { return members_.front().size(); }

  /// Of a step of the model, after another one (of the same stage) or, without one, at the start, with the background steps
  /// that the program has between the two.
  const ForegroundCost& foreground(int stage, std::uint32_t step, std::optional<std::uint32_t> before);
  /// ForegroundCost::after of a step behind one that the program has elsewhere.
  Cycle pair(int stage, std::uint32_t before, std::uint32_t step);
  /// Of a sum or gather of a stage, over all replicas.
  const BackgroundCost& background(int stage, std::uint32_t step);
  /// Of a step that all stages do at once, `steps` by stage; what the stages in `steps` with no value do not do.
  const BackgroundCost& together(const std::vector<std::optional<std::uint32_t>>& steps);

 private:
  using Members = std::vector<const workloads::TileBinding*>;
  std::uint32_t index_in(const workloads::TileBinding& tile, const workloads::Step& step, std::uint32_t number);
  void add(std::vector<PlayedTile>& tiles, const Members& members, int stage, const std::vector<std::uint32_t>& steps);
  BackgroundCost play_ends(const std::vector<std::optional<std::uint32_t>>& steps);
  BackgroundCost play_optimizer(const std::vector<std::optional<std::uint32_t>>& steps);
  CauseCycles per_replica(const Played& played, const std::vector<PlayedTile>& tiles) const;
  const ForegroundCost& play_alone(int stage, std::uint32_t step);
  ForegroundCost play_foreground(int stage, const std::vector<std::uint32_t>& steps, bool after);
  int place_key(int stage) const { return uniform_ ? 0 : stage; }

  const workloads::Trace& trace_;
  const topology::Mesh& mesh_;
  sim::CompiledTrace code_;
  MessageTiming messages_;
  StepReplay replay_;
  bool uniform_;
  std::vector<const workloads::TileBinding*> representatives_;
  std::vector<Members> members_;      ///< by stage: of the replicas that share out experts with the first one
  std::vector<Members> all_members_;  ///< by stage: of all replicas
  std::unordered_map<std::uint32_t, std::unordered_multimap<std::uint64_t, std::uint32_t>> step_index_;  ///< by program
  std::unordered_map<TileId, int> stage_by_tile_;
  std::map<std::pair<int, std::uint32_t>, ForegroundCost> alone_;   ///< by stage and template
  std::map<std::vector<std::int64_t>, ForegroundCost> foreground_;  ///< by place and templates
  std::map<std::pair<int, std::uint32_t>, BackgroundCost> background_;
  std::map<std::vector<std::int64_t>, BackgroundCost> together_;
};

}  // namespace wafersim::analysis
