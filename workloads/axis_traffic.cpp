#include "workloads/axis_traffic.h"

#include <algorithm>

#include "workloads/schedule.h"
#include "workloads/parameter_layout.h"

namespace wafersim::workloads {
namespace {

/// The gradient norm travels as one fp32, and so do maximum and sum of a token's softmax.
constexpr Bytes kFp32Bytes = 4;

/// Collectives of one tensor-parallel group in an iteration, by what they are of.
struct LayerCollectives {
  std::uint64_t gathers = 0;  ///< of the residual stream
  std::uint64_t sums = 0;     ///< of the residual stream: reduce-scatter with SP, all-reduce without
  std::uint64_t scalars = 0;  ///< all-reduces of one fp32 a token
};

class PlanTraffic {
 public:
  PlanTraffic(const models::TransformerSpec& model, const TrainingSpec& training, const PlanSpec& plan)
      : model_(model),
        training_(training),
        plan_(plan),
        microbatches_(static_cast<std::uint64_t>(training.microbatches(plan.dp))),
        layout_(model, plan),
        element_(element_bytes(training.precision)) {
    for (int tp = 0; tp < plan.tp; ++tp) shards_.push_back(make_shard(model, training, plan, {tp, 0, 0}));
  }

  std::vector<AxisTraffic> run() {
    for (int stage = 0; stage < plan_.pp; ++stage) add_layers(stage);
    add_boundaries();
    for (int stage = 0; stage < plan_.pp; ++stage) {
      for (int tp = 0; tp < plan_.tp; ++tp) add_gradients(stage, tp);
    }
    add_tied_gradients();
    add_gradient_norm();
    merge_spans(&AxisTraffic::tp);
    merge_spans(&AxisTraffic::pp);
    return std::move(traffic_);
  }

 private:
  RankSpan every(Axis axis) const { return {0, plan_.degree(axis)}; }
  static RankSpan only(int rank) { return {rank, 1}; }

  void add(Axis axis, TrafficPattern pattern, Bytes bytes, std::uint64_t times, RankSpan tp, RankSpan pp,
           RankSpan dp) {
    if (plan_.degree(axis) == 1 || bytes == 0 || times == 0) return;
    traffic_.push_back({axis, pattern, bytes, times, tp, pp, dp});
  }

  bool sequence_parallel() const { return plan_.sp == SequenceParallel::megatron; }
  bool is_first(int stage) const { return stage == 0; }
  bool is_last(int stage) const { return stage == plan_.pp - 1; }
  std::uint64_t chunks() const { return static_cast<std::uint64_t>(plan_.virtual_stages); }
  std::uint64_t layers_of(int stage) const {
    std::uint64_t total = 0;
    for (int chunk = 0; chunk < plan_.virtual_stages; ++chunk) {
      total += static_cast<std::uint64_t>(virtual_stage_layers(plan_, model_.layers, chunk * plan_.pp + stage).count);
    }
    return total;
  }
  bool slices_boundary() const { return plan_.tp > 1 && !sequence_parallel() && !plan_.pp_transfer_full; }
  bool ties_across_stages() const {
    return model_.tied_embeddings && model_.embedding && model_.head && plan_.pp > 1;
  }

  LayerCollectives layer_collectives() const {
    const std::uint64_t sums = model_.parallel_residual ? 1 : 2;
    const std::uint64_t gathers = sequence_parallel() ? sums : 0;
    const std::uint64_t forwards = training_.recompute == models::Recompute::full ? 2 : 1;
    // The backward pass gathers each gradient, and each saved input once more for the weight gradients; a weight pass
    // of its own the gradients as well.
    const std::uint64_t backwards = splits_backward(plan_.schedule) ? 3 : 2;
    return {forwards * gathers + backwards * gathers, forwards * sums + sums, 0};
  }

  void add_layers(int stage) {
    const std::uint64_t layers = layers_of(stage);
    LayerCollectives all = layer_collectives();
    all.gathers *= layers;
    all.sums *= layers;
    const std::uint64_t gather = sequence_parallel() ? 1 : 0;
    if (model_.embedding && is_first(stage)) {
      all.sums += 1;
      all.gathers += gather;
    }
    if (model_.head && is_last(stage)) {
      all.sums += 1;
      all.gathers += 2 * gather;
      all.scalars += 2;
    }
    if (slices_boundary() && plan_.pp > 1) {
      all.gathers += 2 * chunks() - (is_first(stage) ? 1U : 0U) - (is_last(stage) ? 1U : 0U);
    }
    const Shard& shard = shards_.front();
    const auto add_all = [&](TrafficPattern pattern, Bytes bytes, std::uint64_t times) {
      add(Axis::tp, pattern, bytes, times * microbatches_, every(Axis::tp), only(stage), every(Axis::dp));
    };
    add_all(TrafficPattern::all_gather, shard.stream_bytes(), all.gathers);
    add_all(sequence_parallel() ? TrafficPattern::reduce_scatter : TrafficPattern::all_reduce,
            shard.stream_bytes(), all.sums);
    add_all(TrafficPattern::all_reduce, kFp32Bytes * shard.tokens, all.scalars);
  }

  void add_boundaries() {
    for (int tp = 0; tp < plan_.tp; ++tp) {
      const Shard& shard = shards_[static_cast<std::size_t>(tp)];
      const Bytes bytes =
          slices_boundary() ? share(shard.stream_bytes(), plan_.tp, tp) : shard.local_stream_bytes();
      for (const TrafficPattern pattern : {TrafficPattern::to_next, TrafficPattern::to_previous}) {
        add(Axis::pp, pattern, bytes, chunks() * microbatches_, only(tp), every(Axis::pp), every(Axis::dp));
      }
      // From each chunk of the last stage to the next one of the first, and the gradients back.
      add(Axis::pp, TrafficPattern::between_ends, bytes, (chunks() - 1) * microbatches_, only(tp), every(Axis::pp),
          every(Axis::dp));
    }
  }

  /// The gradients of a tile bucket by bucket, and with zero 1 the weights on their way back.
  void add_gradients(int stage, int tp) {
    const auto add_bucket = [&](std::uint64_t parameters, std::uint64_t times) {
      const auto add_all = [&](TrafficPattern pattern) {
        add(Axis::dp, pattern, parameters * element_, times, only(tp), only(stage), every(Axis::dp));
      };
      add_all(plan_.zero == 0 ? TrafficPattern::all_reduce : TrafficPattern::reduce_scatter);
      if (plan_.zero > 0 && training_.optimizer != Optimizer::none) add_all(TrafficPattern::all_gather);
    };
    if (model_.embedding && is_first(stage)) add_bucket(parameters_in(layout_.embedding(tp, 0)), 1);
    const std::uint64_t layers = layers_of(stage);
    add_bucket(parameters_in(layout_.layer(tp, 0)), layers);
    if (model_.head && is_last(stage)) {
      add_bucket(parameters_in(layout_.head(tp, 0, !model_.tied_embeddings || !model_.embedding)), 1);
    }
  }

  void add_tied_gradients() {
    if (!ties_across_stages()) return;
    for (int tp = 0; tp < plan_.tp; ++tp) {
      const std::uint64_t tied = layout_.table(false, tp, 0).rows;
      for (int dp = 0; dp < plan_.dp; ++dp) {
        const std::uint64_t parameters = plan_.zero == 0 ? tied : share(tied, plan_.dp, dp);
        add(Axis::pp, TrafficPattern::between_ends, parameters * element_, 1, only(tp), every(Axis::pp),
            only(dp));
      }
    }
  }

  void add_gradient_norm() {
    if (!training_.clip_grad || training_.optimizer == Optimizer::none) return;
    std::vector<Axis> axes = {Axis::tp, Axis::pp};
    if (plan_.zero > 0) axes.push_back(Axis::dp);
    for (const Axis axis : axes) {
      add(axis, TrafficPattern::all_reduce, kFp32Bytes, 1, every(Axis::tp), every(Axis::pp), every(Axis::dp));
    }
  }

  /// Joins what differs in neighbouring spans only.
  void merge_spans(RankSpan AxisTraffic::*span) {
    const auto without_span = [span](AxisTraffic traffic) {
      traffic.*span = {};
      return traffic;
    };
    std::stable_sort(traffic_.begin(), traffic_.end(), [&](const AxisTraffic& a, const AxisTraffic& b) {
      const AxisTraffic of_a = without_span(a), of_b = without_span(b);
      return of_a != of_b ? of_a < of_b : a.*span < b.*span;
    });
    std::vector<AxisTraffic> merged;
    for (const AxisTraffic& traffic : traffic_) {
      const bool joins = !merged.empty() && without_span(merged.back()) == without_span(traffic) &&
                         (merged.back().*span).first + (merged.back().*span).count == (traffic.*span).first;
      if (joins) {
        (merged.back().*span).count += (traffic.*span).count;
      } else {
        merged.push_back(traffic);
      }
    }
    traffic_ = std::move(merged);
  }

  const models::TransformerSpec& model_;
  const TrainingSpec& training_;
  const PlanSpec& plan_;
  std::uint64_t microbatches_;
  ParameterLayout layout_;
  Bytes element_;
  std::vector<Shard> shards_;  ///< by tp rank
  std::vector<AxisTraffic> traffic_;
};

}  // namespace

std::vector<AxisTraffic> plan_traffic(const models::TransformerSpec& model, const TrainingSpec& training,
                                      const PlanSpec& plan) {
  return PlanTraffic(model, training, plan).run();
}

}  // namespace wafersim::workloads
