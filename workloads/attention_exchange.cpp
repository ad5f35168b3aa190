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

Bytes bytes_of(const StepEmitter& step, ExchangedColumns columns, const Views& views) {
  std::uint64_t elements = 0;
  for (const View& view : views) elements += view.region.area();
  return elements * (columns == ExchangedColumns::scalars ? kScalarBytes : step.shard().element);
}

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

/// Every member sends every other one a message; under dimension-order routing they cross the group's rows, then its
/// columns. The buffer of the result is allocated first, that of the input freed when all is sent.
Deps emit_exchange(StepEmitter& step, Exchange direction, ExchangedColumns columns, const std::string& tensor,
                   const Deps& after) {
  const Group& group = exchange_group(step);
  if (group.size == 1) return after;
  StepBuilder& builder = step.builder();
  const std::uint32_t first_channel = builder.new_channels(static_cast<std::uint32_t>(group.size));
  const Member own = member_of(step, group.rank, group.size);
  const bool to_heads = direction == Exchange::to_heads;
  const auto cut = [&](const Member& tokens, const Member& heads) {
    return columns_of(step, tensor, tokens.tokens, heads, columns);
  };
  Views sent, received;
  for (int rank = 0; rank < group.size; ++rank) {
    if (rank == group.rank) continue;
    const Member other = member_of(step, rank, group.size);
    sent = sent + (to_heads ? cut(own, other) : cut(other, own));
    received = received + (to_heads ? cut(other, own) : cut(own, other));
  }
  const Deps ready = step.hold(bytes_of(step, columns, received), after);
  Deps result = after, departed;
  for (int distance = 1; distance < group.size; ++distance) {
    const int to = (group.rank + distance) % group.size, from = (group.rank + group.size - distance) % group.size;
    const Member receiver = member_of(step, to, group.size), sender = member_of(step, from, group.size);
    const Views out = to_heads ? cut(own, receiver) : cut(receiver, own);
    const Views in = to_heads ? cut(sender, own) : cut(own, sender);
    const auto channel = [&](int member) { return first_channel + static_cast<std::uint32_t>(member); };
    departed.push_back(builder.send(group.axis, group.peer(to), channel(group.rank), bytes_of(step, columns, out), after,
                                    step.operand({.kernel = Kernel::transfer, .writes = out})));
    result.push_back(builder.receive(group.axis, group.peer(from), channel(from), bytes_of(step, columns, in), ready,
                                     step.operand({.kernel = Kernel::transfer, .writes = in})));
  }
  step.release(bytes_of(step, columns, sent), departed, sent);
  return result;
}

}  // namespace wafersim::workloads
