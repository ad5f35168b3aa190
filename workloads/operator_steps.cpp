#include "workloads/operator_steps.h"

#include <algorithm>
#include <utility>

#include "workloads/lowering.h"
#include "workloads/plan_ranks.h"
#include "workloads/reshard_step.h"

namespace wafersim::workloads {

namespace {

void emit(StepEmitter& step, const OperatorStep& wanted, models::Recompute recompute) {
  switch (wanted.what) {
    case OperatorStep::What::forward:
      return emit_operator_forward(step, wanted.of);
    case OperatorStep::What::backward:
      return emit_operator_backward(step, wanted.of, recompute);
    case OperatorStep::What::reshard:
      break;
  }
  step.enter(wanted.of);
  const Deps made =
      step.hold(step.shard().local_stream_bytes(), {}, {.kernel = Kernel::memory, .writes = step.local("middle")});
  const Deps moved = emit_reshard(step, wanted.to, "middle", 0, Source::freed, made);
  step.release(step.shard().local_stream_bytes(), moved, step.local("middle"));
}

const char* name_of(OperatorStep::What what) {
  switch (what) {
    case OperatorStep::What::forward:
      return "operator.forward";
    case OperatorStep::What::backward:
      return "operator.backward";
    case OperatorStep::What::reshard:
      break;
  }
  return "reshard";
}

/// Resident memory and quotas of the first tile of the whole plan, as those of all tiles.
void place(Trace& trace, const LoweringInput& input, const Mapping& mapping) {
  trace.statics.emplace_back();
  if (input.hardware.dram_capacity == 0) return;
  const Trace whole = lower_stages(input, mapping, {});
  const TileId first_tile = mapping.tile({});
  const auto first = std::find_if(whole.tiles.begin(), whole.tiles.end(),
                                  [first_tile](const TileBinding& each) { return each.tile == first_tile; });
  trace.statics.back().bytes = whole.statics[first->statics].bytes;
  trace.layouts.back() = whole.layouts[first->layout];
}

}  // namespace

Trace lower_operator_steps(const LoweringInput& input, const Mapping& mapping, const std::vector<OperatorStep>& steps) {
  Trace trace;
  const PlanRanks plan(input, mapping);
  place(trace, input, mapping);
  for (const Ranks& ranks : plan.all()) {
    if (ranks.pp != 0 || ranks.dp != 0 || ranks.ep != 0) continue;
    Program program;
    for (std::size_t i = 0; i < steps.size(); ++i) {
      StepEmitter step(trace, name_of(steps[i].what), plan.context(ranks));
      emit(step, steps[i], input.training.recompute);
      program.steps.push_back({.step_template = step.finish(), .layer = static_cast<std::int32_t>(i)});
    }
    TileBinding binding;
    binding.tile = plan.tile(ranks);
    binding.program = static_cast<std::uint32_t>(trace.programs.size());
    binding.first_peer = static_cast<std::uint32_t>(trace.peers.size());
    const std::vector<TileId> peers = plan.peers(ranks);
    trace.peers.insert(trace.peers.end(), peers.begin(), peers.end());
    binding.peer_count = static_cast<std::uint32_t>(peers.size());
    trace.programs.push_back(std::move(program));
    trace.tiles.push_back(binding);
  }
  std::sort(trace.tiles.begin(), trace.tiles.end(), [](const TileBinding& a, const TileBinding& b) { return a.tile < b.tile; });
  return trace;
}

}  // namespace wafersim::workloads
