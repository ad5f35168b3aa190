#include <algorithm>
#include <utility>

#include "workloads/all_to_all.h"
#include "workloads/expert_rows.h"
#include "workloads/experts.h"
#include "workloads/linear.h"

namespace wafersim::workloads {

namespace {

/// Rows between a rank's tokens and another rank's experts.
Views slots_between(StepEmitter& step, const std::string& tensor, int tokens_of, int experts_of) {
  const Shard& s = step.shard();
  const Range experts = share_range(ExpertSizes(step).experts, s.ep, experts_of);
  return step.view(tensor, expert_rows(s, experts, tokens_of), {0, s.hidden});
}

/// The rows of the experts from the normed tokens: a copy, which waits until it is known where they go.
Deps dispatch(StepEmitter& step, const Deps& normed, const Deps& gates, const Retention& keep) {
  const Shard& s = step.shard();
  const Bytes bytes = ExpertSizes(step).slot_bytes(s.hidden);
  return step.vector(0, kept(s.stream_bytes(), keep.layer && !s.gathers()) + Traffic{.scratch = bytes},
                     join(normed, gates),
                     {.kernel = Kernel::dispatch,
                      .reads = step.gathered(norm_name(1)),
                      .writes = own_slots(step, tensors::kExpertInput)},
                     bytes);
}

struct Up {
  Deps all;                ///< every expert's
  std::vector<Deps> each;  ///< by expert of the rank
};

Up up_products(StepEmitter& step, const Deps& arrived, const Retention& keep) {
  const Shard& s = step.shard();
  const ExpertSizes sizes(step);
  Up up;
  for (std::uint64_t expert = s.experts.first; expert < s.experts.end(); ++expert) {
    up.each.push_back(
        linear(step,
               {.weight = Weight::mlp_up,
                .expert = expert,
                .input = step.view(tensors::kExpertInput, expert_rows(s, expert), {0, s.hidden}),
                .input_traffic = kept(sizes.row_bytes(s.hidden), keep.layer),
                .output = tensors::kExpertUp,
                .output_traffic = kept(sizes.row_bytes(s.up_width), keep.layer),
                .result_bytes = sizes.row_bytes(s.up_width)},
               arrived));
    up.all = join(std::move(up.all), up.each.back());
  }
  return up;
}

/// Activation and second product of an expert.
Deps down_product(StepEmitter& step, std::uint64_t expert, const Deps& up, const Retention& keep) {
  const Shard& s = step.shard();
  const ExpertSizes sizes(step);
  const TokenSet rows = expert_rows(s, expert);
  const Views up_views = linear_output(step, Weight::mlp_up, tensors::kExpertUp, rows);
  const Views active = step.view(tensors::kExpertActivated, rows, s.ffn);
  const Deps activated = step.vector(activation_flops(step.model()) * sizes.rows * s.ffn.count,
                                     kept(sizes.row_bytes(s.up_width + s.ffn.count), keep.layer), up,
                                     {.kernel = Kernel::activation, .reads = up_views, .writes = active},
                                     sizes.row_bytes(s.ffn.count));
  if (!keep.layer) step.release(sizes.row_bytes(s.up_width), activated, up_views);
  Deps down = linear(step,
                     {.weight = Weight::mlp_down,
                      .expert = expert,
                      .input = active,
                      .input_traffic = kept(sizes.row_bytes(s.ffn.count), keep.layer),
                      .output = tensors::kExpertOutput,
                      .output_traffic = {.scratch = sizes.row_bytes(s.hidden)},
                      .result_bytes = sizes.row_bytes(s.hidden)},
                     activated);
  if (!keep.layer) step.release(sizes.row_bytes(s.ffn.count), down, active);
  return down;
}

/// The experts' outputs for the rank's tokens, weighed and summed.
Deps combine(StepEmitter& step, const Deps& there, const std::string& sum, const Retention& keep,
             bool accumulate) {
  const Shard& s = step.shard();
  const ExpertSizes sizes(step);
  const Terms terms = linear_output_terms(step, Weight::mlp_down);
  const Views outputs = own_slots(step, tensors::kExpertOutput);
  const Views gates = step.work(tensors::kGates, {0, sizes.choices});
  const Bytes gate_bytes = kGateBytes * sizes.choices * s.tokens;
  Deps summed = step.vector(vector_flops::kCombine * sizes.kept * s.hidden,
                            kept(sizes.slot_bytes(s.hidden) + gate_bytes, keep.layer) +
                                Traffic{.scratch = (accumulate ? 2 : 1) * s.stream_bytes()},
                            there,
                            {.kernel = Kernel::combine,
                             .adds = accumulate,
                             .reads = with_terms(outputs, terms) + gates,
                             .writes = with_terms(step.work(sum), terms)},
                            accumulate ? 0 : s.stream_bytes());
  if (!keep.layer) {
    step.release(sizes.slot_bytes(s.hidden), summed, outputs);
    step.release(gate_bytes, summed, gates);
  }
  return summed;
}

}  // namespace

ExpertSizes::ExpertSizes(const StepEmitter& step)
    : experts(static_cast<std::uint64_t>(step.model().experts)),
      choices(static_cast<std::uint64_t>(step.model().top_k)),
      rows(static_cast<std::uint64_t>(step.shard().ep) * step.shard().expert_slots),
      slots(experts * step.shard().expert_slots),
      element(step.shard().element) {
  // Experts differ by one choice at most, so with fewer slots than that none is left empty.
  kept = std::min(step.shard().tokens * choices, slots);
}

Views own_slots(StepEmitter& step, const std::string& tensor) {
  const Shard& s = step.shard();
  return step.view(tensor, expert_rows(s, Range{0, ExpertSizes(step).experts}, s.rank.ep), {0, s.hidden});
}

Views own_experts(StepEmitter& step, const std::string& tensor, const Range& columns) {
  const Shard& s = step.shard();
  const std::uint64_t rows = ExpertSizes(step).rows;
  return step.view(tensor, {{{s.experts.first * rows, s.experts.count * rows}}, 0}, columns);
}

Deps emit_expert_exchange(StepEmitter& step, ExpertExchange direction, const std::string& tensor,
                          const Deps& after) {
  const int own = step.context().ep.rank;
  const auto to_experts = [&](int rank) { return slots_between(step, tensor, own, rank); };
  const auto to_tokens = [&](int rank) { return slots_between(step, tensor, rank, own); };
  AllToAll exchange{to_experts, to_tokens, step.shard().element};
  if (direction == ExpertExchange::to_tokens) std::swap(exchange.sent, exchange.received);
  return emit_all_to_all(step, step.context().ep, exchange, after);
}

Deps emit_router(StepEmitter& step, const Deps& normed, const Retention& keep) {
  const Shard& s = step.shard();
  const ExpertSizes sizes(step);
  const Region weight = step.layout().router();
  const Views logits = step.local(tensors::kLogits, {0, sizes.experts});
  const Views gates = step.work(tensors::kGates, {0, sizes.choices});
  const Bytes logits_bytes = kGateBytes * sizes.experts * s.local_tokens;
  const Bytes gate_bytes = kGateBytes * sizes.choices;  // of a token
  const Deps scored = step.gemm({1, s.local_tokens, sizes.experts, s.hidden},
                                kept(s.local_stream_bytes(), keep.layer) +
                                    Traffic{.scratch = logits_bytes, .parameters = weight.rows * s.element},
                                normed,
                                {.kernel = Kernel::linear,
                                 .reads = step.local(norm_name(1)) + step.weights({weight}),
                                 .writes = logits},
                                logits_bytes);
  const std::uint64_t flops = sizes.choices * (sizes.experts + vector_flops::kSoftmax);
  const Deps chosen = step.vector(
      flops * s.local_tokens,
      Traffic{.scratch = logits_bytes} + kept(gate_bytes * s.local_tokens, keep.layer), scored,
      {.kernel = Kernel::route, .reads = logits, .writes = step.local(tensors::kGates, {0, sizes.choices})},
      gate_bytes * s.tokens);
  step.release(logits_bytes, chosen, logits);
  if (!s.gathers()) return chosen;
  return step.collective(CollectiveKind::all_gather, step.context().tp,
                         {gate_bytes * s.tokens, sizes.choices * s.tokens, 0, gates}, chosen);
}

ExpertOutput emit_experts(StepEmitter& step, const Deps& normed, const Deps& gates, const std::string& sum,
                          const Retention& keep, const Deps& add_to) {
  const Shard& s = step.shard();
  const ExpertSizes sizes(step);
  const Deps dispatched = dispatch(step, normed, gates, keep);
  const Deps arrived =
      emit_expert_exchange(step, ExpertExchange::to_experts, tensors::kExpertInput, dispatched);
  const Up up = up_products(step, arrived, keep);
  if (!keep.layer) {
    step.release(sizes.slot_bytes(s.hidden), up.all, own_experts(step, tensors::kExpertInput, {0, s.hidden}));
  }
  Deps outputs;
  for (std::uint64_t i = 0; i < s.experts.count; ++i) {
    outputs = join(std::move(outputs), down_product(step, s.experts.first + i, up.each[i], keep));
  }
  const Deps there = emit_expert_exchange(step, ExpertExchange::to_tokens, tensors::kExpertOutput, outputs);
  return {dispatched, combine(step, join(join(there, gates), add_to), sum, keep, !add_to.empty())};
}

Bytes saved_expert_bytes(const models::TransformerSpec& model, const Shard& shard) {
  const std::uint64_t slots = static_cast<std::uint64_t>(model.experts) * shard.expert_slots;
  return slots * (2 * shard.hidden + shard.up_width + shard.ffn.count) * shard.element +
         kGateBytes * static_cast<std::uint64_t>(model.top_k) * shard.tokens;
}

}  // namespace wafersim::workloads
