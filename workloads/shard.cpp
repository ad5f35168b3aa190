#include "workloads/shard.h"

#include <algorithm>

namespace wafersim::workloads {

namespace {

std::uint64_t count(std::int64_t value) { return static_cast<std::uint64_t>(value); }

/// The part of some heads that a member gets: whole kv heads and their query heads, or where these are too few query
/// heads and the kv heads that they attend to.
void cut_heads(Shard& shard, std::uint64_t group, bool whole_kv_heads, int parts, int member) {
  if (whole_kv_heads) {
    const Range kv = share_range(shard.kv_heads.count, parts, member);
    shard.kv_heads = {shard.kv_heads.first + kv.first, kv.count};
    shard.heads = {shard.kv_heads.first * group, shard.kv_heads.count * group};
    return;
  }
  const Range heads = share_range(shard.heads.count, parts, member);
  shard.heads = {shard.heads.first + heads.first, heads.count};
  shard.kv_heads.first = shard.heads.first / group;
  shard.kv_heads.count = ceil_div(shard.heads.end(), group) - shard.kv_heads.first;
}

/// Over tp, then over tatp where inputs travel.
void cut_heads(Shard& shard, const models::TransformerSpec& model, const PlanSpec& plan, const InnerRank& rank) {
  const std::uint64_t group = count(model.heads / model.kv_heads);
  shard.heads = {0, count(model.heads)};
  shard.kv_heads = {0, count(model.kv_heads)};
  cut_heads(shard, group, plan.tp <= model.kv_heads, plan.tp, rank.tp);
  if (!shard.streams_inputs[0]) return;
  cut_heads(shard, group, !replicates_kv_heads(model, plan, true), plan.tatp, rank.tatp);
}

/// All tokens of a line as one set.
TokenSet united(const std::vector<TokenSet>& line) {
  std::vector<Range> all;
  for (const TokenSet& each : line) all.insert(all.end(), each.ranges.begin(), each.ranges.end());
  std::sort(all.begin(), all.end(), [](const Range& a, const Range& b) { return a.first < b.first; });
  TokenSet result{{}, line.front().ordinal};
  for (const Range& each : all) {
    if (!result.ranges.empty() && result.ranges.back().end() == each.first) {
      result.ranges.back().count += each.count;
    } else {
      result.ranges.push_back(each);
    }
  }
  return result;
}

/// The part of some positions that a member gets: a run, or two with `zigzag`.
std::vector<Range> cut_positions(const std::vector<Range>& positions, int parts, int member, bool zigzag) {
  const TokenSet all{positions, 0};
  if (!zigzag) return all.part(parts, member).ranges;
  std::vector<Range> result = all.part(2 * parts, member).ranges;
  for (const Range& each : all.part(2 * parts, 2 * parts - 1 - member).ranges) {
    if (!result.empty() && result.back().end() == each.first) {
      result.back().count += each.count;
    } else {
      result.push_back(each);
    }
  }
  return result;
}

/// How many of so many positions the members before `member` get.
std::uint64_t positions_before(std::uint64_t positions, int parts, int member, bool zigzag) {
  if (!zigzag) return share_first(positions, parts, member);
  return share_first(positions, 2 * parts, member) + positions - share_first(positions, 2 * parts, 2 * parts - member);
}

}  // namespace

TokenSet work_tokens(const models::TransformerSpec& model, const TrainingSpec& training, const PlanSpec& plan, int sp,
                     int tatp) {
  const std::uint64_t sequences = count(training.microbatch), all = count(model.sequence);
  const bool causal = model.attention == models::AttentionMask::causal;
  const bool ring = causal && plan.sp == SequenceParallel::ring && plan.sp_degree > 1;
  const bool streams = causal && line_attention(model, training, plan) == StreamAttention::stream_kv;
  const TokenSet line{cut_positions({{0, all}}, plan.sp_degree, sp, ring), 0};
  TokenSet result;
  result.ordinal = sequences * (positions_before(all, plan.sp_degree, sp, ring) +
                                positions_before(line.count(), plan.tatp, tatp, streams));
  for (const Range& each : cut_positions(line.ranges, plan.tatp, tatp, streams)) {
    result.ranges.push_back({each.first * sequences, each.count * sequences});
  }
  return result;
}

std::uint64_t share(std::uint64_t total, int parts, int member) {
  const auto n = static_cast<std::uint64_t>(parts);
  return total / n + (static_cast<std::uint64_t>(member) < total % n ? 1 : 0);
}

std::uint64_t share_first(std::uint64_t total, int parts, int member) {
  const auto n = static_cast<std::uint64_t>(parts);
  const auto before = static_cast<std::uint64_t>(member);
  return before * (total / n) + std::min(before, total % n);
}

std::uint64_t TokenSet::count() const {
  std::uint64_t total = 0;
  for (const Range& range : ranges) total += range.count;
  return total;
}

TokenSet TokenSet::part(int parts, int member) const {
  const Range wanted = share_range(count(), parts, member);
  TokenSet result;
  result.ordinal = ordinal + wanted.first;
  std::uint64_t begin = 0;
  for (const Range& range : ranges) {
    const std::uint64_t from = std::max(begin, wanted.first);
    const std::uint64_t to = std::min(begin + range.count, wanted.end());
    if (from < to) result.ranges.push_back({range.first + from - begin, to - from});
    begin += range.count;
  }
  return result;
}

Bytes Shard::saved_scores_bytes(std::uint64_t queries, std::uint64_t head_count, std::uint64_t key_count) const {
  if (fused_attention) return 0;
  return queries * head_count * key_count * (dropout ? 2 * element + 1 : element);
}

Bytes Shard::statistics_bytes(std::uint64_t queries, std::uint64_t head_count) const {
  return fused_attention ? queries * head_count * 4 : 0;
}

TokenSet attention_tokens(const models::TransformerSpec& model, const TrainingSpec& training, const PlanSpec& plan,
                          int sp, int tatp) {
  if (!streams_inputs(model, training, plan, 0)) return work_tokens(model, training, plan, sp, tatp);
  std::vector<TokenSet> line;
  for (int rank = 0; rank < plan.tatp; ++rank) line.push_back(work_tokens(model, training, plan, sp, rank));
  return united(line);
}

Shard make_shard(const models::TransformerSpec& model, const TrainingSpec& training, const PlanSpec& plan,
                 const InnerRank& rank) {
  Shard shard;
  shard.rank = rank;
  shard.tp = plan.tp;
  shard.sequence_parallel = plan.sp == SequenceParallel::megatron;
  shard.fused_attention = model.attention_kernel == models::AttentionKernel::fused;
  shard.dropout = !shard.fused_attention;
  shard.sequences = count(training.microbatch);
  shard.sequence = count(model.sequence);
  shard.all_tokens = shard.sequences * shard.sequence;
  shard.tatp = plan.tatp;
  shard.sp = plan.sp_degree;
  shard.work = work_tokens(model, training, plan, rank.sp, rank.tatp);
  for (int tatp = 0; tatp < plan.tatp; ++tatp) shard.line.push_back(work_tokens(model, training, plan, rank.sp, tatp));
  shard.local = shard.sequence_parallel ? shard.work.part(plan.tp, rank.tp) : shard.work;
  shard.streams_inputs = streamed_inputs(model, training, plan);
  for (std::size_t pair = 0; pair < kPairs; ++pair) {
    shard.inner[pair] = shard.streams_inputs[pair] ? united(shard.line) : shard.work;
  }
  shard.tokens = shard.work.count();
  shard.local_tokens = shard.local.count();
  shard.hidden = count(model.hidden);
  shard.head_dim = count(model.head_dim);
  cut_heads(shard, model, plan, rank);
  shard.q_width = shard.heads.count * shard.head_dim;
  shard.kv_width = shard.kv_heads.count * shard.head_dim;
  shard.ffn = share_range(count(model.ffn), plan.tp, rank.tp);
  if (shard.streams_inputs[1]) {
    const Range part = share_range(shard.ffn.count, plan.tatp, rank.tatp);
    shard.ffn = {shard.ffn.first + part.first, part.count};
  }
  shard.up_width = shard.ffn.count * (model.mlp == models::Mlp::swiglu ? 2 : 1);
  shard.ep = plan.ep;
  if (model.routes()) {
    shard.experts = share_range(count(model.experts), plan.ep, rank.ep);
    shard.expert_slots = models::expert_capacity(model, shard.tokens);
  }
  const std::uint64_t vocab = ceil_div(count(model.vocab), count(plan.tp));
  shard.vocab = {vocab * static_cast<std::uint64_t>(rank.tp), vocab};
  shard.element = element_bytes(training.precision);
  shard.gradient = gradient_bytes(training);
  return shard;
}

Bytes optimizer_bytes_per_parameter(Optimizer optimizer, Precision precision) {
  constexpr Bytes kFp32 = 4;
  const Bytes master = precision == Precision::fp32 ? 0 : kFp32;
  switch (optimizer) {
    case Optimizer::none:
      return 0;
    case Optimizer::sgd:
      return master;
    case Optimizer::adam:
      return master + 2 * kFp32;
    case Optimizer::adamw_8bit:
      return master + 2;
  }
  return 0;
}

}  // namespace wafersim::workloads
