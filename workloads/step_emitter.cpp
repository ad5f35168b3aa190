#include "workloads/step_emitter.h"

#include <utility>

namespace wafersim::workloads {

namespace {

/// Channels of the pipeline transfers, which match by microbatch.
std::uint32_t boundary_channel(Boundary boundary) { return boundary == Boundary::forward ? 0 : 1; }

const char* boundary_tensor(Boundary boundary) {
  return boundary == Boundary::forward ? "boundary" : "boundary.gradient";
}

}  // namespace

Deps join(Deps first, const Deps& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

Traffic operator+(const Traffic& a, const Traffic& b) {
  return {a.scratch + b.scratch, a.saved + b.saved, a.parameters + b.parameters, a.gradients + b.gradients,
          a.optimizer + b.optimizer};
}

StepEmitter::StepEmitter(Trace& trace, std::string name, const RankContext& context)
    : builder_(trace, std::move(name)), context_(context) {}

Work StepEmitter::work(const Traffic& traffic) const {
  Work result;
  result.sram_bytes =
      traffic.scratch + traffic.saved + traffic.parameters + traffic.gradients + traffic.optimizer;
  const auto add = [&](MemoryClass memory_class, Bytes bytes) {
    if (context_.in_dram[static_cast<std::size_t>(memory_class)]) result.dram_bytes += bytes;
  };
  add(MemoryClass::activations, traffic.saved);
  add(MemoryClass::parameters, traffic.parameters);
  add(MemoryClass::gradients, traffic.gradients);
  add(MemoryClass::optimizer, traffic.optimizer);
  return result;
}

Operand StepEmitter::operand(const std::string& name) {
  Operand made;
  made.tensor = builder_.tensor(name);
  made.part = static_cast<std::uint16_t>(context_.shard.rank);
  made.parts = static_cast<std::uint16_t>(context_.shard.tp);
  return made;
}

Deps StepEmitter::gemm(const std::string& name, const models::GemmShape& shape, const Traffic& traffic,
                       const Deps& after, Bytes result_bytes) {
  Work product = work(traffic);
  product.gemm = shape;
  return {builder_.matrix(product, hold(result_bytes, after), operand(name))};
}

Deps StepEmitter::vector(const std::string& name, std::uint64_t flops, const Traffic& traffic,
                         const Deps& after, Bytes result_bytes) {
  Work elementwise = work(traffic);
  elementwise.vector_flops = flops;
  return {builder_.vector(elementwise, hold(result_bytes, after), operand(name))};
}

Deps StepEmitter::hold(Bytes bytes, const Deps& after) {
  if (bytes == 0) return after;
  return {builder_.allocate(MemoryClass::activations, bytes, after)};
}

void StepEmitter::release(Bytes bytes, const Deps& after) {
  if (bytes > 0) builder_.free(MemoryClass::activations, bytes, after);
}

Deps StepEmitter::collective(CollectiveKind kind, const std::string& name, const Group& group, Bytes bytes,
                             std::uint64_t elements, const Deps& after) {
  if (group.size == 1 || bytes == 0) return after;
  const PlanSpec& plan = context_.input.plan;
  const Collective algorithm =
      choose_algorithm(plan.collectives, kind, group, bytes, context_.input.hardware);
  const CollectiveVector vector{bytes, elements, builder_.tensor(name)};
  const auto emit = kind == CollectiveKind::all_gather       ? all_gather
                    : kind == CollectiveKind::reduce_scatter ? reduce_scatter
                                                             : all_reduce;
  return emit(builder_, group, algorithm, vector, after, plan.collective_chunks);
}

Deps StepEmitter::gather_tokens(const std::string& name, const Deps& after) {
  if (!shard().gathers()) return after;
  const Deps ready = hold(shard().stream_bytes(), after);
  return collective(CollectiveKind::all_gather, name, context_.tp, shard().stream_bytes(),
                    shard().tokens * shard().hidden, ready);
}

void StepEmitter::release_gathered(const Deps& after) {
  if (shard().gathers()) release(shard().stream_bytes(), after);
}

Deps StepEmitter::reduce_tokens(const std::string& name, const Deps& after) {
  const auto kind = shard().sequence_parallel ? CollectiveKind::reduce_scatter : CollectiveKind::all_reduce;
  return collective(kind, name, context_.tp, shard().stream_bytes(), shard().tokens * shard().hidden, after);
}

Deps StepEmitter::reduce_token_scalars(const std::string& name, const Deps& after) {
  return collective(CollectiveKind::all_reduce, name, context_.tp, 4 * shard().tokens, shard().tokens, after);
}

bool StepEmitter::boundary_is_sliced() const {
  return shard().tp > 1 && !shard().sequence_parallel && !context_.input.plan.pp_transfer_full;
}

Bytes StepEmitter::boundary_bytes() const {
  return boundary_is_sliced() ? share(shard().stream_bytes(), shard().tp, shard().rank)
                              : shard().local_stream_bytes();
}

Deps StepEmitter::receive_boundary(Boundary boundary) {
  const std::string tensor = boundary_tensor(boundary);
  const std::uint32_t peer = boundary == Boundary::forward ? context_.previous_stage : context_.next_stage;
  Deps arrived = hold(shard().local_stream_bytes(), {});
  if (boundary_bytes() > 0) {
    arrived = {builder_.receive(Axis::pp, peer, boundary_channel(boundary), boundary_bytes(), arrived,
                                operand(tensor), MatchScope::microbatch)};
  }
  if (!boundary_is_sliced()) return arrived;
  return collective(CollectiveKind::all_gather, tensor + ".gathered", context_.tp, shard().stream_bytes(),
                    shard().tokens * shard().hidden, arrived);
}

void StepEmitter::send_boundary(Boundary boundary, const Deps& after) {
  const std::uint32_t peer = boundary == Boundary::forward ? context_.next_stage : context_.previous_stage;
  release(shard().local_stream_bytes() - boundary_bytes(), after);
  if (boundary_bytes() == 0) return;
  const OpId send = builder_.send(Axis::pp, peer, boundary_channel(boundary), boundary_bytes(), after,
                                  operand(boundary_tensor(boundary)), MatchScope::microbatch);
  builder_.detach(send);
  builder_.detach(builder_.free(MemoryClass::activations, boundary_bytes(), {send}));
}

}  // namespace wafersim::workloads
