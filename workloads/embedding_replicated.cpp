#include "workloads/end_steps.h"

namespace wafersim::workloads {

namespace {

bool learned_positions(const StepEmitter& step) { return step.model().positions == models::Positions::learned; }

}  // namespace

void emit_replicated_embedding_forward(StepEmitter& step) {
  const Shard& s = step.shard();
  const std::uint64_t values = s.local_tokens * s.hidden;
  const std::uint64_t position_adds = learned_positions(step) ? values : 0;
  const ParameterLayout& layout = step.layout();
  step.vector(position_adds,
              {.scratch = values * s.element, .parameters = (values + position_adds) * s.element}, {},
              {.kernel = learned_positions(step) ? Kernel::embed_positions : Kernel::embed,
               .reads = step.weights({layout.positions(), layout.whole_table()}),
               .writes = step.stream(1)},
              s.local_stream_bytes());
}

void emit_replicated_embedding_backward(StepEmitter& step) {
  const Shard& s = step.shard();
  const std::uint64_t adds = s.local_tokens * s.hidden;
  const Traffic traffic = {.scratch = adds * s.element, .gradients = 2 * adds * s.gradient};
  const ParameterLayout& layout = step.layout();
  const Terms terms = {s.local.ordinal, s.local_tokens, s.all_tokens};
  const Views own = step.stream_gradient(1);
  Deps done = step.vector(adds, traffic, {},
                          {.kernel = Kernel::embed_backward,
                           .reads = own,
                           .writes = with_terms(step.gradients({layout.whole_table()}), terms)});
  if (learned_positions(step)) {
    done = join(std::move(done), step.vector(adds, traffic, {},
                                             {.kernel = Kernel::position_gradient,
                                              .reads = own,
                                              .writes = with_terms(step.gradients({layout.positions()}), terms)}));
  }
  step.release(s.local_stream_bytes(), done, own);
}

}  // namespace wafersim::workloads
