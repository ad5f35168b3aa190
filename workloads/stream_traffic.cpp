#include <numeric>
#include <optional>

#include "workloads/schedule.h"
#include "workloads/traffic_source.h"

namespace wafersim::workloads {
namespace {

std::uint64_t sum(const std::vector<std::uint64_t>& parts) {
  return std::accumulate(parts.begin(), parts.end(), std::uint64_t{0});
}

/// Blocks that travel out `times` times, and sums of their gradients, which come home `home` times, for each pass.
struct Stream {
  Axis axis = Axis::none;
  std::vector<std::uint64_t> blocks;  ///< elements by member
  std::uint64_t times = 1;
  std::uint64_t passes = 0;
  RankSpans spans{};
  std::uint64_t home = 1;
};

void add_stream(const TrafficSource& source, TrafficList& list, const Stream& stream) {
  const bool line = stream.axis == Axis::tatp;
  AxisTraffic traffic{.axis = stream.axis,
                      .pattern = line ? TrafficPattern::stream_outward : TrafficPattern::ring_outward,
                      .rows = sum(stream.blocks),
                      .row_bytes = source.element,
                      .parts = stream.blocks,
                      .times = stream.times * stream.passes,
                      .spans = stream.spans};
  list.add(traffic);
  traffic.pattern = line ? TrafficPattern::stream_inward : TrafficPattern::ring_inward;
  traffic.row_bytes = kPartialBytes;
  traffic.times = stream.home * stream.passes;
  list.add(std::move(traffic));
}

/// Parameters of a layer's weights that travel, by tatp rank: norms, output biases and the router never do.
std::vector<std::uint64_t> layer_blocks(const TrafficSource& source, int tp) {
  const ParameterLayout& layout = source.layout;
  std::vector<std::uint64_t> blocks;
  for (int tatp = 0; tatp < source.plan.tatp; ++tatp) {
    std::uint64_t& block = blocks.emplace_back(parameters_in(layout.experts(tp, tatp, source.shard(tp, 0).experts)));
    const std::size_t weights = source.model.routes() ? static_cast<std::size_t>(Weight::mlp_up) : kWeights;
    for (int slice = tatp * layout.chunks(); slice < (tatp + 1) * layout.chunks(); ++slice) {
      for (std::size_t weight = 0; weight < weights; ++weight) {
        const auto which = static_cast<Weight>(weight);
        if (!source.has_pair(pair_of(which)) || layout.streams_inputs(which)) continue;
        block += parameters_in(layout.weight(which, tp, slice).regions);
      }
    }
  }
  return blocks;
}

std::vector<std::uint64_t> table_blocks(const TrafficSource& source, int tp) {
  std::vector<std::uint64_t> blocks;
  for (int tatp = 0; tatp < source.plan.tatp; ++tatp) {
    blocks.push_back(source.layout.vocabulary(tp, tatp).count * source.hidden);
  }
  return blocks;
}

/// The residual stream of the tokens of a line's ranks.
std::vector<std::uint64_t> token_blocks(const TrafficSource& source, int sp) {
  std::vector<std::uint64_t> blocks;
  for (int tatp = 0; tatp < source.plan.tatp; ++tatp) blocks.push_back(source.tokens(sp, tatp) * source.hidden);
  return blocks;
}

/// Outward the input of each pair in each forward pass and for its weight gradient, the output's gradient once or, where
/// weight gradients have a pass of their own, twice; inward the output in each forward pass and the input's gradient.
void add_input_streams(const TrafficSource& source, TrafficList& list, RankSpan stages) {
  std::uint64_t pairs = 0;
  for (int pair = 0; pair < kPairs; ++pair) {
    pairs += source.has_pair(pair) && source.streams_inputs[static_cast<std::size_t>(pair)] ? 1U : 0U;
  }
  const std::uint64_t outward = source.forwards + (splits_backward(source.plan.schedule) ? 3 : 2);
  for (int sp = 0; pairs > 0 && sp < source.plan.sp_degree; ++sp) {
    add_stream(source, list,
               {Axis::tatp, token_blocks(source, sp), pairs * outward, source.layer_passes(stages.first),
                list.at({{Axis::pp, stages}, {Axis::sp, sp}}), pairs * (source.forwards + 1)});
  }
}

/// The traffic of one stage's attention.
class AttentionTraffic {
 public:
  AttentionTraffic(const TrafficSource& source, TrafficList& list, RankSpan stages)
      : source_(source),
        plan_(source.plan),
        list_(list),
        stages_(stages),
        passes_(source.layer_passes(stages.first)),
        line_(line_attention(source.model, source.training, source.plan)) {
    if (plan_.sp == SequenceParallel::ulysses && plan_.sp_degree > 1) {
      exchanging_ = Axis::sp;
    } else if (line_ == StreamAttention::heads) {
      exchanging_ = Axis::tatp;
    }
  }

  void add() {
    for (int tp = 0; tp < plan_.tp; ++tp) {
      for (int sp = 0; over_tatp() && sp < plan_.sp_degree; ++sp) add_line(tp, sp);
      for (int tatp = 0; over_sp() && tatp < plan_.tatp; ++tatp) add_ring(tp, tatp);
      const Axis other = exchanging_ == Axis::sp ? Axis::tatp : Axis::sp;
      for (int rank = 0; exchanging_ != Axis::none && rank < plan_.degree(other); ++rank) {
        add_exchange(tp, other, rank);
      }
    }
  }

 private:
  bool over_tatp() const { return line_ == StreamAttention::stream_kv; }
  bool over_sp() const { return plan_.sp_degree > 1 && plan_.sp == SequenceParallel::ring; }

  /// Key and value heads on which a rank of the exchanging axis works.
  std::uint64_t kv_heads(const Shard& shard, int rank) const {
    const std::uint64_t all = shard.kv_heads.count;
    return exchanging_ == Axis::none ? all : share(all, plan_.degree(exchanging_), rank);
  }
  std::uint64_t key_value_width(const Shard& shard, Axis of, int rank) const {
    return 2 * (of == exchanging_ ? kv_heads(shard, rank) : shard.kv_heads.count) * shard.head_dim;
  }
  /// Whose queries, keys and values a rank has.
  std::uint64_t tokens(int sp, int tatp) const {
    return source_.streams_inputs[0] ? tokens_over_tatp(sp) : source_.tokens(sp, tatp);
  }

  std::uint64_t tokens_over_sp(int tatp) const {
    std::uint64_t all = 0;
    for (int sp = 0; sp < plan_.sp_degree; ++sp) all += source_.tokens(sp, tatp);
    return all;
  }
  std::uint64_t tokens_over_tatp(int sp) const {
    std::uint64_t all = 0;
    for (int tatp = 0; tatp < plan_.tatp; ++tatp) all += source_.tokens(sp, tatp);
    return all;
  }

  /// Keys and values of the line's ranks, and those of all ranks of the ring that come by. After an exchange
  /// of heads over sp each has the tokens of that whole group, too.
  void add_line(int tp, int sp) {
    std::vector<std::uint64_t> blocks;
    for (int tatp = 0; tatp < plan_.tatp; ++tatp) {
      blocks.push_back(tokens_over_sp(tatp) * key_value_width(source_.shard(tp, tatp), Axis::sp, sp));
    }
    add_stream(source_, list_,
               {Axis::tatp, std::move(blocks), source_.forwards + 1, passes_,
                list_.at({{Axis::pp, stages_}, {Axis::tp, tp}, {Axis::sp, sp}})});
  }

  void add_ring(int tp, int tatp) {
    std::vector<std::uint64_t> blocks;
    for (int sp = 0; sp < plan_.sp_degree; ++sp) {
      const std::uint64_t there = exchanging_ == Axis::tatp ? tokens_over_tatp(sp) : tokens(sp, tatp);
      blocks.push_back(there * key_value_width(source_.shard(tp, tatp), Axis::tatp, tatp));
    }
    add_stream(source_, list_,
               {Axis::sp, std::move(blocks), source_.forwards + 1, passes_,
                list_.at({{Axis::pp, stages_}, {Axis::tp, tp}, {Axis::tatp, tatp}})});
  }

  /// To heads: q, k and v in each forward pass, the output's gradient, and the row sums where keys and values
  /// stream. To tokens: the output in each forward pass, the gradients of q, k and v.
  void add_exchange(int tp, Axis other, int rank) {
    const Shard& shard = source_.shard(tp, other == Axis::tatp ? rank : 0);
    const bool streams = over_tatp() || over_sp();
    std::vector<std::uint64_t> rows, there, back;
    for (int member = 0; member < plan_.degree(exchanging_); ++member) {
      rows.push_back(exchanging_ == Axis::sp ? tokens(member, rank) : tokens(rank, member));
      const std::uint64_t kv = kv_heads(shard, member);
      const std::uint64_t heads = kv * (shard.heads.count / shard.kv_heads.count);
      const Bytes query = heads * shard.head_dim * source_.element;
      const Bytes qkv = query + 2 * kv * shard.head_dim * source_.element;
      there.push_back(source_.forwards * qkv + query + (streams ? heads * kPartialBytes : 0));
      back.push_back(source_.forwards * query + qkv);
    }
    AxisTraffic traffic{.axis = exchanging_,
                        .pattern = TrafficPattern::exchange,
                        .rows = sum(rows),
                        .parts = rows,
                        .factors = std::move(there),
                        .times = passes_,
                        .spans = list_.at({{Axis::pp, stages_}, {Axis::tp, tp}, {other, rank}})};
    list_.add(traffic);
    traffic.rows = sum(back);
    traffic.parts = std::move(back);
    traffic.factors = std::move(rows);
    list_.add(std::move(traffic));
  }

  const TrafficSource& source_;
  const PlanSpec& plan_;
  TrafficList& list_;
  RankSpan stages_;
  std::uint64_t passes_;
  std::optional<StreamAttention> line_;
  Axis exchanging_ = Axis::none;
};

}  // namespace

void add_product_streams(const TrafficSource& source, TrafficList& list, RankSpan stages) {
  if (source.plan.tatp == 1) return;
  add_input_streams(source, list, stages);
  for (int tp = 0; tp < source.plan.tp; ++tp) {
    // The backward pass needs each weight once more, for the gradient of its input.
    const RankSpans spans = list.at({{Axis::pp, stages}, {Axis::tp, tp}});
    add_stream(
        source, list,
        {Axis::tatp, layer_blocks(source, tp), source.forwards + 1, source.layer_passes(stages.first), spans});
  }
}

void add_head_stream(const TrafficSource& source, TrafficList& list, RankSpan stages) {
  if (source.plan.tatp == 1 || !source.has_head(stages.first)) return;
  for (int tp = 0; tp < source.plan.tp; ++tp) {
    const RankSpans spans = list.at({{Axis::pp, stages}, {Axis::tp, tp}});
    add_stream(source, list, {Axis::tatp, table_blocks(source, tp), 2, source.microbatches, spans});
  }
}

void add_attention_traffic(const TrafficSource& source, TrafficList& list, RankSpan stages) {
  AttentionTraffic(source, list, stages).add();
}

}  // namespace wafersim::workloads
