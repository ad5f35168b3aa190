#include <algorithm>

#include "workloads/end_steps.h"

namespace wafersim::workloads {

namespace {

/// Adam: two moments by three operations each, bias corrections 2, root, division, step size, weight decay
/// and subtraction 4.
constexpr std::uint64_t kAdamFlops = 12;
/// Momentum-free SGD: weight decay 2, step 2.
constexpr std::uint64_t kSgdFlops = 4;
/// The gradient norm's square and sum.
constexpr std::uint64_t kNormFlops = 2;
/// Scaling by the clip factor.
constexpr std::uint64_t kClipFlops = 1;
/// The norm travels as one fp32.
constexpr Bytes kScalarBytes = 4;

Views own_gradients(StepEmitter& step, const Bucket& bucket) {
  return bucket_views(step, bucket, BucketOf::gradients, SeenFrom::own_step);
}

template <class Wanted>
Bucket select(const Bucket& bucket, Wanted wanted) {
  Bucket result{bucket.layer, {}};
  for (const BucketPart& part : bucket.parts) {
    if (wanted(part)) result.parts.push_back(part);
  }
  return result;
}

Bucket token_sums(const Bucket& bucket) {
  return select(bucket, [](const BucketPart& part) { return part.token_sums; });
}

Deps gradient_collective(StepEmitter& step, CollectiveKind kind, const Group& group, const Views& views,
                         const Deps& after) {
  const std::uint64_t parameters = total_rows(views);
  return step.collective(kind, group, {parameters * step.shard().gradient, parameters, 0, views}, after);
}

/// The ranks of a group that hold a kv head: all of them, or some as a chain in order of rank.
Group sharers(const Group& all, const Range& ranks) {
  if (static_cast<int>(ranks.count) == all.size) return all;
  Group group;
  group.axis = all.axis;
  group.size = static_cast<int>(ranks.count);
  group.rank = all.rank - static_cast<int>(ranks.first);
  group.shape = {1, group.size};
  group.positions = topology::row_major(group.shape);
  for (int i = 0; i < group.size; ++i) group.peers.push_back(all.peer(static_cast<int>(ranks.first) + i));
  return group;
}

/// Sums over the ranks of a group that share k and v blocks, head by head. Ranks that do not take part in a sum leave
/// its channels free, so that all agree on those of the sums that follow.
Deps sum_shared_heads(StepEmitter& step, const Group& all, const std::vector<Range>& heads, const Bucket& bucket,
                      Deps ready) {
  const auto rank = static_cast<std::uint64_t>(all.rank);
  for (std::size_t head = 0; head < heads.size(); ++head) {
    if (heads[head].count <= 1) continue;
    const Bucket own = select(bucket, [&](const BucketPart& part) { return part.kv_head == static_cast<int>(head); });
    if (rank >= heads[head].first && rank < heads[head].end()) {
      ready = gradient_collective(step, CollectiveKind::all_reduce, sharers(all, heads[head]),
                                  own_gradients(step, own), ready);
    } else {
      step.builder().new_channels(channels_of(static_cast<int>(heads[head].count), step.plan().collective_chunks));
    }
  }
  return ready;
}

/// What of a bucket is updated here: all of it, or the share that was dealt to this replica.
Bucket updated(const StepEmitter& step, const Replicas& replicas, const Bucket& bucket) {
  return step.plan().shards_optimizer() ? bucket_share(bucket, replicas) : bucket;
}

/// This rank among all whose sums of squares make the norm; the first group varies fastest.
Terms rank_terms(const std::vector<Group>& groups) {
  Terms terms{0, 1, 1};
  for (const Group& group : groups) {
    terms.first += static_cast<std::uint64_t>(group.rank) * terms.total;
    terms.total *= static_cast<std::uint64_t>(group.size);
  }
  return terms;
}

}  // namespace

namespace {

/// Adds the sums of a microbatch to those of the ones before it, and gives up its gradients.
void accumulate_share(StepEmitter& step, const Bucket& share, const Bucket& bucket, const Deps& ready) {
  const Bytes bytes = share.parameters() * step.shard().gradient;
  const Deps done = step.vector(share.parameters(), {.gradients = 3 * bytes}, ready,
                                {.kernel = Kernel::accumulate,
                                 .reads = own_gradients(step, share),
                                 .writes = bucket_views(step, share, BucketOf::summed_gradients, SeenFrom::own_step)});
  step.builder().free(MemoryClass::gradients, bucket.parameters() * step.shard().gradient, done,
                      step.operand({.kernel = Kernel::memory, .discards = own_gradients(step, bucket)}));
}

}  // namespace

namespace {

Bucket of_cut(const Bucket& bucket, Cut cut) {
  return select(bucket, [cut](const BucketPart& part) { return part.cut == cut; });
}

/// The cuts whose ranks share parts of a bucket.
std::vector<Cut> cuts_of(const Bucket& bucket) {
  std::vector<Cut> result;
  for (const Cut cut : {Cut::plan, Cut::attention, Cut::mlp}) {
    if (!of_cut(bucket, cut).parts.empty()) result.push_back(cut);
  }
  return result;
}

/// Over tatp and tp of the cut that the step is in: of its parts of a bucket, what several of its ranks make.
Deps sum_inside(StepEmitter& step, const Bucket& bucket, Deps ready) {
  const RankContext& context = step.context();
  const Views by_tokens = own_gradients(step, token_sums(bucket));
  if (step.shard().gathers()) ready = gradient_collective(step, CollectiveKind::all_reduce, context.tp, by_tokens, ready);
  ready = gradient_collective(step, CollectiveKind::all_reduce, context.tatp, by_tokens, ready);
  ready = sum_shared_heads(step, context.tatp, step.layout().line_sharers(context.tp.rank), bucket, ready);
  return sum_shared_heads(step, context.tp, context.kv_sharers, bucket, ready);
}

}  // namespace

bool needs_inner_sync(StepEmitter& step, const Bucket& bucket) {
  if (step.shard().sp > 1) return true;
  bool needed = false;
  for (const Cut cut : cuts_of(bucket)) {
    const Bucket own = of_cut(bucket, cut);
    step.enter(cut);
    const bool cuts_tokens = step.shard().gathers() || step.shard().tatp > 1;
    needed = needed || (cuts_tokens && token_sums(own).parameters() > 0) ||
             select(own, [](const BucketPart& part) { return part.kv_head >= 0; }).parameters() > 0;
  }
  step.enter(Cut::plan);
  return needed;
}

void emit_gradient_sync(StepEmitter& step, const Replicas& replicas, const Bucket& bucket) {
  Deps ready;
  for (const Cut cut : cuts_of(bucket)) {
    step.enter(cut);
    ready = sum_inside(step, of_cut(bucket, cut), std::move(ready));
  }
  step.enter(Cut::plan);
  ready = gradient_collective(step, CollectiveKind::all_reduce, step.context().sp, own_gradients(step, bucket), ready);
  const auto kind = step.plan().zero == 0 ? CollectiveKind::all_reduce : CollectiveKind::reduce_scatter;
  ready = gradient_collective(step, kind, replicas.all, own_gradients(step, bucket.part(false)), ready);
  ready = gradient_collective(step, kind, replicas.experts, own_gradients(step, bucket.part(true)), ready);
  if (step.plan().shards_gradients()) accumulate_share(step, bucket_share(bucket, replicas), bucket, ready);
}

void hold_gradients(StepEmitter& step, const Bucket& bucket) {
  step.builder().allocate(MemoryClass::gradients, bucket.parameters() * step.shard().gradient, {});
}

void emit_tied_gradient_sync(StepEmitter& step, const Replicas& replicas, const Group& tie, const Bucket& bucket) {
  gradient_collective(step, CollectiveKind::all_reduce, tie,
                      bucket_views(step, updated(step, replicas, bucket), BucketOf::summed_gradients, SeenFrom::own_step),
                      {});
}

void emit_optimizer(StepEmitter& step, const Replicas& replicas, const std::vector<Bucket>& buckets,
                    const std::vector<Group>& groups) {
  const TrainingSpec& training = step.training();
  const Bytes element = step.shard().element;
  Views weights, gradients, updated_weights, summed_gradients, counted_gradients;
  const bool sharded = step.plan().shards_gradients();
  for (const Bucket& bucket : buckets) {
    const Bucket own = updated(step, replicas, bucket);
    const Bucket counted = select(own, [](const BucketPart& part) { return part.counts; });
    weights = weights + bucket_views(step, bucket, BucketOf::weights, SeenFrom::elsewhere);
    gradients = gradients + bucket_views(step, sharded ? own : bucket, BucketOf::summed_gradients, SeenFrom::elsewhere);
    updated_weights = updated_weights + bucket_views(step, own, BucketOf::weights, SeenFrom::elsewhere);
    summed_gradients = summed_gradients + bucket_views(step, own, BucketOf::summed_gradients, SeenFrom::elsewhere);
    counted_gradients = counted_gradients + bucket_views(step, counted, BucketOf::summed_gradients, SeenFrom::elsewhere);
  }
  const std::uint64_t parameters = total_rows(summed_gradients);
  Deps scale;
  Views norm;
  if (training.clip_grad) {
    norm = step.view("gradient_norm", {{{0, 1}}, 0}, {0, 1});
    const std::uint64_t counted = total_rows(counted_gradients);
    scale = step.vector(kNormFlops * counted, {.gradients = counted * step.shard().gradient}, {},
                        {.kernel = Kernel::square_sum,
                         .reads = counted_gradients,
                         .writes = with_terms(norm, rank_terms(groups))},
                        kScalarBytes);
    for (const Group& group : groups) {
      scale = step.collective(CollectiveKind::all_reduce, group, {kScalarBytes, 1, 0, norm}, scale);
    }
  }
  // States are read and written, the gradient is read, the weight is written.
  const Bytes states = optimizer_bytes_per_parameter(training.optimizer, training.precision);
  const bool reads_weight = training.precision == Precision::fp32;
  const std::uint64_t flops =
      (training.optimizer == Optimizer::sgd ? kSgdFlops : kAdamFlops) + (training.clip_grad ? kClipFlops : 0);
  const Deps done = step.vector(flops * parameters,
                                {.parameters = (reads_weight ? 2 : 1) * element * parameters,
                                 .gradients = step.shard().gradient * parameters,
                                 .optimizer = 2 * states * parameters},
                                scale,
                                {.kernel = Kernel::update,
                                 .reads = updated_weights + summed_gradients + norm,
                                 .writes = updated_weights,
                                 .discards = gradients + weights});
  if (training.clip_grad) step.release(kScalarBytes, done, norm);
}

void emit_parameter_gather(StepEmitter& step, const Replicas& replicas, const Bucket& bucket) {
  const Bytes element = step.shard().element;
  Deps ready;
  if (step.plan().shards_parameters()) {
    const Bytes bytes = bucket_of_several(bucket, replicas).parameters() * element;
    ready = {step.builder().allocate(MemoryClass::parameters, bytes, {})};
  }
  for (const bool of_experts : {false, true}) {
    const Views views = bucket_views(step, bucket.part(of_experts), BucketOf::weights, SeenFrom::own_step);
    const std::uint64_t parameters = total_rows(views);
    ready = step.collective(CollectiveKind::all_gather, of_experts ? replicas.experts : replicas.all,
                            {parameters * element, parameters, 0, views}, ready);
  }
}

void release_parameters(StepEmitter& step, const Replicas& replicas, const Bucket& bucket, SeenFrom from) {
  const Views others = bucket_views(step, bucket_of_others(bucket, replicas), BucketOf::weights, from);
  step.builder().free(MemoryClass::parameters,
                      bucket_of_several(bucket, replicas).parameters() * step.shard().element, {},
                      step.operand({.kernel = Kernel::memory, .discards = others}));
}

}  // namespace wafersim::workloads
