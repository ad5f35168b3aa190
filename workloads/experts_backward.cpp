#include "workloads/expert_rows.h"
#include "workloads/experts.h"
#include "workloads/linear.h"

namespace wafersim::workloads {

namespace {

/// Which addends of the gates' gradients the rank has: its columns of the experts' outputs' input, as of the
/// outputs.
Terms gate_terms(const StepEmitter& step) {
  const Range own = linear_input_columns(step, Weight::mlp_down);
  return {own.first, own.count, step.layout().input_width(Weight::mlp_down)};
}

/// Gradients of the experts' outputs and of the gates. Frees the outputs.
Deps combine_gradient(StepEmitter& step, const std::string& gradient, const Traffic& output_traffic,
                      const Deps& after) {
  const Shard& s = step.shard();
  const ExpertSizes sizes(step);
  const Terms terms = linear_output_terms(step, Weight::mlp_down);
  const Range choices{0, sizes.choices};
  const Views outputs = own_slots(step, tensors::kExpertOutput);
  const Bytes rows = sizes.slot_bytes(s.hidden), gate_bytes = kGateBytes * sizes.choices * s.tokens;
  Deps done = step.vector(
      vector_flops::kCombineBackward * sizes.kept * s.hidden,
      output_traffic + Traffic{.scratch = rows + gate_bytes, .saved = rows + gate_bytes}, after,
      {.kernel = Kernel::combine_backward,
       .reads = step.gathered(gradient) + with_terms(outputs, terms) + step.work(tensors::kGates, choices),
       .writes = own_slots(step, tensors::kExpertOutputGradient) +
                 with_terms(step.work(tensors::kGatesGradient, choices), gate_terms(step))},
      rows + gate_bytes);
  step.release(rows, done, outputs);
  return done;
}

Deps activation_gradient(StepEmitter& step, std::uint64_t expert, const Deps& after, bool split) {
  const Shard& s = step.shard();
  const ExpertSizes sizes(step);
  const TokenSet rows = expert_rows(s, expert);
  const Bytes activated = sizes.row_bytes(s.ffn.count), up = sizes.row_bytes(s.up_width);
  const Views d_active = step.view(tensors::kExpertActivatedGradient, rows, s.ffn);
  const Views up_views = linear_output(step, Weight::mlp_up, tensors::kExpertUp, rows);
  const Deps d_activated = linear_input_gradient(step,
                                                 {.weight = Weight::mlp_down,
                                                  .expert = expert,
                                                  .input = d_active,
                                                  .input_traffic = {.scratch = activated},
                                                  .output = tensors::kExpertOutputGradient,
                                                  .output_traffic = kept(sizes.row_bytes(s.hidden), split),
                                                  .result_bytes = activated},
                                                 after);
  Deps d_up = step.vector(activation_backward_flops(step.model()) * sizes.rows * s.ffn.count,
                          Traffic{.scratch = activated, .saved = up} + kept(up, split), d_activated,
                          {.kernel = Kernel::activation_backward,
                           .reads = d_active + up_views,
                           .writes = linear_output(step, Weight::mlp_up, tensors::kExpertUpGradient, rows)},
                          up);
  step.release(activated + up, d_up, d_active + up_views);
  return d_up;
}

Deps first_product_gradient(StepEmitter& step, std::uint64_t expert, const Deps& after, bool split) {
  const Shard& s = step.shard();
  const ExpertSizes sizes(step);
  return linear_input_gradient(
      step,
      {.weight = Weight::mlp_up,
       .expert = expert,
       .input = step.view(tensors::kExpertInputGradient, expert_rows(s, expert), {0, s.hidden}),
       .input_traffic = {.scratch = sizes.row_bytes(s.hidden)},
       .output = tensors::kExpertUpGradient,
       .output_traffic = kept(sizes.row_bytes(s.up_width), split),
       .result_bytes = sizes.row_bytes(s.hidden)},
      after);
}

struct RouterGradient {
  Deps input;  ///< tensor kRouterInputGradient, of router_rows()
  Deps weight;
};

/// Tokens for which the rank makes the router's part of the input gradient: each token's is made by one rank
/// of tp, to be summed with the rest.
TokenSet router_rows(const Shard& s) { return s.work.part(s.tp, s.rank.tp); }

/// The router's gradients, from those of the gates: sums over tp, because the experts' outputs are. `gates`:
/// the rank's part is there.
RouterGradient router_gradient(StepEmitter& step, const Deps& gates) {
  const Shard& s = step.shard();
  const ExpertSizes sizes(step);
  const Range choices{0, sizes.choices}, experts{0, sizes.experts};
  const Bytes gate_bytes = kGateBytes * sizes.choices,
              logits_bytes = kGateBytes * sizes.experts;  // of a token
  const Region weight = step.layout().router();
  const Views d_gates = step.work(tensors::kGatesGradient, choices);
  const auto kind = s.sequence_parallel ? CollectiveKind::reduce_scatter : CollectiveKind::all_reduce;
  const Deps summed = step.collective(kind, step.context().tp,
                                      {gate_bytes * s.tokens, sizes.choices * s.tokens, 0, d_gates}, gates);

  const Views d_logits = step.local(tensors::kLogitsGradient, experts);
  const Bytes d_logits_bytes = logits_bytes * s.local_tokens;
  const Deps d_scores = step.vector(
      vector_flops::kSoftmaxBackward * sizes.choices * s.local_tokens,
      {.scratch = gate_bytes * s.local_tokens + d_logits_bytes, .saved = gate_bytes * s.local_tokens}, summed,
      {.kernel = Kernel::route_backward,
       .reads = step.local(tensors::kGatesGradient, choices) + step.local(tensors::kGates, choices),
       .writes = d_logits},
      d_logits_bytes);
  step.release(gate_bytes * s.tokens, d_scores, d_gates);
  step.release(gate_bytes * s.tokens, d_scores, step.work(tensors::kGates, choices));

  RouterGradient result;
  result.weight = step.gemm(
      {1, s.hidden, sizes.experts, s.local_tokens},
      {.scratch = d_logits_bytes, .saved = s.local_stream_bytes(), .gradients = 2 * weight.rows * s.gradient},
      d_scores,
      {.kernel = Kernel::linear_weight,
       .reads = step.local(norm_name(1)) + d_logits,
       .writes = with_terms(step.gradients({weight}), {s.local.ordinal, s.local_tokens, s.all_tokens})});
  const TokenSet rows = router_rows(s);
  const Bytes input_bytes = rows.count() * s.hidden * s.element;
  const Terms experts_terms = linear_input_terms(step, Weight::mlp_up);
  const Terms terms{experts_terms.total - sizes.experts, sizes.experts, experts_terms.total};
  result.input = step.gemm(
      {1, rows.count(), s.hidden, sizes.experts},
      {.scratch = logits_bytes * rows.count() + input_bytes, .parameters = weight.rows * s.element}, d_scores,
      {.kernel = Kernel::linear_input,
       .reads = step.view(tensors::kLogitsGradient, rows, experts) + step.weights({weight}),
       .writes = with_terms(step.view(tensors::kRouterInputGradient, rows, {0, s.hidden}), terms)},
      input_bytes);
  step.release(d_logits_bytes, join(result.weight, result.input), d_logits);
  step.release(s.local_stream_bytes(), result.weight, step.local(norm_name(1)));
  return result;
}

/// The gradient of the normed input: sums over each token's choices, and the router's part.
Deps dispatch_gradient(StepEmitter& step, const Deps& there, const Deps& router, const std::string& result) {
  const Shard& s = step.shard();
  const ExpertSizes sizes(step);
  const Terms terms = linear_input_terms(step, Weight::mlp_up);
  const Bytes rows = sizes.slot_bytes(s.hidden);
  const Views d_inputs = own_slots(step, tensors::kExpertInputGradient);
  const Deps summed = step.vector(vector_flops::kResidual * sizes.kept * s.hidden,
                                  {.scratch = rows + s.stream_bytes()}, there,
                                  {.kernel = Kernel::dispatch_backward,
                                   .reads = with_terms(d_inputs, terms),
                                   .writes = with_terms(step.work(result), terms)},
                                  s.stream_bytes());
  step.release(rows, summed, d_inputs);
  const TokenSet routed = router_rows(s);
  const Views d_router = step.view(tensors::kRouterInputGradient, routed, {0, s.hidden});
  const Bytes router_bytes = routed.count() * s.hidden * s.element;
  Deps whole = step.vector(vector_flops::kResidual * routed.count() * s.hidden, {.scratch = 3 * router_bytes},
                           join(summed, router),
                           {.kernel = Kernel::accumulate,
                            .adds = true,
                            .reads = d_router,
                            .writes = step.view(result, routed, {0, s.hidden})});
  step.release(router_bytes, whole, d_router);
  return join(summed, whole);
}

}  // namespace

ExpertGradient emit_expert_input_gradients(StepEmitter& step, const std::string& gradient,
                                           const Traffic& output_traffic, const Deps& after,
                                           const std::string& result, bool split) {
  const Shard& s = step.shard();
  ExpertGradient made;
  made.output_used = combine_gradient(step, gradient, output_traffic, after);
  const Deps arrived = emit_expert_exchange(step, ExpertExchange::to_experts, tensors::kExpertOutputGradient,
                                            made.output_used);
  std::vector<Deps> inner;
  for (std::uint64_t expert = s.experts.first; expert < s.experts.end(); ++expert) {
    inner.push_back(activation_gradient(step, expert, arrived, split));
    made.inner = join(std::move(made.inner), inner.back());
  }
  Deps d_inputs;
  for (std::uint64_t i = 0; i < s.experts.count; ++i) {
    d_inputs = join(std::move(d_inputs), first_product_gradient(step, s.experts.first + i, inner[i], split));
  }
  const Deps there =
      emit_expert_exchange(step, ExpertExchange::to_tokens, tensors::kExpertInputGradient, d_inputs);
  // Behind the experts' products, so that these do not wait for the sums of the gates' gradients.
  const RouterGradient router = router_gradient(step, made.output_used);
  made.router = router.weight;
  made.partial = dispatch_gradient(step, there, router.input, result);
  return made;
}

Deps emit_expert_weight_gradients(StepEmitter& step, const WeightOperands& ready) {
  const Shard& s = step.shard();
  const ExpertSizes sizes(step);
  Deps all;
  for (std::uint64_t expert = s.experts.first; expert < s.experts.end(); ++expert) {
    const TokenSet rows = expert_rows(s, expert);
    const Views active = step.view(tensors::kExpertActivated, rows, s.ffn);
    const Deps second =
        linear_weight_gradient(step,
                               {.weight = Weight::mlp_down,
                                .expert = expert,
                                .input = active,
                                .input_traffic = kept(sizes.row_bytes(s.ffn.count), true),
                                .output = tensors::kExpertOutputGradient,
                                .output_traffic = kept(sizes.row_bytes(s.hidden), ready.kept)},
                               ready.inner);
    const Deps first =
        linear_weight_gradient(step,
                               {.weight = Weight::mlp_up,
                                .expert = expert,
                                .input = step.view(tensors::kExpertInput, rows, {0, s.hidden}),
                                .input_traffic = kept(sizes.row_bytes(s.hidden), true),
                                .output = tensors::kExpertUpGradient,
                                .output_traffic = kept(sizes.row_bytes(s.up_width), ready.kept)},
                               ready.inner);
    step.release(sizes.row_bytes(s.ffn.count), second, active);
    step.release(sizes.row_bytes(s.up_width), join(first, ready.inner_used),
                 linear_output(step, Weight::mlp_up, tensors::kExpertUpGradient, rows));
    all = join(join(std::move(all), second), first);
  }
  const Range hidden{0, s.hidden};
  step.release(2 * sizes.slot_bytes(s.hidden), all,
               own_experts(step, tensors::kExpertInput, hidden) +
                   own_experts(step, tensors::kExpertOutputGradient, hidden));
  return all;
}

Bytes weight_expert_bytes(const Shard& shard) {
  const std::uint64_t rows = shard.experts.count * static_cast<std::uint64_t>(shard.ep) * shard.expert_slots;
  return rows * (2 * shard.hidden + shard.up_width + shard.ffn.count) * shard.element;
}

}  // namespace wafersim::workloads
