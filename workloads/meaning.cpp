#include "workloads/meaning.h"

#include <algorithm>

namespace wafersim::workloads {

const char* to_string(Kernel kernel) {
  switch (kernel) {
    case Kernel::none:
      return "none";
    case Kernel::transfer:
      return "transfer";
    case Kernel::land:
      return "land";
    case Kernel::pass:
      return "pass";
    case Kernel::add:
      return "add";
    case Kernel::maximum:
      return "maximum";
    case Kernel::memory:
      return "memory";
    case Kernel::norm:
      return "norm";
    case Kernel::norm_backward:
      return "norm_backward";
    case Kernel::linear:
      return "linear";
    case Kernel::linear_input:
      return "linear_input";
    case Kernel::linear_weight:
      return "linear_weight";
    case Kernel::bias_gradient:
      return "bias_gradient";
    case Kernel::logits:
      return "logits";
    case Kernel::logits_input:
      return "logits_input";
    case Kernel::logits_weight:
      return "logits_weight";
    case Kernel::rotary:
      return "rotary";
    case Kernel::rotary_backward:
      return "rotary_backward";
    case Kernel::scores:
      return "scores";
    case Kernel::softmax:
      return "softmax";
    case Kernel::values:
      return "values";
    case Kernel::attend:
      return "attend";
    case Kernel::row_products:
      return "row_products";
    case Kernel::attend_backward:
      return "attend_backward";
    case Kernel::value_gradient:
      return "value_gradient";
    case Kernel::softmax_gradient:
      return "softmax_gradient";
    case Kernel::score_gradient:
      return "score_gradient";
    case Kernel::query_gradient:
      return "query_gradient";
    case Kernel::key_gradient:
      return "key_gradient";
    case Kernel::activation:
      return "activation";
    case Kernel::activation_backward:
      return "activation_backward";
    case Kernel::route:
      return "route";
    case Kernel::route_backward:
      return "route_backward";
    case Kernel::dispatch:
      return "dispatch";
    case Kernel::dispatch_backward:
      return "dispatch_backward";
    case Kernel::combine:
      return "combine";
    case Kernel::combine_backward:
      return "combine_backward";
    case Kernel::residual:
      return "residual";
    case Kernel::copy:
      return "copy";
    case Kernel::embed:
      return "embed";
    case Kernel::embed_positions:
      return "embed_positions";
    case Kernel::embed_backward:
      return "embed_backward";
    case Kernel::position_gradient:
      return "position_gradient";
    case Kernel::row_maximum:
      return "row_maximum";
    case Kernel::row_sum:
      return "row_sum";
    case Kernel::probabilities:
      return "probabilities";
    case Kernel::loss_gradient:
      return "loss_gradient";
    case Kernel::accumulate:
      return "accumulate";
    case Kernel::square_sum:
      return "square_sum";
    case Kernel::update:
      return "update";
  }
  return "?";
}

std::uint64_t total_rows(const Views& views) {
  std::uint64_t total = 0;
  for (const View& view : views) total += view.region.rows;
  return total;
}

Views slice_rows(const Views& views, std::uint64_t first, std::uint64_t count) {
  Views result;
  std::uint64_t begin = 0;  // of the view, among all rows
  for (const View& view : views) {
    const std::uint64_t end = begin + view.region.rows;
    const std::uint64_t from = std::max(begin, first), to = std::min(end, first + count);
    if (from < to) {
      View part = view;
      part.region.row += from - begin;
      part.region.rows = to - from;
      result.push_back(part);
    }
    begin = end;
  }
  return result;
}

}  // namespace wafersim::workloads
