#include "tests/workloads/numeric/kernels.h"

#include <fmt/format.h>

namespace wafersim::workloads::numeric {

void run_kernel(KernelCall& call) {
  using namespace kernels;
  if (!call.has_rows()) return call.put_gradients([](const ParameterId&) { return 0.0; });
  switch (call.meaning().kernel) {
    case Kernel::memory:
      return external(call);
    case Kernel::norm:
      return norm(call);
    case Kernel::norm_backward:
      return norm_backward(call);
    case Kernel::linear:
      return linear(call);
    case Kernel::linear_input:
      return linear_input(call);
    case Kernel::linear_weight:
      return linear_weight(call);
    case Kernel::bias_gradient:
      return bias_gradient(call);
    case Kernel::logits:
      return logits(call);
    case Kernel::logits_input:
      return logits_input(call);
    case Kernel::logits_weight:
      return logits_weight(call);
    case Kernel::rotary:
      return rotary(call, 1);
    case Kernel::rotary_backward:
      return rotary(call, -1);
    case Kernel::scores:
      return scores(call);
    case Kernel::softmax:
      return softmax(call);
    case Kernel::values:
      return values(call);
    case Kernel::attend:
      return attend(call);
    case Kernel::row_products:
      return row_products(call);
    case Kernel::attend_backward:
      return attend_backward(call);
    case Kernel::value_gradient:
      return value_gradient(call);
    case Kernel::softmax_gradient:
      return softmax_gradient(call);
    case Kernel::score_gradient:
      return score_gradient(call);
    case Kernel::query_gradient:
      return query_gradient(call);
    case Kernel::key_gradient:
      return key_gradient(call);
    case Kernel::activation:
      return activation(call);
    case Kernel::activation_backward:
      return activation_backward(call);
    case Kernel::route:
      return route(call);
    case Kernel::route_backward:
      return route_backward(call);
    case Kernel::dispatch:
      return dispatch(call);
    case Kernel::dispatch_backward:
      return dispatch_backward(call);
    case Kernel::combine:
      return combine(call);
    case Kernel::combine_backward:
      return combine_backward(call);
    case Kernel::residual:
      return residual(call);
    case Kernel::copy:
      return copy(call);
    case Kernel::embed:
      return embed(call, false);
    case Kernel::embed_positions:
      return embed(call, true);
    case Kernel::embed_backward:
    case Kernel::position_gradient:
      return embed_backward(call);
    case Kernel::row_maximum:
      return row_maximum(call);
    case Kernel::row_sum:
      return row_sum(call);
    case Kernel::probabilities:
      return probabilities(call);
    case Kernel::loss_gradient:
      return loss_gradient(call);
    default:
      throw MeaningFault(fmt::format("'{}' is no mathematics", to_string(call.meaning().kernel)));
  }
}

}  // namespace wafersim::workloads::numeric
