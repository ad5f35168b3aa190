#pragma once

#include <optional>
#include <string>

#include "tests/workloads/numeric/numeric_case.h"

namespace wafersim::workloads::numeric {

/// The ranks of a layer, and what else a plan has that cuts tokens.
struct Cut {
  int tp = 1;
  int tatp = 1;
  SequenceParallel sp = SequenceParallel::none;
  int sp_degree = 1;
  int dp = 1;
  int pp = 1;
  StreamAttention attention = StreamAttention::stream_kv;
  int near = 1;
  PipelineSchedule schedule = PipelineSchedule::one_f_one_b;
  std::optional<int> zero{};  ///< otherwise 1 with replicas
  StreamOperand operand = StreamOperand::weights;
};

/// A fused causal model of 12 positions under that plan.
NumericCase setup_of(const Cut& cut);
std::string describe(const Cut& cut);

}  // namespace wafersim::workloads::numeric
