#include "workloads/attention.h"
#include "workloads/stream.h"

namespace wafersim::workloads {

using tensors::kAttention;
using tensors::kAttentionGradient;
using tensors::kQkv;
using tensors::kQkvGradient;

namespace {

/// Another block's part is added to the output after both are scaled to a common maximum.
constexpr std::uint64_t kRescaleFlops = 3;

bool over_tatp(const StepEmitter& step) {
  return line_attention(step.model(), step.training(), step.plan()) == StreamAttention::stream_kv;
}
bool over_sp(const StepEmitter& step) { return step.shard().sp > 1 && step.plan().sp == SequenceParallel::ring; }

/// Where keys and values come from: the rank along sp, and along tatp.
struct Source {
  int sp = 0;
  int tatp = 0;
};

/// One streamed attention. Blocks of keys and values are named by their source; where only one of the two axes
/// streams, the other rank is the member's own.
class StreamedAttention {
 public:
  StreamedAttention(StepEmitter& step, const AttentionScope& scope) : step_(step), scope_(scope) {}

  Deps forward(const Deps& qkv, const Retention& keep) {
    const Deps ready = step_.hold(scope_.bytes(scope_.q_width()) + scope_.statistics_bytes(), qkv);
    if (!over_sp(step_)) return forward_line(own().sp, ready, ready, keep).released;
    const StreamLine ring = step_.sp_ring();
    return stream_outward(step_, ring, ring_blocks(), ready,
                          [&](int sp, int, const Deps& there) { return forward_line(sp, there, ready, keep); })
        .released;
  }

  Deps backward(const Deps& d_output) {
    const Deps ready = step_.hold(scope_.bytes(scope_.qkv_width()), d_output);
    Deps done = over_sp(step_) ? backward_ring(ready) : backward_line(own().sp, ready, ready);
    done = join(std::move(done), collected_sends_);
    step_.release(scope_.statistics_bytes(), done);
    step_.release(scope_.tokens.count() * scope_.heads.count * 4, done, scope_.scores(tensors::kDelta));
    return done;
  }

 private:
  Source own() const { return {step_.shard().rank.sp, step_.shard().rank.tatp}; }

  /// The ranks whose keys and values a source has: after an exchange of heads all of the exchanging group.
  std::vector<Source> members(const Source& source) const {
    const Group& exchange = exchange_group(step_);
    if (exchange.size == 1) return {source};
    std::vector<Source> all;
    for (int rank = 0; rank < exchange.size; ++rank) {
      all.push_back(exchange.axis == Axis::sp ? Source{rank, source.tatp} : Source{source.sp, rank});
    }
    return all;
  }
  TokenSet tokens_of(const Source& rank) const {
    const LoweringInput& input = step_.context().input;
    return attention_tokens(input.model, input.training, input.plan, rank.sp, rank.tatp);
  }
  TokenSet tokens(const Source& source) const {
    TokenSet all;
    for (const Source& rank : members(source)) {
      const TokenSet more = tokens_of(rank);
      all.ranges.insert(all.ranges.end(), more.ranges.begin(), more.ranges.end());
    }
    return all;
  }

  Views key_value(const char* tensor, const Source& source) const {
    const TokenSet of = tokens(source);
    return scope_.key(tensor, of) + scope_.value(tensor, of);
  }
  std::uint64_t elements(const Source& source) const { return tokens(source).count() * 2 * scope_.kv_width(); }

  StreamBlocks blocks(const std::function<Source(int)>& source, const char* tensor, Bytes element) const {
    return {.chunks = 1,
            .views = [=, this](int owner, int) { return key_value(tensor, source(owner)); },
            .bytes = [=, this](int owner, int) { return elements(source(owner)) * element; },
            .elements = [=, this](int owner, int) { return elements(source(owner)); }};
  }
  StreamBlocks ring_blocks() const {
    return blocks([this](int sp) { return Source{sp, own().tatp}; }, kQkv, step_.shard().element);
  }
  StreamBlocks line_blocks(int sp) const {
    return blocks([sp](int tatp) { return Source{sp, tatp}; }, kQkv, step_.shard().element);
  }
  StreamBlocks gradient_blocks(int sp) const {
    return blocks([sp](int tatp) { return Source{sp, tatp}; }, kQkvGradient, kPartialBytes);
  }

  /// Views of a sum to which a block of keys adds, and of a block's sum to which the queries add.
  Views by_keys(const Views& views, const Source& source) const {
    Views result;
    for (const Source& rank : members(source)) {
      const TokenSet of = tokens_of(rank);
      result = result + with_terms(views, {of.ordinal, of.count(), step_.shard().all_tokens});
    }
    return result;
  }
  Views by_queries(const Views& views) const {
    Views result;
    for (const Range& run : scope_.ordinals) {
      result = result + with_terms(views, {run.first, run.count, step_.shard().all_tokens});
    }
    return result;
  }

  /// Uses the blocks of one sp rank: `there` is when the member's own of them is there.
  BlockUse forward_line(int sp, const Deps& there, const Deps& ready, const Retention& keep) {
    if (!over_tatp(step_)) {
      const Deps done = attend({sp, own().tatp}, join(there, ready), keep);
      return {done, done};
    }
    return stream_outward(step_, step_.tatp_line(), line_blocks(sp), there,
                          [&, sp](int tatp, int, const Deps& arrived) -> BlockUse {
                            const Deps done = attend({sp, tatp}, join(arrived, ready), keep);
                            return {done, done};
                          });
  }

  Deps attend(const Source& source, const Deps& ready, const Retention& keep) {
    const Shard& s = step_.shard();
    const TokenSet of = tokens(source);
    const std::uint64_t batch = s.sequences * scope_.heads.count, positions = scope_.positions();
    const std::uint64_t keys = keys_per_query(step_, scope_.tokens, of);
    const Bytes q = scope_.bytes(scope_.q_width()), k = of.count() * scope_.kv_width() * s.element;
    const Deps scores = step_.gemm({batch, positions, keys, s.head_dim}, kept(q, keep.layer) + Traffic{.scratch = k},
                                   ready, {});
    const std::uint64_t outputs = scope_.tokens.count() * scope_.q_width();
    const Deps softmax =
        step_.vector(vector_flops::kSoftmax * batch * positions * keys + kRescaleFlops * outputs,
                     kept(2 * scope_.statistics_bytes() + 2 * q, keep.layer), scores, {});
    return step_.gemm({batch, positions, s.head_dim, keys}, kept(q, keep.layer) + Traffic{.scratch = k}, softmax,
                      {.kernel = Kernel::attend,
                       .adds = true,
                       .reads = scope_.query(kQkv) + key_value(kQkv, source),
                       .writes = by_keys(scope_.query(kAttention), source)});
  }

  /// The scores once more, then the gradients of the queries and of one block.
  Deps attend_backward(const Source& source, const Deps& ready) {
    const Shard& s = step_.shard();
    const TokenSet of = tokens(source);
    const std::uint64_t batch = s.sequences * scope_.heads.count, positions = scope_.positions();
    const std::uint64_t keys = keys_per_query(step_, scope_.tokens, of);
    const Bytes q = scope_.bytes(scope_.q_width()), k = of.count() * scope_.kv_width() * s.element;
    const std::uint64_t scores = batch * positions * keys;
    const models::GemmShape to_scores{batch, positions, keys, s.head_dim};
    const models::GemmShape to_keys{batch, keys, s.head_dim, positions};
    const Traffic saved{.scratch = k, .saved = q};
    const Deps again = step_.gemm(to_scores, saved, ready, {});
    const Deps softmax = step_.vector(vector_flops::kSoftmaxFromStatistics * scores,
                                      {.saved = scope_.statistics_bytes()}, again, {});
    const Deps d_value = step_.gemm(to_keys, {.scratch = q + k}, softmax, {});
    const Deps d_softmax = step_.gemm(to_scores, {.scratch = q + k}, softmax, {});
    const Deps d_scores = step_.vector(vector_flops::kSoftmaxBackward * scores, {.saved = q}, d_softmax, {});
    const Deps d_query =
        step_.gemm({batch, positions, s.head_dim, keys}, {.scratch = k + 2 * q}, join(d_scores, d_value), {});
    return step_.gemm(
        to_keys, saved + Traffic{.scratch = 2 * k}, d_query,
        {.kernel = Kernel::attend_backward,
         .adds = true,
         .reads = scope_.query(kQkv) + key_value(kQkv, source) + scope_.query(kAttentionGradient) +
                  scope_.scores(tensors::kDelta),
         .writes = by_keys(scope_.query(kQkvGradient), source) +
                   by_queries(key_value(kQkvGradient, source))});
  }

  /// Sums the gradients of one sp rank's block with the same tatp rank over the line. All blocks of the line are
  /// collected first and used in reverse order, so that the sums can flow inward meanwhile.
  Deps backward_line(int sp, const Deps& there, const Deps& ready) {
    if (!over_tatp(step_)) return attend_backward({sp, own().tatp}, join(there, ready));
    const StreamLine line = step_.tatp_line();
    const StreamBlocks keys = line_blocks(sp), gradients = gradient_blocks(sp);
    const CollectedBlocks collected = stream_collect(step_, line, keys, there);
    Deps all;
    const Deps sum = stream_inward(step_, line, gradients, ready, [&, sp](int tatp, int, const Deps& held) -> BlockUse {
      const Deps done = attend_backward({sp, tatp}, join(join(held, ready), collected.there.at(tatp)));
      collected.release(step_, keys, tatp, done);
      all = join(std::move(all), done);
      return {done, done};
    });
    collected_sends_ = join(std::move(collected_sends_), collected.own_sent());
    return join(std::move(all), sum);
  }

  /// Round by round: the block of the next rank comes, the gradients of the one at hand are made and travel on with
  /// what the ranks before have added; they come home after the last.
  Deps backward_ring(const Deps& ready);

  StepEmitter& step_;
  const AttentionScope& scope_;
  Deps collected_sends_;
};

Deps StreamedAttention::backward_ring(const Deps& ready) {
  const StreamLine ring = step_.sp_ring();
  StepBuilder& builder = step_.builder();
  const int size = ring.size();
  const auto rank_at = [&](int place) { return ring.members[static_cast<std::size_t>((place + 2 * size) % size)]; };
  const std::uint32_t next = ring.group.peer(rank_at(ring.place + 1)), previous = ring.group.peer(rank_at(ring.place - 1));
  const auto block = [&](int round) { return Source{rank_at(ring.place - round), own().tatp}; };
  const std::uint32_t first_channel = builder.new_channels(static_cast<std::uint32_t>(2 * size));
  const auto channel = [&](const Source& source, bool gradient) {
    return first_channel + static_cast<std::uint32_t>(2 * source.sp + (gradient ? 1 : 0));
  };
  const auto operand = [&](Kernel kernel, const Source& source) {
    const bool gradient = kernel != Kernel::transfer;
    Operand result = step_.operand({.kernel = kernel,
                                    .adds = kernel == Kernel::add,
                                    .writes = key_value(gradient ? kQkvGradient : kQkv, source)});
    result.partial = gradient;
    result.paced = true;
    return result;
  };
  const auto bytes = [&](const Source& source, bool gradient) {
    return elements(source) * (gradient ? kPartialBytes : step_.shard().element);
  };
  const auto free = [&](Bytes size_bytes, const Deps& after, const Views& discards) {
    builder.free(MemoryClass::stream_buffers, size_bytes, after,
                 step_.operand({.kernel = Kernel::memory, .discards = discards}));
  };
  /// Adds what the previous rank sends of a block's gradient to what is there after `own_part`.
  const auto add_received = [&](const Source& source, const Deps& own_part, const Deps& post) -> Deps {
    const Deps landing{builder.allocate(MemoryClass::stream_buffers, bytes(source, true), post)};
    const Deps received{builder.receive(Axis::sp, previous, channel(source, true), bytes(source, true), landing,
                                        operand(Kernel::land, source))};
    const Work work{.gemm = {}, .vector_flops = elements(source), .sram_bytes = 3 * bytes(source, true)};
    const Deps sum{builder.reduce(Axis::sp, work, join(received, own_part), operand(Kernel::add, source))};
    free(bytes(source, true), sum, {});
    return sum;
  };

  Deps there = ready, before = ready, own_sum, all, own_sends;
  for (int round = 0; round < size; ++round) {
    const Source source = block(round);
    Deps sent;
    if (round + 1 < size) {
      sent = {builder.send(Axis::sp, next, channel(source, false), bytes(source, false), there,
                           operand(Kernel::transfer, source))};
    }
    Deps arriving;
    if (round + 1 < size) {
      const Source coming = block(round + 1);
      // The forward pass may have been made again in this step: its buffer of the block must be gone.
      const Deps gone = join(before, builder.users(key_value(kQkv, coming)));
      const Deps held{builder.allocate(MemoryClass::stream_buffers, bytes(coming, false), gone)};
      arriving = {builder.receive(Axis::sp, previous, channel(coming, false), bytes(coming, false), held,
                                  operand(Kernel::transfer, coming))};
    }
    Deps held = there;
    if (round > 0) held = {builder.allocate(MemoryClass::stream_buffers, bytes(source, true), there)};
    collected_sends_.clear();
    Deps sum = backward_line(source.sp, held, ready);
    all = join(std::move(all), sum);
    const Deps used = join(join(sum, sent), collected_sends_);
    if (round == 0) {
      own_sum = sum;
      own_sends = join(sent, collected_sends_);
    } else {
      free(bytes(source, false), used, key_value(kQkv, source));
      if (round > 1) sum = add_received(source, sum, before);
      const Deps passed{builder.send(Axis::sp, next, channel(source, true), bytes(source, true), sum,
                                     operand(Kernel::land, source))};
      free(bytes(source, true), passed, key_value(kQkvGradient, source));
    }
    before = there;
    there = arriving;
  }
  collected_sends_ = std::move(own_sends);
  return join(std::move(all), add_received(block(0), own_sum, before));
}

}  // namespace

bool attention_streams(const StepEmitter& step) { return over_tatp(step) || over_sp(step); }

Deps emit_streamed_attention(StepEmitter& step, const AttentionScope& scope, const Deps& qkv, const Retention& keep) {
  return StreamedAttention(step, scope).forward(qkv, keep);
}

Deps emit_streamed_attention_gradient(StepEmitter& step, const AttentionScope& scope, const Deps& d_output) {
  return StreamedAttention(step, scope).backward(d_output);
}

}  // namespace wafersim::workloads
