#include "workloads/step_emitter.h"

#include <utility>

namespace wafersim::workloads {

std::uint32_t boundary_channel(Boundary boundary, int chunk) {
  return 2 * static_cast<std::uint32_t>(chunk) + (boundary == Boundary::forward ? 0 : 1);
}

Deps join(Deps first, const Deps& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

Views operator+(Views first, const Views& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

Views with_terms(Views views, const Terms& terms) {
  for (View& view : views) view.terms = terms;
  return views;
}

Traffic operator+(const Traffic& a, const Traffic& b) {
  return {a.scratch + b.scratch, a.saved + b.saved, a.parameters + b.parameters, a.gradients + b.gradients,
          a.optimizer + b.optimizer, a.streamed + b.streamed};
}

Traffic kept(Bytes bytes, bool keep) { return keep ? Traffic{.saved = bytes} : Traffic{.scratch = bytes}; }

StepEmitter::StepEmitter(Trace& trace, std::string name, const RankContext& context)
    : builder_(trace, std::move(name)), base_(context), context_(&context) {}

void StepEmitter::enter(Cut cut) {
  cut_ = cut;
  const RankContext* own = base_.cuts[static_cast<std::size_t>(cut)];
  if (own != nullptr) context_ = own;
}

const Reshard* StepEmitter::reshard(Cut to) const {
  if (base_.reshards == nullptr || cut_ == to) return nullptr;
  const Reshard& found = base_.reshards->get(cut_, to, base_.shard.rank.sp);
  return found.agrees() ? nullptr : &found;
}

Work StepEmitter::work_of(const Traffic& traffic) const {
  Work result;
  result.sram_bytes =
      traffic.scratch + traffic.saved + traffic.parameters + traffic.gradients + traffic.optimizer + traffic.streamed;
  const auto add = [&](MemoryClass memory_class, Bytes bytes) {
    result.class_bytes[static_cast<std::size_t>(memory_class)] = bytes;
  };
  add(MemoryClass::activations, traffic.saved);
  add(MemoryClass::parameters, traffic.parameters);
  add(MemoryClass::gradients, traffic.gradients);
  add(MemoryClass::optimizer, traffic.optimizer);
  add(MemoryClass::stream_buffers, traffic.streamed);
  return result;
}

Operand StepEmitter::operand(Meaning meaning) {
  Operand made;
  const Views& named = meaning.writes.empty() ? meaning.reads : meaning.writes;
  if (!named.empty()) made.tensor = named.front().tensor;
  made.meaning = builder_.meaning(std::move(meaning));
  return made;
}

Views StepEmitter::view(const std::string& tensor, const TokenSet& tokens, const Range& columns) {
  Views result;
  const std::uint32_t index = builder_.tensor(tensor);
  for (const Range& rows : tokens.ranges) {
    result.push_back({.tensor = index, .region = {rows.first, rows.count, columns.first, columns.count}});
  }
  return result;
}

Views StepEmitter::others(const Views& views) const {
  const std::uint64_t before = shard().local.ordinal - shard().work.ordinal;
  const std::uint64_t behind = before + shard().local_tokens;
  return slice_rows(views, 0, before) + slice_rows(views, behind, shard().tokens - behind);
}

Views StepEmitter::shifted(Views views, int layer) {
  for (View& view : views) view.layer += layer;
  return views;
}

Views StepEmitter::of_layer(Views views, int layer) {
  for (View& view : views) {
    view.layer = layer;
    view.absolute = true;
  }
  return views;
}

Views StepEmitter::weights(const std::vector<Region>& regions) {
  Views result;
  const std::uint32_t index = builder_.tensor(tensors::kWeights, TensorScope::parameter);
  for (const Region& region : regions) {
    if (region.rows > 0) result.push_back({.tensor = index, .region = region});
  }
  return result;
}

Views StepEmitter::gradients(const std::vector<Region>& regions) {
  Views result = weights(regions);
  const std::uint32_t index = plan().shards_gradients()
                                  ? builder_.tensor(tensors::kMicrobatchGradients, TensorScope::microbatch_gradient)
                                  : builder_.tensor(tensors::kGradients, TensorScope::gradient);
  for (View& view : result) view.tensor = index;
  return result;
}

Views StepEmitter::summed_gradients(const std::vector<Region>& regions) {
  Views result = weights(regions);
  const std::uint32_t index = builder_.tensor(tensors::kGradients, TensorScope::gradient);
  for (View& view : result) view.tensor = index;
  return result;
}

Deps StepEmitter::gemm(const models::GemmShape& shape, const Traffic& traffic, const Deps& after,
                       Meaning meaning, Bytes result_bytes) {
  Work product = work_of(traffic);
  product.gemm = shape;
  return {builder_.matrix(product, hold(result_bytes, after), operand(std::move(meaning)))};
}

Deps StepEmitter::vector(std::uint64_t flops, const Traffic& traffic, const Deps& after, Meaning meaning,
                         Bytes result_bytes) {
  Work elementwise = work_of(traffic);
  elementwise.vector_flops = flops;
  return {builder_.vector(elementwise, hold(result_bytes, after), operand(std::move(meaning)))};
}

Deps StepEmitter::hold(Bytes bytes, const Deps& after, Meaning meaning) {
  if (bytes == 0) return after;
  return {builder_.allocate(MemoryClass::activations, bytes, after, operand(std::move(meaning)))};
}

void StepEmitter::release(Bytes bytes, const Deps& after, Views discards) {
  if (bytes == 0) return;
  builder_.free(MemoryClass::activations, bytes, after,
                operand({.kernel = Kernel::memory, .discards = std::move(discards)}));
}

Deps StepEmitter::collective(CollectiveKind kind, const Group& group, CollectiveVector vector,
                             const Deps& after) {
  if (group.size == 1 || vector.bytes == 0) return after;
  const Collective algorithm =
      choose_algorithm(plan().collectives, kind, group, vector.bytes, context_->input.hardware);
  vector.tensor = vector.views.front().tensor;
  const auto emit = kind == CollectiveKind::all_gather       ? all_gather
                    : kind == CollectiveKind::reduce_scatter ? reduce_scatter
                                                             : all_reduce;
  return emit(builder_, group, algorithm, vector, join(after, builder_.users(vector.views)),
              plan().collective_chunks);
}

Deps StepEmitter::gather(const Views& own, const std::string& whole, const Deps& after) {
  const Deps unused = join(after, builder_.users(work(whole)));  // a buffer of the same name is gone
  const Deps ready =
      hold(shard().stream_bytes(), unused, {.kernel = Kernel::copy, .reads = own, .writes = local(whole)});
  return collective(CollectiveKind::all_gather, context_->tp,
                    {shard().stream_bytes(), shard().tokens * shard().hidden, 0, work(whole)}, ready);
}

Deps StepEmitter::gather_tokens(const std::string& tensor, const Deps& after) {
  return shard().gathers() ? gather(gathered_source(tensor), tensor + ".gathered", after) : after;
}

Views StepEmitter::gathered_source(const std::string& tensor) {
  return tensor == tensors::kStreamGradient ? stream_gradient(1) : local(tensor);
}

TensorName StepEmitter::gathered_name(const std::string& tensor) const {
  if (shard().gathers()) return {tensor + ".gathered"};
  return {tensor, tensor == tensors::kStreamGradient ? 1 : 0};
}

Views StepEmitter::gathered(const std::string& tensor) {
  return shard().gathers() ? work(tensor + ".gathered") : gathered_source(tensor);
}

void StepEmitter::release_gathered(const std::string& tensor, const Deps& after) {
  if (shard().gathers()) release(shard().stream_bytes(), after, work(tensor + ".gathered"));
}

Deps StepEmitter::reduce_tokens(const Views& sums, const Deps& after) {
  const auto kind = shard().sequence_parallel ? CollectiveKind::reduce_scatter : CollectiveKind::all_reduce;
  return collective(kind, context_->tp, {shard().stream_bytes(), shard().tokens * shard().hidden, 0, sums}, after);
}

Deps StepEmitter::reduce_token_scalars(const std::string& tensor, Kernel combine, const Deps& after) {
  return collective(CollectiveKind::all_reduce, context_->tp,
                    {4 * shard().tokens, shard().tokens, 0, work(tensor, {0, 1}), combine}, after);
}

bool StepEmitter::boundary_is_sliced() const {
  return shard().tp > 1 && !shard().sequence_parallel && !plan().pp_transfer_full;
}

Bytes StepEmitter::boundary_bytes() const {
  return boundary_is_sliced() ? share(shard().tokens, shard().tp, shard().rank.tp) * shard().hidden * shard().element
                              : shard().local_stream_bytes();
}

/// What a rank exchanges of the residual stream at a stage's first (0) or last (1) layer.
Views StepEmitter::boundary_views(Boundary boundary, int layer) {
  const TokenSet rows = boundary_is_sliced() ? shard().work.part(shard().tp, shard().rank.tp) : shard().local;
  const char* tensor = boundary == Boundary::forward ? tensors::kStream : tensors::kStreamGradient;
  return shifted(view(tensor, rows, {0, shard().hidden}), layer);
}

Deps StepEmitter::receive_boundary(Boundary boundary, int chunk) {
  const bool forward = boundary == Boundary::forward;
  const std::uint32_t peer = forward ? context_->previous_stage : context_->next_stage;
  const int layer = forward ? 0 : 1;
  Deps arrived = hold(shard().local_stream_bytes(), {});
  if (boundary_bytes() > 0) {
    const Operand carried = operand({.kernel = Kernel::transfer, .writes = boundary_views(boundary, layer)});
    arrived = {builder_.receive(Axis::pp, peer, boundary_channel(boundary, chunk), boundary_bytes(), arrived, carried,
                                MatchScope::microbatch)};
  }
  if (!boundary_is_sliced()) return arrived;
  return collective(CollectiveKind::all_gather, context_->tp,
                    {shard().stream_bytes(), shard().tokens * shard().hidden, 0,
                     forward ? stream(layer) : stream_gradient(layer)},
                    arrived);
}

void StepEmitter::send_boundary(Boundary boundary, int chunk, const Deps& after) {
  const bool forward = boundary == Boundary::forward;
  const std::uint32_t peer = forward ? context_->next_stage : context_->previous_stage;
  const int layer = forward ? 1 : 0;
  const Views whole = forward ? stream(layer) : stream_gradient(layer);
  release(shard().local_stream_bytes() - boundary_bytes(), after);
  if (boundary_bytes() == 0) return;
  const Operand carried = operand({.kernel = Kernel::transfer, .writes = boundary_views(boundary, layer)});
  const OpId send = builder_.send(Axis::pp, peer, boundary_channel(boundary, chunk), boundary_bytes(), after, carried,
                                  MatchScope::microbatch);
  builder_.detach(send);
  builder_.detach(builder_.free(MemoryClass::activations, boundary_bytes(),
                                {send},
                                operand({.kernel = Kernel::memory, .discards = whole})));
}

}  // namespace wafersim::workloads
