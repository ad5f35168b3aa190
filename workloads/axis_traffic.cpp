#include "workloads/axis_traffic.h"

#include <deque>

#include "base/error.h"
#include "workloads/reshard.h"
#include "workloads/schedule.h"
#include "workloads/traffic_source.h"

namespace wafersim::workloads {
namespace {

/// The gradient norm travels as one fp32, and so do maximum and sum of a token's softmax.
constexpr Bytes kFp32Bytes = 4;

/// Collectives of one tensor-parallel group in an iteration, by what they are of.
struct TokenCollectives {
  std::uint64_t gathers = 0;  ///< of the residual stream
  std::uint64_t sums = 0;     ///< of the residual stream: reduce-scatter with SP, all-reduce without
  std::uint64_t gate_gathers = 0;  ///< of the router's gates: one fp32 a choice
  std::uint64_t gate_sums = 0;     ///< of their gradients, as sums
  std::uint64_t scalars = 0;  ///< all-reduces of one fp32 a token
};

/// The parameters of a rank's gradient_sync.
struct BucketRows {
  std::uint64_t token_sums =
      0;  ///< norms, output biases, positions: each rank has the gradients of its tokens
  std::uint64_t others = 0;
  std::uint64_t uses = 2;  ///< steps of a microbatch that use the weights: forward, backward, recompute
  std::uint64_t experts = 0;  ///< of a rank's experts, which the replicas of one ep rank hold
  bool sums_by_operator = false;  ///< the token sums are summed over the ranks of each operator
  std::uint64_t of_all_replicas() const { return token_sums + others; }
  std::uint64_t all() const { return of_all_replicas() + experts; }
};

class PlanTraffic {
 public:
  /// `cuts`: where operators have degrees of their own, otherwise null.
  PlanTraffic(const models::TransformerSpec& model, const TrainingSpec& training, const PlanSpec& plan, const PlanCuts* cuts)
      : source_(model, training, plan), plan_(plan), cuts_(cuts), list_(plan) {
    if (cuts_ == nullptr) return;
    for (const Cut cut : {Cut::attention, Cut::mlp}) {
      operators_.emplace_back(model, training, cuts->plan(cut), cut, operator_parameters(model, training, plan, cut));
    }
  }

  std::vector<AxisTraffic> run() {
    for (const RankSpan stages : source_.alike_stages()) {
      TokenCollectives ends = end_collectives(stages.first);
      if (cuts_ == nullptr) {
        ends = join(ends, layer_collectives(source_, stages.first));
        add_layers(source_, stages);
      }
      add_token_collectives(source_, stages, ends);
      add_head_stream(source_, list_, stages);
      for (const TrafficSource& each : operators_) add_operator(each, stages);
      if (cuts_ != nullptr) add_reshards(stages);
      list_.enter(Cut::plan, plan_);
      for (int tatp = 0; tatp < plan_.tatp; ++tatp) {
        for (int tp = 0; tp < plan_.tp; ++tp) add_gradients(stages, tp, tatp);
      }
    }
    add_embedding_line();
    add_boundaries();
    add_tied_gradients();
    add_gradient_norm();
    return list_.take();
  }

 private:
  bool slices_boundary() const {
    return plan_.tp > 1 && !source_.sequence_parallel() && !plan_.pp_transfer_full;
  }
  std::uint64_t chunks() const { return static_cast<std::uint64_t>(plan_.virtual_stages); }
  Bytes stream_row() const { return source_.hidden * source_.element; }

  /// Of the layers that `source` is of, or of one of their two operators.
  void add_layers(const TrafficSource& source, RankSpan stages) {
    add_experts(stages);
    add_product_streams(source, list_, stages);
    if (!source.has_pair(0)) return;
    add_attention_traffic(source, list_, stages);
    for (int tp = 0; tp < source.plan.tp; ++tp) add_line_heads(source, stages, tp);
    for (int tatp = 0; tatp < source.plan.tatp; ++tatp) add_shared_heads(source, stages, tatp);
  }

  /// Of an operator with its own degrees.
  void add_operator(const TrafficSource& source, RankSpan stages) {
    list_.enter(source.cut, source.plan);
    add_token_collectives(source, stages, layer_collectives(source, stages.first));
    add_layers(source, stages);
    const int which = source.has_pair(0) ? 0 : 1;
    AxisTraffic traffic{.axis = Axis::tatp,
                        .pattern = TrafficPattern::all_reduce,
                        .rows = source.layout.norm(which).rows + source.layout.output_bias(which).rows,
                        .row_bytes = source.gradient,
                        .times = source.layers(stages.first) * (plan_.shards_gradients() ? source.microbatches : 1),
                        .spans = list_.at({{Axis::pp, stages}})};
    list_.add(traffic);
    traffic.axis = Axis::tp;
    if (source.sequence_parallel()) list_.add(traffic);
  }

  /// From the plan's cut through attention and the MLP back to it in each forward pass, and back in the backward pass.
  void add_reshards(RankSpan stages) {
    const Reshards reshards(source_.model, source_.training, *cuts_);
    const std::uint64_t passes = source_.layer_passes(stages.first);
    for (int sp = 0; sp < plan_.sp_degree; ++sp) {
      for (const auto& [from, to] : {std::pair{Cut::plan, Cut::attention}, {Cut::attention, Cut::mlp}, {Cut::mlp, Cut::plan}}) {
        add_reshard(reshards.get(from, to, sp), from, stages, sp, source_.forwards * passes);
        add_reshard(reshards.get(to, from, sp), to, stages, sp, passes);
      }
    }
  }

  void add_reshard(const Reshard& reshard, Cut from, RankSpan stages, int sp, std::uint64_t times) {
    const PlanSpec& plan = cuts_->plan(from);
    AxisTraffic traffic{.axis = Axis::tatp, .row_bytes = stream_row(), .times = times};
    if (reshard.gathers()) {
      list_.enter(from, plan);
      traffic.pattern = TrafficPattern::all_gather;
      for (int tatp = 0; tatp < plan.tatp; ++tatp) {
        traffic.parts.push_back(work_tokens(source_.model, source_.training, plan, sp, tatp).count());
      }
    } else {
      list_.enter(Cut::plan, plan_);
      traffic.pattern = TrafficPattern::pairs;
      traffic.block = true;
      for (int sender = 0; sender < cuts_->block(); ++sender) {
        for (int member = 0; member < cuts_->block(); ++member) {
          traffic.parts.push_back(reshard.agrees() ? 0 : reshard.sent(sender, member).count());
        }
      }
    }
    for (const std::uint64_t rows : traffic.parts) traffic.rows += rows;
    traffic.spans = list_.at({{Axis::pp, stages}, {Axis::sp, sp}});
    list_.add(std::move(traffic));
  }

  static TokenCollectives join(TokenCollectives a, const TokenCollectives& b) {
    return {a.gathers + b.gathers, a.sums + b.sums, a.gate_gathers + b.gate_gathers, a.gate_sums + b.gate_sums,
            a.scalars + b.scalars};
  }

  /// Of a stage's layers and a microbatch. The backward pass gathers each block's gradient (with parallel residuals
  /// both have the same), and each saved input once more for the weight gradients; a weight pass of its own
  /// gathers the gradients as well. Experts have what their weight gradients need in rows of their own.
  TokenCollectives layer_collectives(const TrafficSource& source, int stage) const {
    const bool routes = source.model.routes();
    const std::uint64_t layers = source.layers(stage);
    const std::uint64_t blocks = (source.has_pair(0) ? 1U : 0U) + (source.has_pair(1) ? 1U : 0U);
    const std::uint64_t outputs = source.model.parallel_residual ? 1 : blocks;
    const std::uint64_t inputs = routes ? 1 : blocks;
    TokenCollectives all{.sums = layers * (source.forwards * outputs + blocks), .gate_sums = routes ? layers : 0};
    if (!source.sequence_parallel()) return all;
    const std::uint64_t again = splits_backward(plan_.schedule) ? (routes ? 1 : outputs) : 0;
    all.gathers = layers * (source.forwards * blocks + outputs + again + inputs);
    all.gate_gathers = routes ? layers * source.forwards : 0;
    return all;
  }

  /// Of embedding, head and boundaries of a stage, and a microbatch.
  TokenCollectives end_collectives(int stage) const {
    TokenCollectives all;
    const std::uint64_t gather = source_.sequence_parallel() ? 1 : 0;
    if (source_.has_embedding(stage) && !source_.replicates_table()) {
      all.sums += 1;
      all.gathers += gather;
    }
    if (source_.has_head(stage)) {
      all.sums += 1;
      all.gathers += 2 * gather;
      all.scalars += 2;
    }
    if (slices_boundary() && plan_.pp > 1) {
      all.gathers += 2 * chunks() - (source_.is_first(stage) ? 1U : 0U) - (source_.is_last(stage) ? 1U : 0U);
    }
    return all;
  }

  void add_token_collectives(const TrafficSource& source, RankSpan stages, const TokenCollectives& all) {
    const TrafficPattern sums =
        source_.sequence_parallel() ? TrafficPattern::reduce_scatter : TrafficPattern::all_reduce;
    for (int sp = 0; sp < plan_.sp_degree; ++sp) {
      for (int tatp = 0; tatp < source.plan.tatp; ++tatp) {
        const auto add = [&](TrafficPattern pattern, Bytes row_bytes, std::uint64_t times) {
          list_.add({.axis = Axis::tp,
                     .pattern = pattern,
                     .rows = source.tokens(sp, tatp),
                     .row_bytes = row_bytes,
                     .times = times * source_.microbatches,
                     .spans = list_.at({{Axis::pp, stages}, {Axis::sp, sp}, {Axis::tatp, tatp}})});
        };
        add(TrafficPattern::all_gather, stream_row(), all.gathers);
        add(sums, stream_row(), all.sums);
        add(TrafficPattern::all_reduce, kFp32Bytes, all.scalars);
        const Bytes gates = kFp32Bytes * static_cast<std::uint64_t>(source_.model.top_k);
        add(TrafficPattern::all_gather, gates, all.gate_gathers);
        add(sums, gates, all.gate_sums);
      }
    }
  }

  /// Slots for the tokens of each rank at the experts of every other: inputs and outputs in each forward pass, and their
  /// gradients.
  void add_experts(RankSpan stages) {
    if (plan_.ep == 1) return;
    for (int sp = 0; sp < plan_.sp_degree; ++sp) {
      for (int tatp = 0; tatp < plan_.tatp; ++tatp) {
        const auto experts = static_cast<std::uint64_t>(source_.model.experts / plan_.ep);
        const std::uint64_t slots = experts * models::expert_capacity(source_.model, source_.tokens(sp, tatp));
        const std::vector<std::uint64_t> parts(static_cast<std::size_t>(plan_.ep), slots), factors(parts.size(), 1);
        list_.add({.axis = Axis::ep,
                   .pattern = TrafficPattern::exchange,
                   .rows = slots * parts.size(),
                   .row_bytes = stream_row(),
                   .parts = parts,
                   .factors = factors,
                   .times = 2 * (source_.forwards + 1) * source_.layer_passes(stages.first),
                   .spans = list_.at({{Axis::pp, stages}, {Axis::sp, sp}, {Axis::tatp, tatp}})});
      }
    }
  }

  /// Every rank of a line looks up the tokens of all.
  void add_embedding_line() {
    if (!source_.model.embedding || source_.replicates_table()) return;
    for (int sp = 0; sp < plan_.sp_degree; ++sp) {
      AxisTraffic traffic{.axis = Axis::tatp,
                          .row_bytes = stream_row(),
                          .times = source_.microbatches,
                          .spans = list_.at({{Axis::pp, 0}, {Axis::sp, sp}})};
      for (int tatp = 0; tatp < plan_.tatp; ++tatp) {
        traffic.parts.push_back(source_.tokens(sp, tatp));
        traffic.rows += traffic.parts.back();
      }
      for (const TrafficPattern pattern : {TrafficPattern::reduce_scatter, TrafficPattern::all_gather}) {
        traffic.pattern = pattern;
        list_.add(traffic);
      }
    }
  }

  /// With several chunks also from each chunk of the last stage to the next one of the first, and back.
  void add_boundaries() {
    const bool whole = !slices_boundary() && !source_.sequence_parallel();
    for (int sp = 0; sp < plan_.sp_degree; ++sp) {
      for (int tatp = 0; tatp < plan_.tatp; ++tatp) {
        const std::uint64_t tokens = source_.tokens(sp, tatp);
        for (int tp = 0; tp < plan_.tp; ++tp) {
          const auto add = [&](TrafficPattern pattern, std::uint64_t times) {
            list_.add({.axis = Axis::pp,
                       .pattern = pattern,
                       .rows = whole ? tokens : share(tokens, plan_.tp, tp),
                       .row_bytes = stream_row(),
                       .times = times * source_.microbatches,
                       .spans = list_.at({{Axis::tp, tp}, {Axis::tatp, tatp}, {Axis::sp, sp}})});
          };
          add(TrafficPattern::to_next, chunks());
          add(TrafficPattern::to_previous, chunks());
          add(TrafficPattern::between_ends, chunks() - 1);
        }
      }
    }
  }

  /// Parameters of a layer that a tile has besides those that all have.
  std::uint64_t layer_weights(int tp, int tatp) const {
    const auto weights = [](const TrafficSource& source, const Ranks& ranks) {
      const std::vector<Region> layer = source.layout.layer(ranks.tp, ranks.tatp);
      return parameters_in(layer) - layer.front().rows;
    };
    Ranks ranks;
    ranks.tp = tp;
    ranks.tatp = tatp;
    if (cuts_ == nullptr) return weights(source_, ranks);
    std::uint64_t total = 0;
    for (const TrafficSource& each : operators_) total += weights(each, cuts_->ranks(each.cut, ranks));
    return total;
  }

  /// The buckets of a rank with their times.
  std::vector<std::pair<BucketRows, std::uint64_t>> buckets(int stage, int tp, int tatp) const {
    const ParameterLayout& layout = source_.layout;
    const std::uint64_t table = layout.table(false, tp, tatp).rows;
    const bool across = source_.ties_across_stages();
    const bool tied = source_.model.tied_embeddings && source_.model.embedding;
    std::vector<std::pair<BucketRows, std::uint64_t>> all;
    const std::uint64_t sums = layout.layer(tp, tatp).front().rows;  // norms, output biases and router
    const std::uint64_t remade = source_.remade_layers(stage);
    BucketRows rows{.token_sums = sums,
                    .others = layer_weights(tp, tatp),
                    .experts = parameters_in(layout.experts(tp, tatp, source_.shard(tp, 0).experts)),
                    .sums_by_operator = cuts_ != nullptr};
    all.push_back({rows, source_.layers(stage) - remade});
    rows.uses = 3;
    if (remade > 0) all.push_back({rows, remade});
    if (source_.has_embedding(stage) && source_.replicates_table()) {
      all.push_back({{layout.positions().rows + layout.whole_table().rows, 0}, 1});
    } else if (source_.has_embedding(stage)) {
      const bool by_head = tied && !across && source_.has_head(stage);
      all.push_back({{layout.positions().rows, across ? 0 : table, by_head ? 4U : 2U}, 1});
    }
    if (source_.has_head(stage)) all.push_back({{layout.final_norm().rows, tied ? 0 : table}, 1});
    if (across && (source_.is_first(stage) || source_.is_last(stage))) all.push_back({{0, table}, 1});
    return all;
  }

  /// The gradients of a tile bucket by bucket, once or for each microbatch (zero 2 and 3), and the weights on their way
  /// back: once from the optimizer (zero 1 and 2) or for each use (zero 3).
  void add_gradients(RankSpan stages, int tp, int tatp) {
    for (const auto& [bucket, times] : buckets(stages.first, tp, tatp)) {
      const std::uint64_t sums = times * (plan_.shards_gradients() ? source_.microbatches : 1);
      const std::uint64_t gathers = times * (plan_.shards_parameters() ? bucket.uses * source_.microbatches : 1);
      const auto add = [&](Axis axis, TrafficPattern pattern, std::uint64_t rows, bool replicas = false) {
        AxisTraffic traffic{
            .axis = axis,
            .pattern = pattern,
            .rows = rows,
            .row_bytes = pattern == TrafficPattern::all_gather ? source_.element : source_.gradient,
            .times = pattern == TrafficPattern::all_gather ? gathers : sums,
            .spans = list_.at({{Axis::pp, stages}, {Axis::tp, tp}, {Axis::tatp, tatp}}),
            .replicas = replicas};
        traffic.spans[static_cast<std::size_t>(axis)] = {0, plan_.degree(axis)};
        list_.add(std::move(traffic));
      };
      const bool here = !bucket.sums_by_operator;
      if (here && tp == 0 && source_.sequence_parallel())
        add(Axis::tp, TrafficPattern::all_reduce, bucket.token_sums);
      if (here && tatp == 0) add(Axis::tatp, TrafficPattern::all_reduce, bucket.token_sums);
      add(Axis::sp, TrafficPattern::all_reduce, bucket.all());
      const auto sum = plan_.zero == 0 ? TrafficPattern::all_reduce : TrafficPattern::reduce_scatter;
      add(Axis::dp, sum, bucket.of_all_replicas(), true);
      add(Axis::dp, sum, bucket.experts);
      const bool updates = plan_.zero > 0 && source_.training.optimizer != Optimizer::none;
      if (updates || plan_.shards_parameters()) {
        add(Axis::dp, TrafficPattern::all_gather, bucket.of_all_replicas(), true);
        add(Axis::dp, TrafficPattern::all_gather, bucket.experts);
      }
    }
  }

  /// Gradients of the k and v blocks that several tensor-parallel ranks hold, head by head.
  void add_shared_heads(const TrafficSource& source, RankSpan stages, int tatp) {
    if (source.plan.tp <= source.model.kv_heads) return;
    std::vector<RankSpan> sharers(static_cast<std::size_t>(source.model.kv_heads), {0, 0});
    std::vector<std::uint64_t> rows(sharers.size(), 0);
    for (int tp = 0; tp < source.plan.tp; ++tp) {
      const Range& heads = source.shard(tp, 0).kv_heads;
      for (std::uint64_t head = heads.first; head < heads.end(); ++head) {
        if (sharers[head].count++ > 0) continue;
        sharers[head].first = tp;
        for (const auto& shared : source.layout.replicated_kv(tp, tatp)) {
          if (shared.kv_head == static_cast<int>(head)) rows[head] += shared.region.rows;
        }
      }
    }
    for (std::size_t head = 0; head < sharers.size(); ++head) {
      AxisTraffic traffic{.axis = Axis::tp,
                          .rows = rows[head],
                          .row_bytes = source.gradient,
                          .times = source.layers(stages.first) * (plan_.shards_gradients() ? source.microbatches : 1),
                          .spans = list_.at({{Axis::pp, stages}, {Axis::tatp, tatp}})};
      traffic.spans[static_cast<std::size_t>(Axis::tp)] = sharers[head];
      list_.add(std::move(traffic));
    }
  }

  /// The same of those that several ranks of a line hold.
  void add_line_heads(const TrafficSource& source, RankSpan stages, int tp) {
    const std::vector<Range> sharers = source.layout.line_sharers(tp);
    for (std::size_t head = 0; head < sharers.size(); ++head) {
      if (sharers[head].count == 0) continue;
      const int first = static_cast<int>(sharers[head].first);
      AxisTraffic traffic{.axis = Axis::tatp,
                          .row_bytes = source.gradient,
                          .times = source.layers(stages.first) * (plan_.shards_gradients() ? source.microbatches : 1),
                          .spans = list_.at({{Axis::pp, stages}, {Axis::tp, tp}})};
      for (const auto& shared : source.layout.replicated_kv(tp, first)) {
        if (shared.kv_head == static_cast<int>(head)) traffic.rows = shared.region.rows;
      }
      traffic.spans[static_cast<std::size_t>(Axis::tatp)] = {first, static_cast<int>(sharers[head].count)};
      list_.add(std::move(traffic));
    }
  }

  void add_tied_gradients() {
    if (!source_.ties_across_stages()) return;
    for (int tatp = 0; tatp < plan_.tatp; ++tatp) {
      for (int tp = 0; tp < plan_.tp; ++tp) {
        const std::uint64_t tied = source_.layout.table(false, tp, tatp).rows;
        for (int replica = 0; replica < plan_.dp; ++replica) {
          const AxisSpan dp(Axis::dp, replica / plan_.ep), ep(Axis::ep, replica % plan_.ep);
          list_.add({.axis = Axis::pp,
                     .pattern = TrafficPattern::between_ends,
                     .rows = plan_.zero == 0 ? tied : share(tied, plan_.dp, replica),
                     .row_bytes = source_.gradient,
                     .spans = list_.at({{Axis::tp, tp}, {Axis::tatp, tatp}, dp, ep})});
        }
      }
    }
  }

  void add_gradient_norm() {
    if (!source_.training.clip_grad || source_.training.optimizer == Optimizer::none) return;
    for (const Axis axis : {Axis::tp, Axis::tatp, Axis::sp, Axis::pp, plan_.zero > 0 ? Axis::dp : Axis::ep}) {
      list_.add({.axis = axis,
                 .rows = 1,
                 .row_bytes = kFp32Bytes,
                 .spans = list_.at({}),
                 .replicas = axis == Axis::dp});
    }
  }

  TrafficSource source_;
  const PlanSpec& plan_;
  const PlanCuts* cuts_;
  std::deque<TrafficSource> operators_;  ///< attention and MLP, with `cuts_`
  TrafficList list_;
};

}  // namespace

std::vector<AxisTraffic> plan_traffic(const models::TransformerSpec& model, const TrainingSpec& training, const PlanSpec& plan,
                                      const PlanCuts* cuts) {
  const bool split = plan.splits_operators();
  require_invariant(!split || cuts != nullptr, "the traffic of operators with degrees of their own is that of a mapping");
  return PlanTraffic(model, training, plan, split ? cuts : nullptr).run();
}

}  // namespace wafersim::workloads
