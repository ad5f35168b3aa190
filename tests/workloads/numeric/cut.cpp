#include "tests/workloads/numeric/cut.h"

#include <fmt/format.h>

namespace wafersim::workloads::numeric {

NumericCase setup_of(const Cut& cut) {
  NumericCase setup;
  setup.model.attention_kernel = models::AttentionKernel::fused;
  setup.model.attention = models::AttentionMask::causal;
  setup.model.context = setup.model.sequence = 12;
  setup.training.global_batch = 4 * cut.dp;
  setup.training.clip_grad = cut.schedule != PipelineSchedule::zb_h2;
  setup.set_degrees(cut.dp, cut.tp, cut.pp);
  setup.plan.tatp = cut.tatp;
  setup.plan.stream.operand = cut.operand;
  setup.plan.stream.attention = cut.attention;
  setup.plan.sp = cut.sp;
  setup.plan.sp_degree = cut.sp_degree;
  setup.plan.overlap_near = cut.near;
  setup.plan.schedule = cut.schedule;
  setup.plan.zero = cut.zero.value_or(cut.dp > 1 ? 1 : 0);
  return setup;
}

std::string describe(const Cut& cut) {
  return fmt::format("tp {} tatp {} operand {} sp {} x{} dp {} pp {} heads {} near {} zero {} {}", cut.tp, cut.tatp,
                     static_cast<int>(cut.operand), static_cast<int>(cut.sp), cut.sp_degree, cut.dp, cut.pp,
                     cut.attention == StreamAttention::heads, cut.near, cut.zero.value_or(cut.dp > 1 ? 1 : 0),
                     to_string(cut.schedule));
}

}  // namespace wafersim::workloads::numeric
