#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "workloads/step_emitter.h"

namespace wafersim::workloads {

/// A run of parameters that a tile holds.
struct BucketPart {
  std::int32_t layer = 0;  ///< -1 the embedding, the number of layers the head
  Region region;
  bool token_sums = false;  ///< its gradient is made from the tokens of the rank's residual stream alone
  int kv_head = -1;         ///< k and v blocks that several ranks may hold: of which head
  bool counts = true;       ///< in the gradient norm: one of the tiles of a replica that hold it counts it
  bool of_experts = false;  ///< held by the replicas of one ep rank only
  Cut cut = Cut::plan;      ///< whose ranks share it, where operators have degrees of their own
};

/// The replicas of a tile, and those of them that hold the same experts: among whom weights, gradients and optimizer
/// states are summed, gathered and shared out.
struct Replicas {
  Group all;
  Group experts;
};

/// The weights that one gradient_sync or parameter_gather step is about.
struct Bucket {
  std::int32_t layer = 0;  ///< of its gradient_sync and parameter_gather steps
  std::vector<BucketPart> parts;
  std::uint64_t parameters() const;
  /// The parts of experts, or the others.
  Bucket part(bool of_experts) const;
};

/// Both ends of the pipeline hold the embedding's weight.
bool ties_across_stages(const LoweringInput& input);

/// The table that both ends of a pipeline hold has a bucket of its own.
std::int32_t tied_bucket(const models::TransformerSpec& model);

/// The weights of a tile of a stage, one bucket for each layer; -1 stands for the embedding, the number of layers for
/// the head.
std::map<std::int32_t, Bucket> parameter_buckets(const LoweringInput& input, const ParameterLayout& layout,
                                                 const RankContext& context, int stage);

/// Those that a step of the model may use; a tile need not hold all of them.
std::vector<std::int32_t> used_buckets(const models::TransformerSpec& model, StepKind kind, std::int32_t layer);

/// The share of a bucket that belongs to a replica (ZeRO), and what belongs to the others: of what all replicas hold,
/// then of the experts.
Bucket bucket_share(const Bucket& bucket, const Replicas& replicas);
Bucket bucket_of_others(const Bucket& bucket, const Replicas& replicas);
/// The parts that several replicas hold.
Bucket bucket_of_several(const Bucket& bucket, const Replicas& replicas);

/// A bucket's weights or gradients as one of its own steps sees them, so that the buckets of all layers share
/// templates, or as a step of no layer does.
enum class SeenFrom { own_step, elsewhere };
enum class BucketOf { weights, gradients, summed_gradients };
Views bucket_views(StepEmitter& step, const Bucket& bucket, BucketOf what, SeenFrom from);

}  // namespace wafersim::workloads
