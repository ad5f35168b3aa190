#include <functional>
#include <utility>

#include "workloads/end_steps.h"
#include "workloads/stream.h"

namespace wafersim::workloads {

namespace {

/// Tokens of all tensor-stream ranks of a rank's line.
std::uint64_t line_tokens(const Shard& s) {
  std::uint64_t total = 0;
  for (const TokenSet& each : s.line) total += each.count();
  return total;
}

/// Those whose embedding a rank holds: an even spread over the vocabulary, rounded up.
std::uint64_t tokens_looked_up(const Shard& s) {
  return ceil_div<std::uint64_t>(line_tokens(s), static_cast<std::uint64_t>(s.tp * s.tatp));
}

Bytes line_bytes(const Shard& s) { return line_tokens(s) * s.hidden * s.element; }

/// The residual stream's width of all tokens of the line, rank by rank.
Views line_views(StepEmitter& step, const std::string& tensor) {
  Views views;
  for (const TokenSet& each : step.shard().line) views = views + step.view(tensor, each, {0, step.shard().hidden});
  return views;
}

CollectiveVector line_vector(const StepEmitter& step, const Views& views) {
  const Shard& s = step.shard();
  CollectiveVector vector{line_bytes(s), line_tokens(s) * s.hidden, 0, views};
  for (const TokenSet& each : s.line) vector.shards.push_back(each.count());
  return vector;
}

/// Of views of all tokens of the line, those that the rank does not work on.
Views outside_work(const StepEmitter& step, const Views& views) {
  const Shard& s = step.shard();
  const std::uint64_t before = s.work.ordinal - s.line.front().ordinal;
  const std::uint64_t behind = before + s.tokens;
  return slice_rows(views, 0, before) + slice_rows(views, behind, total_rows(views) - behind);
}

bool learned_positions(const StepEmitter& step) { return step.model().positions == models::Positions::learned; }

Bytes logits_bytes(const Shard& s) { return s.token_bytes(s.vocab.count); }

/// One fp32 for each token.
Bytes scalars_bytes(const Shard& s) { return 4 * s.tokens; }

/// Parameters of the embedding step's own layer, seen from anywhere.
constexpr int kEmbeddingLayer = -1;

/// What the head keeps of its input besides the input itself.
Bytes normed_bytes(const StepEmitter& step) { return step.model().final_norm ? step.shard().local_stream_bytes() : 0; }

/// A head step's tensors. Its parameters are those of the layer after the last; the table may be the
/// embedding's.
class HeadTensors {
 public:
  explicit HeadTensors(StepEmitter& step)
      : step_(step), layers_(step.model().layers), tied_(step.model().tied_embeddings && step.model().embedding) {}

  /// The output of the last layer, and the gradient that the head makes of it.
  Views input() const { return StepEmitter::of_layer(step_.local(tensors::kStream), layers_); }
  Views input_gradient() const { return StepEmitter::of_layer(step_.local(tensors::kStreamGradient), layers_); }
  /// What the logits are made from.
  Views source() const {
    if (step_.shard().gathers()) return step_.work("head.input.gathered");
    return step_.model().final_norm ? step_.local("head.input") : input();
  }
  Views logits(const char* name) const { return step_.work(name, step_.shard().vocab); }
  Views scalars(const char* name) const { return step_.work(name, {0, 1}); }
  Views norm(bool gradient) const {
    const std::vector<Region> regions = {step_.layout().final_norm()};
    return StepEmitter::of_layer(gradient ? step_.gradients(regions) : step_.weights(regions), layers_);
  }
  /// The part of the table that a tensor-stream rank holds, and its columns of the logits.
  Views table(bool gradient, int tatp, int chunk) const {
    const Range own = step_.layout().vocabulary(step_.shard().rank.tp, tatp);
    const Range part = columns(tatp, chunk);
    const std::uint64_t hidden = step_.shard().hidden;
    Region region = step_.layout().table(!tied_, step_.shard().rank.tp, tatp);
    region.row += (part.first - own.first) * hidden;
    region.rows = part.count * hidden;
    const std::vector<Region> regions = {region};
    return StepEmitter::of_layer(gradient ? step_.gradients(regions) : step_.weights(regions),
                                 tied_ ? kEmbeddingLayer : layers_);
  }
  /// A piece of a tensor-stream rank's part of the vocabulary.
  Range columns(int tatp, int chunk) const {
    const Range own = step_.layout().vocabulary(step_.shard().rank.tp, tatp);
    const Range part = share_range(own.count, step_.layout().chunks(), chunk);
    return {own.first + part.first, part.count};
  }
  Views logits_of(const char* name, int tatp, int chunk) const {
    return step_.work(name, columns(tatp, chunk));
  }
  std::uint64_t parameters(int tatp, int chunk) const {
    return columns(tatp, chunk).count * step_.shard().hidden;
  }
  /// Reading a block: the rank's own lies with its parameters, others in stream buffers.
  Traffic block_traffic(int owner, int chunk) const {
    const Bytes bytes = parameters(owner, chunk) * step_.shard().element;
    return owner == step_.shard().rank.tatp ? Traffic{.parameters = bytes} : Traffic{.streamed = bytes};
  }
  /// As a tensor stream carries the table, or the parts of its gradient in fp32.
  StreamBlocks blocks(bool gradient) const {
    const Bytes bytes = gradient ? kPartialBytes : step_.shard().element;
    return {.chunks = step_.layout().chunks(),
            .views = [this, gradient](int owner, int chunk) { return table(gradient, owner, chunk); },
            .bytes = [this, bytes](int owner, int chunk) { return parameters(owner, chunk) * bytes; },
            .elements = [this](int owner, int chunk) { return parameters(owner, chunk); }};
  }

  /// The embedding's and the head's contributions to a tied table come one after the other.
  Terms table_terms() const {
    const Shard& s = step_.shard();
    if (!tied_) return {s.work.ordinal, s.tokens, s.all_tokens};
    return {s.all_tokens + s.work.ordinal, s.tokens, 2 * s.all_tokens};
  }

 private:
  StepEmitter& step_;
  int layers_;
  bool tied_;
};

Terms embedding_terms(const StepEmitter& step) {
  const Shard& s = step.shard();
  const bool tied = step.model().tied_embeddings && step.model().head;
  return {s.line.front().ordinal, line_tokens(s), (tied ? 2 : 1) * s.all_tokens};
}

/// The input of the logits GEMM, gathered where the rank holds a part of its tokens only.
Deps gather_head_input(StepEmitter& step, const Deps& after) {
  const Shard& s = step.shard();
  if (!s.gathers()) return after;
  const HeadTensors t(step);
  const Views source = step.model().final_norm ? step.local("head.input") : t.input();
  return step.gather(source, "head.input.gathered", after);
}

/// Uses every block of the table: this rank's own, and with tensor streams those of the line.
Deps for_each_block(StepEmitter& step, const HeadTensors& t, const Deps& after,
                    const std::function<Deps(int owner, int chunk, const Deps& ready)>& use) {
  if (step.shard().tatp == 1) return use(0, 0, after);
  return stream_outward(step, step.tatp_line(), t.blocks(false), after,
                        [&](int owner, int chunk, const Deps& there) -> BlockUse {
                          const Deps done = use(owner, chunk, join(there, after));
                          return {done, done};
                        })
      .done;
}

/// The gradient of the rank's part of the table; with tensor streams every rank makes a part of every block's.
Deps table_gradient(StepEmitter& step, const HeadTensors& t, const Deps& after) {
  const Shard& s = step.shard();
  const auto make = [&](int owner, int chunk, const Deps& ready) {
    const std::uint64_t columns = t.columns(owner, chunk).count;
    Traffic traffic = kept(s.stream_bytes(), !s.gathers()) + Traffic{.saved = s.token_bytes(columns)};
    traffic = traffic + (owner == s.rank.tatp ? Traffic{.gradients = 2 * t.parameters(owner, chunk) * s.gradient}
                                              : Traffic{.streamed = t.parameters(owner, chunk) * kPartialBytes});
    return step.gemm({1, s.hidden, columns, s.tokens}, traffic, ready,
                     {.kernel = Kernel::logits_weight,
                      .reads = t.source() + t.logits_of("head.logits.gradient", owner, chunk),
                      .writes = with_terms(t.table(true, owner, chunk), t.table_terms())});
  };
  if (s.tatp == 1) return make(0, 0, after);
  Deps all;
  const Deps own = stream_inward(step, step.tatp_line(), t.blocks(true), after,
                                 [&](int owner, int chunk, const Deps& there) -> BlockUse {
                                   const Deps done = make(owner, chunk, join(there, after));
                                   all = join(std::move(all), done);
                                   return {done, done};
                                 });
  return join(std::move(all), own);
}

}  // namespace

void emit_embedding_forward(StepEmitter& step) {
  const Shard& s = step.shard();
  const Bytes rows = tokens_looked_up(s) * s.hidden * s.element;
  // Positions are added by one rank to each token, so that the sum over ranks has them once.
  const std::uint64_t position_adds = learned_positions(step) ? tokens_looked_up(s) * s.hidden : 0;
  const Traffic traffic = {.scratch = line_bytes(s), .parameters = rows + position_adds * s.element};
  const ParameterLayout& layout = step.layout();
  const Range vocabulary = layout.vocabulary(s.rank.tp, s.rank.tatp);
  const Terms terms = {vocabulary.first, vocabulary.count, layout.padded_vocabulary()};
  const Views whole = StepEmitter::shifted(line_views(step, tensors::kStream), 1);
  const Deps looked_up = step.vector(
      position_adds, traffic, {},
      {.kernel = learned_positions(step) ? Kernel::embed_positions : Kernel::embed,
       .reads = step.weights({layout.positions(), layout.table(false, s.rank.tp, s.rank.tatp)}),
       .writes = with_terms(whole, terms)},
      line_bytes(s));
  const Deps own = step.collective(CollectiveKind::reduce_scatter, step.context().tatp, line_vector(step, whole),
                                   looked_up);
  step.release(line_bytes(s) - s.stream_bytes(), own, outside_work(step, whole));
  const Views stream = StepEmitter::shifted(step.work(tensors::kStream), 1);
  const Deps sum = step.reduce_tokens(stream, own);
  step.release(s.stream_bytes() - s.local_stream_bytes(), sum, step.others(stream));
}

void emit_embedding_backward(StepEmitter& step) {
  const Shard& s = step.shard();
  const ParameterLayout& layout = step.layout();
  const Views own = step.stream_gradient(1);
  const std::string work = "embedding.output.gradient.gathered", line = "embedding.output.gradient.line";
  Deps ready;
  Views gradient = own;
  if (s.gathers()) {
    ready = step.gather(own, work, ready);
    gradient = step.work(work);
  }
  if (s.tatp > 1) {
    const Views whole = line_views(step, line);
    ready = step.hold(line_bytes(s), ready, {.kernel = Kernel::copy, .reads = gradient, .writes = step.work(line)});
    ready = step.collective(CollectiveKind::all_gather, step.context().tatp, line_vector(step, whole), ready);
    gradient = whole;
  }
  const std::uint64_t adds = tokens_looked_up(s) * s.hidden;
  const Deps scattered =
      step.vector(adds, {.scratch = adds * s.element, .gradients = 2 * adds * s.gradient}, ready,
                  {.kernel = Kernel::embed_backward,
                   .reads = gradient,
                   .writes = with_terms(step.gradients({layout.table(false, s.rank.tp, s.rank.tatp)}),
                                        embedding_terms(step))});
  Deps positions;
  if (learned_positions(step)) {
    const std::uint64_t values = s.local_tokens * s.hidden;
    positions = step.vector(values, {.scratch = values * s.element, .gradients = 2 * values * s.gradient}, {},
                            {.kernel = Kernel::position_gradient,
                             .reads = own,
                             .writes = with_terms(step.gradients({layout.positions()}),
                                                  {s.local.ordinal, s.local_tokens, s.all_tokens})});
  }
  if (s.tatp > 1) step.release(line_bytes(s), scattered, line_views(step, line));
  if (s.gathers()) step.release(s.stream_bytes(), scattered, step.work(work));
  step.release(s.local_stream_bytes(), join(scattered, positions), own);
}

void emit_head_forward(StepEmitter& step) {
  const Shard& s = step.shard();
  const HeadTensors t(step);
  const Bytes stream = s.local_stream_bytes();
  Deps input;
  if (step.model().final_norm) {
    input = step.vector(
        norm_flops(step.model()) * s.local_tokens * s.hidden, {.saved = 2 * stream}, {},
        {.kernel = Kernel::norm, .reads = t.input() + t.norm(false), .writes = step.local("head.input")}, stream);
  }
  const Deps gathered = gather_head_input(step, input);
  const Deps buffer = step.hold(logits_bytes(s), gathered);
  const Deps logits = for_each_block(step, t, buffer, [&](int owner, int chunk, const Deps& ready) {
    const std::uint64_t columns = t.columns(owner, chunk).count;
    return step.gemm({1, s.tokens, columns, s.hidden},
                     Traffic{.scratch = s.stream_bytes() + s.token_bytes(columns)} + t.block_traffic(owner, chunk),
                     ready,
                     {.kernel = Kernel::logits,
                      .reads = t.source() + t.table(false, owner, chunk),
                      .writes = t.logits_of("head.logits", owner, chunk)});
  });
  if (s.gathers()) step.release(s.stream_bytes(), logits, t.source());
  // Softmax with its row operations around the two all-reduces: maximum; exponential and sum; division.
  const std::uint64_t scores = s.tokens * s.vocab.count;
  const Terms terms = {s.vocab.first, s.vocab.count, step.layout().padded_vocabulary()};
  const Views maxima = t.scalars("head.maximum"), sums = t.scalars("head.sum");
  const Deps maximum = step.vector(
      scores, {.scratch = logits_bytes(s)}, logits,
      {.kernel = Kernel::row_maximum, .reads = t.logits("head.logits"), .writes = with_terms(maxima, terms)},
      scalars_bytes(s));
  const Deps all_maxima = step.reduce_token_scalars("head.maximum", Kernel::maximum, maximum);
  const Deps exponential = step.vector(4 * scores, {.scratch = 2 * logits_bytes(s)}, all_maxima,
                                       {.kernel = Kernel::row_sum,
                                        .reads = t.logits("head.logits") + maxima,
                                        .writes = with_terms(sums, terms)},
                                       scalars_bytes(s));
  const Deps all_sums = step.reduce_token_scalars("head.sum", Kernel::add, exponential);
  const Deps probabilities =
      step.vector(scores, {.scratch = logits_bytes(s), .saved = logits_bytes(s)}, all_sums,
                  {.kernel = Kernel::probabilities,
                   .reads = t.logits("head.logits") + maxima + sums,
                   .writes = t.logits("head.probabilities"),
                   .discards = t.logits("head.logits")});
  step.release(2 * scalars_bytes(s), probabilities, maxima + sums);
}

void emit_head_backward(StepEmitter& step) {
  const Shard& s = step.shard();
  const HeadTensors t(step);
  const Bytes stream = s.local_stream_bytes();
  const Views d_logits_views = t.logits("head.logits.gradient");
  const Deps d_logits = step.vector(s.tokens * s.vocab.count, {.saved = 2 * logits_bytes(s)}, {},
                                    {.kernel = Kernel::loss_gradient,
                                     .reads = t.logits("head.probabilities"),
                                     .writes = d_logits_views,
                                     .discards = t.logits("head.probabilities")});
  const Deps input = s.gathers() ? gather_head_input(step, {}) : Deps{};
  // Without a final norm the sum itself is the gradient of the residual stream.
  const Views sum_views = step.model().final_norm
                              ? step.work("head.input.gradient")
                              : StepEmitter::of_layer(step.work(tensors::kStreamGradient), step.model().layers);
  const Deps buffer = step.hold(s.stream_bytes(), d_logits);
  bool first = true;
  const Deps partial = for_each_block(step, t, buffer, [&](int owner, int chunk, const Deps& ready) {
    const Range columns = t.columns(owner, chunk);
    const bool adds = !std::exchange(first, false);
    return step.gemm({1, s.tokens, s.hidden, columns.count},
                     Traffic{.scratch = (adds ? 2 : 1) * s.stream_bytes(), .saved = s.token_bytes(columns.count)} +
                         t.block_traffic(owner, chunk),
                     ready,
                     {.kernel = Kernel::logits_input,
                      .adds = adds,
                      .reads = t.logits_of("head.logits.gradient", owner, chunk) + t.table(false, owner, chunk),
                      .writes = with_terms(sum_views, {columns.first, columns.count, step.layout().padded_vocabulary()})});
  });
  const Deps sum = step.reduce_tokens(sum_views, partial);
  const Deps d_weight = table_gradient(step, t, join(d_logits, input));
  if (s.gathers()) step.release(s.stream_bytes(), d_weight, t.source());
  step.release(logits_bytes(s), join(partial, d_weight), d_logits_views);
  if (!step.model().final_norm) {
    // The reduced sum itself is handed on; the input is not needed any more, nor what the reduction left of other
    // ranks' tokens.
    step.release(s.stream_bytes(), join(sum, d_weight), t.input() + step.others(sum_views));
    return;
  }
  const Deps result = step.vector(
      vector_flops::kNormBackward * norm_flops(step.model()) * s.local_tokens * s.hidden,
      {.scratch = 2 * stream, .saved = stream}, sum,
      {.kernel = Kernel::norm_backward,
       .reads = step.local("head.input.gradient") + t.input() + t.norm(false),
       .writes = t.input_gradient() +
                 with_terms(t.norm(true), {s.local.ordinal, s.local_tokens, s.all_tokens})},
      stream);
  step.release(s.stream_bytes() + stream, result, step.work("head.input.gradient") + t.input());
  step.release(normed_bytes(step), d_weight, step.local("head.input"));
}

}  // namespace wafersim::workloads
