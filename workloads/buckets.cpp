#include "workloads/buckets.h"

#include <algorithm>

#include "workloads/schedule.h"

namespace wafersim::workloads {

namespace {

/// Which ranks count a parameter in the gradient norm: the first of those that hold it. Ranks of ep hold the same but
/// for experts, or, where replicas share gradients out, shares of it that all count.
bool counts_for_ep(const RankContext& context) {
  return context.input.plan.shards_optimizer() || context.shard.rank.ep == 0;
}
bool counts_own(const RankContext& context) { return context.shard.rank.sp == 0 && counts_for_ep(context); }
/// Of what all inner ranks hold.
bool counts_shared(const RankContext& context) {
  const InnerRank& rank = context.shard.rank;
  return rank.tp == 0 && rank.tatp == 0 && counts_own(context);
}

/// Where operators have degrees of their own: norm and output bias of one, then its weights.
std::vector<Region> operator_regions(const ParameterLayout& layout, const InnerRank& rank, Cut cut) {
  const int which = cut == Cut::attention ? 0 : 1;
  std::vector<Region> regions = layout.layer(rank.tp, rank.tatp);
  regions.front() = layout.norm(which);
  if (layout.output_bias(which).rows > 0) regions.insert(regions.begin() + 1, layout.output_bias(which));
  return regions;
}

/// Those of layer 0 that a context cuts; those of all layers are alike. `counts_common`: whether this tile counts what all hold.
Bucket layer_bucket(const RankContext& context, Cut cut, bool counts_common) {
  const ParameterLayout& layout = context.layout;
  const InnerRank& rank = context.shard.rank;
  Bucket bucket{0, {}};
  const auto shared_kv = layout.replicated_kv(rank.tp, rank.tatp);
  const std::uint64_t held_by_all = layout.router().row + layout.router().rows;
  for (const Region& region : cut == Cut::plan ? layout.layer(rank.tp, rank.tatp) : operator_regions(layout, rank, cut)) {
    BucketPart part{0, region};
    part.cut = cut;
    part.counts = counts_own(context);
    if (region.row < held_by_all) {
      // Norms, output biases and router come first.
      part.token_sums = true;
      part.counts = counts_common;
    }
    for (const auto& shared : shared_kv) {
      if (region != shared.region) continue;
      part.kv_head = shared.kv_head;
      const auto head = static_cast<std::size_t>(shared.kv_head);
      const auto is_first = [head](const std::vector<Range>& sharers, int own) {
        return sharers.empty() || sharers[head].first == static_cast<std::uint64_t>(own);
      };
      part.counts = part.counts && is_first(context.kv_sharers, rank.tp) &&
                    is_first(layout.line_sharers(rank.tp), rank.tatp);
    }
    bucket.parts.push_back(part);
  }
  for (const Region& region : layout.experts(rank.tp, rank.tatp, context.shard.experts)) {
    bucket.parts.push_back({.layer = 0, .region = region, .counts = rank.sp == 0, .of_experts = true});
  }
  return bucket;
}

Bucket joined(Bucket first, const Bucket& second) {
  first.parts.insert(first.parts.end(), second.parts.begin(), second.parts.end());
  return first;
}

/// All of layer 0 that a tile holds.
Bucket layer_bucket(const RankContext& context) {
  if (context.reshards == nullptr) return layer_bucket(context, Cut::plan, counts_shared(context));
  Bucket all{0, {}};
  for (const Cut cut : {Cut::attention, Cut::mlp}) {
    all = joined(std::move(all), layer_bucket(*context.cuts[static_cast<std::size_t>(cut)], cut, counts_shared(context)));
  }
  return all;
}

/// The parts between two places of a bucket.
Bucket cut(const Bucket& bucket, std::uint64_t first, std::uint64_t end) {
  Bucket result{bucket.layer, {}};
  std::uint64_t begin = 0;  // of the part, in the bucket
  for (BucketPart part : bucket.parts) {
    const std::uint64_t behind = begin + part.region.rows;
    const std::uint64_t from = std::max(begin, first), to = std::min(behind, end);
    part.region.row += from - begin;
    part.region.rows = to - from;
    if (from < to) result.parts.push_back(part);
    begin = behind;
  }
  return result;
}

Bucket cut_share(const Bucket& bucket, const Group& group) {
  const Range own = share_range(bucket.parameters(), group.size, group.rank);
  return cut(bucket, own.first, own.end());
}

Bucket cut_others(const Bucket& bucket, const Group& group) {
  const Range own = share_range(bucket.parameters(), group.size, group.rank);
  return joined(cut(bucket, 0, own.first), cut(bucket, own.end(), bucket.parameters()));
}

}  // namespace

Bucket Bucket::part(bool of_experts) const {
  Bucket result{layer, {}};
  for (const BucketPart& each : parts) {
    if (each.of_experts == of_experts) result.parts.push_back(each);
  }
  return result;
}

std::uint64_t Bucket::parameters() const {
  std::uint64_t total = 0;
  for (const BucketPart& part : parts) total += part.region.rows;
  return total;
}

bool ties_across_stages(const LoweringInput& input) {
  return input.model.tied_embeddings && input.model.embedding && input.model.head && input.plan.pp > 1;
}

std::int32_t tied_bucket(const models::TransformerSpec& model) { return model.layers + 1; }

std::map<std::int32_t, Bucket> parameter_buckets(const LoweringInput& input, const ParameterLayout& layout,
                                                 const RankContext& context, int stage) {
  const InnerRank& rank = context.shard.rank;
  const std::int32_t head = input.model.layers;
  const bool across = ties_across_stages(input);
  const bool tied = input.model.tied_embeddings && input.model.embedding;
  std::map<std::int32_t, Bucket> result;
  const auto add = [&](std::int32_t bucket, const BucketPart& part) {
    if (part.region.rows == 0) return;
    result[bucket].layer = bucket;
    result[bucket].parts.push_back(part);
  };
  if (input.model.embedding && stage == 0) {
    const bool whole = input.plan.embedding == EmbeddingTable::replicated;
    add(-1, {.layer = -1, .region = layout.positions(), .token_sums = true, .counts = counts_shared(context)});
    add(across ? tied_bucket(input.model) : -1,
        {.layer = -1,
         .region = whole ? layout.whole_table() : layout.table(false, rank.tp, rank.tatp),
         .token_sums = whole,
         .counts = whole ? counts_shared(context) : counts_own(context)});
  }
  const Bucket any_layer = layer_bucket(context);
  for (int chunk = 0; chunk < input.plan.virtual_stages; ++chunk) {
    const LayerRange range = virtual_stage_layers(input.plan, input.model.layers, chunk * input.plan.pp + stage);
    for (std::int32_t layer = range.first; layer <= range.last(); ++layer) {
      Bucket& bucket = result[layer] = any_layer;
      bucket.layer = layer;
      for (BucketPart& part : bucket.parts) part.layer = layer;
    }
  }
  if (input.model.head && stage == input.plan.pp - 1) {
    add(head, {.layer = head, .region = layout.final_norm(), .token_sums = true, .counts = counts_shared(context)});
    if (!tied) add(head, {.layer = head, .region = layout.table(true, rank.tp, rank.tatp), .counts = counts_own(context)});
    if (across) {
      // The other end counts it.
      add(tied_bucket(input.model), {.layer = -1, .region = layout.table(false, rank.tp, rank.tatp), .counts = false});
    }
  }
  return result;
}

std::vector<std::int32_t> used_buckets(const models::TransformerSpec& model, StepKind kind, std::int32_t layer) {
  if (kind == StepKind::layer) return {layer};
  if (kind == StepKind::embedding) return {-1, tied_bucket(model)};
  return {model.layers, tied_bucket(model), -1};
}

Bucket bucket_share(const Bucket& bucket, const Replicas& replicas) {
  return joined(cut_share(bucket.part(false), replicas.all), cut_share(bucket.part(true), replicas.experts));
}

Bucket bucket_of_others(const Bucket& bucket, const Replicas& replicas) {
  return joined(cut_others(bucket.part(false), replicas.all), cut_others(bucket.part(true), replicas.experts));
}

Bucket bucket_of_several(const Bucket& bucket, const Replicas& replicas) {
  return replicas.experts.size > 1 ? bucket : bucket.part(false);
}

Views bucket_views(StepEmitter& step, const Bucket& bucket, BucketOf what, SeenFrom from) {
  Views result;
  for (const BucketPart& part : bucket.parts) {
    Views views = what == BucketOf::weights     ? step.weights({part.region})
                  : what == BucketOf::gradients ? step.gradients({part.region})
                                                : step.summed_gradients({part.region});
    const bool relative = from == SeenFrom::own_step && part.layer == bucket.layer;
    result = result + (relative ? views : StepEmitter::of_layer(std::move(views), part.layer));
  }
  return result;
}

}  // namespace wafersim::workloads
