#include "workloads/all_to_all.h"
#include "workloads/attention.h"

namespace wafersim::workloads {

namespace {

/// A member of the exchanging group.
struct Member {
  TokenSet tokens;
  Range heads;     ///< that are its own after the exchange
  Range kv_heads;
};

bool by_sp(const StepEmitter& step) { return step.plan().sp == SequenceParallel::ulysses && step.shard().sp > 1; }

bool by_tatp(const StepEmitter& step) {
  return line_attention(step.model(), step.training(), step.plan()) == StreamAttention::heads;
}

Member member_of(const StepEmitter& step, int rank, int size) {
  const Shard& s = step.shard();
  Member member;
  const LoweringInput& input = step.context().input;
  member.tokens = by_sp(step) ? attention_tokens(input.model, input.training, input.plan, rank, s.rank.tatp)
                              : attention_tokens(input.model, input.training, input.plan, s.rank.sp, rank);
  const std::uint64_t group = s.heads.count / s.kv_heads.count;
  const Range kv = share_range(s.kv_heads.count, size, rank);
  member.kv_heads = {s.kv_heads.first + kv.first, kv.count};
  member.heads = {s.heads.first + kv.first * group, kv.count * group};
  return member;
}

Views columns_of(StepEmitter& step, const std::string& tensor, const TokenSet& tokens, const Member& heads,
                 ExchangedColumns columns) {
  const std::uint64_t d = step.shard().head_dim;
  const auto q = static_cast<std::uint64_t>(step.model().q_width());
  const auto kv = static_cast<std::uint64_t>(step.model().kv_width());
  if (columns == ExchangedColumns::scalars) return step.view(tensor, tokens, heads.heads);
  Views views = step.view(tensor, tokens, {heads.heads.first * d, heads.heads.count * d});
  if (columns == ExchangedColumns::query) return views;
  const Range keys{heads.kv_heads.first * d, heads.kv_heads.count * d};
  return views + step.view(tensor, tokens, {q + keys.first, keys.count}) +
         step.view(tensor, tokens, {q + kv + keys.first, keys.count});
}

constexpr Bytes kScalarBytes = 4;

}  // namespace

const Group& exchange_group(const StepEmitter& step) {
  static const Group kAlone;
  if (by_sp(step)) return step.context().sp;
  return by_tatp(step) ? step.context().tatp : kAlone;
}

AttentionScope::AttentionScope(StepEmitter& emitter)
    : step(emitter),
      tokens(emitter.shard().inner[0]),
      ordinals{{emitter.shard().inner[0].ordinal, emitter.shard().inner_tokens(0)}},
      heads(emitter.shard().heads),
      kv_heads(emitter.shard().kv_heads) {
  const Group& group = exchange_group(step);
  if (group.size == 1) return;
  ordinals.clear();
  const Member own = member_of(step, group.rank, group.size);
  heads = own.heads;
  kv_heads = own.kv_heads;
  tokens = {};
  for (int rank = 0; rank < group.size; ++rank) {
    const TokenSet more = member_of(step, rank, group.size).tokens;
    ordinals.push_back({more.ordinal, more.count()});
    tokens.ranges.insert(tokens.ranges.end(), more.ranges.begin(), more.ranges.end());
  }
}

Deps emit_exchange(StepEmitter& step, Exchange direction, ExchangedColumns columns, const std::string& tensor,
                   const Deps& after) {
  const Group& group = exchange_group(step);
  const auto own_to = [&](int rank, bool to_heads) {
    const Member own = member_of(step, group.rank, group.size), other = member_of(step, rank, group.size);
    return to_heads ? columns_of(step, tensor, own.tokens, other, columns)
                    : columns_of(step, tensor, other.tokens, own, columns);
  };
  const bool to_heads = direction == Exchange::to_heads;
  return emit_all_to_all(step, group,
                         {.sent = [&](int rank) { return own_to(rank, to_heads); },
                          .received = [&](int rank) { return own_to(rank, !to_heads); },
                          .cell_bytes = columns == ExchangedColumns::scalars ? kScalarBytes : step.shard().element},
                         after);
}

}  // namespace wafersim::workloads
