#include "workloads/plan_words.h"

namespace wafersim::workloads {

const char* to_string(SequenceParallel sp) {
  switch (sp) {
    case SequenceParallel::none:
      return "none";
    case SequenceParallel::megatron:
      return "megatron";
    case SequenceParallel::ulysses:
      return "ulysses";
    case SequenceParallel::ring:
      return "ring";
  }
  return "?";
}

const char* to_string(models::Recompute recompute) {
  switch (recompute) {
    case models::Recompute::none:
      return "none";
    case models::Recompute::selective:
      return "selective";
    case models::Recompute::full:
      return "full";
  }
  return "?";
}

}  // namespace wafersim::workloads
