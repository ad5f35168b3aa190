#include "analysis/plan_evaluator.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"

namespace wafersim::analysis {

using workloads::Pass;
using workloads::PipelineSchedule;
using workloads::ScheduleSlot;
using workloads::Step;
using workloads::StepKind;

namespace {

std::size_t number(Pass pass) { return pass == Pass::forward ? 0 : pass == Pass::backward ? 1 : 2; }

bool of_the_model(const Step& step) { return !step.background && step.kind != StepKind::optimizer; }

/// Recompute steps belong to the backward pass.
Pass pass_of(const Step& step) { return step.pass == Pass::recompute ? Pass::backward : step.pass; }

}  // namespace

PlanEvaluator::PlanEvaluator(const CostInput& input) : trace_(input.trace), schedule_(input.plan.schedule), costs_(input) {
  if (input.plan.virtual_stages > 1)
    throw PlanError("plan.virtual_stages: plans with chunks have no variants to evaluate; valid: 1");
  if (trace_.iterations != 1) throw PlanError("training.iterations: variants are of one iteration; valid: 1");
  if (trace_.microbatches < trace_.pipeline_stages) {
    throw PlanError(
        fmt::format("{} microbatches on {} stages: a plan whose variants are evaluated has a microbatch for each stage",
                    trace_.microbatches, trace_.pipeline_stages));
  }
  for (int stage = 0; stage < trace_.pipeline_stages; ++stage) stages_.push_back(slots_of(stage));
  outside_ = predict(costs_, trace_).cycles - pipeline(trace_.microbatches, schedule_);
}

PlanEvaluator::StageSlots PlanEvaluator::slots_of(int stage) {
  const std::vector<Step>& steps = costs_.program_of(stage).steps;
  std::vector<std::pair<Pass, Span>> spans;  // in the order of the program
  std::int32_t microbatch = -1;
  for (std::uint32_t i = 0; i < steps.size(); ++i) {
    if (!of_the_model(steps[i])) continue;
    const Pass pass = pass_of(steps[i]);
    if (spans.empty() || spans.back().first != pass || microbatch != steps[i].microbatch) spans.push_back({pass, {i, i, true}});
    spans.back().second.last = i;
    microbatch = steps[i].microbatch;
  }
  StageSlots slots;
  for (const Pass pass : {Pass::forward, Pass::backward, Pass::weight}) {
    // The last of its kind: in a pipeline at work.
    const auto found = std::find_if(spans.begin(), spans.end(), [pass](const auto& span) { return span.first == pass; });
    if (found == spans.end()) continue;
    Slot& slot = slots[number(pass)];
    const Span& span = found->second;
    Cycle rest = 0;
    std::uint32_t before = span.first;
    for (std::uint32_t i = span.first + 1; i <= span.last; ++i) {
      if (!of_the_model(steps[i])) continue;
      rest += costs_.foreground(stage, i, before).after;
      before = i;
    }
    const ForegroundCost& first = costs_.foreground(stage, span.first, std::nullopt);
    slot.waits = first.waits;
    slot.late = first.late + rest;
    slot.sent = costs_.foreground(stage, span.last, std::nullopt).sent;
    slot.after.back() = first.alone + rest;
    for (const Pass earlier : {Pass::forward, Pass::backward, Pass::weight}) {
      slot.after[number(earlier)] = first_after(stage, spans, earlier, pass) + rest;
    }
  }
  return slots;
}

/// The first step of a pass behind another pass: as the program has it, or else played for the purpose.
Cycle PlanEvaluator::first_after(int stage, const std::vector<std::pair<Pass, Span>>& spans, Pass before, Pass pass) {
  const Span* last_before = nullptr;
  const Span* own = nullptr;
  for (std::size_t i = 0; i < spans.size(); ++i) {
    if (i > 0 && spans[i - 1].first == before && spans[i].first == pass) {
      return costs_.foreground(stage, spans[i].second.first, spans[i - 1].second.last).after;
    }
    if (spans[i].first == before) last_before = &spans[i].second;
    if (spans[i].first == pass) own = &spans[i].second;
  }
  if (last_before == nullptr || own == nullptr) return 0;
  return costs_.pair(stage, last_before->last, own->first);
}

const std::vector<std::vector<ScheduleSlot>>& PlanEvaluator::orders(std::int32_t microbatches, PipelineSchedule schedule) {
  const auto [found, fresh] = orders_.try_emplace({microbatches, schedule});
  if (fresh) {
    const workloads::PipelineShape shape{schedule, trace_.pipeline_stages, microbatches, 1};
    for (int stage = 0; stage < shape.stages; ++stage) found->second.push_back(workloads::schedule_order(shape, stage));
  }
  return found->second;
}

/// The end of the last slot.
Cycle PlanEvaluator::pipeline(std::int32_t microbatches, PipelineSchedule schedule) {
  struct At {
    std::size_t next = 0;
    Cycle end = 0;
    std::size_t before = kPasses;
  };
  const std::vector<std::vector<ScheduleSlot>>& order = orders(microbatches, schedule);
  const std::size_t stages = stages_.size(), count = static_cast<std::size_t>(microbatches);
  forward_there_.assign(stages * count, kNever);
  backward_there_.assign(stages * count, kNever);
  std::vector<At> at(stages);
  Cycle last = 0;
  for (bool moved = true; moved;) {
    moved = false;
    for (std::size_t stage = 0; stage < stages; ++stage) {
      At& here = at[stage];
      for (; here.next < order[stage].size(); ++here.next) {
        const ScheduleSlot& turn = order[stage][here.next];
        const auto microbatch = static_cast<std::size_t>(turn.microbatch);
        const std::size_t pass = number(turn.pass);
        const Slot& slot = stages_[stage][pass];
        Cycle arrival = 0;
        if (slot.waits) {
          arrival = (pass == 0 ? forward_there_ : backward_there_)[stage * count + microbatch];
          if (arrival == kNever) break;
        }
        Cycle end = here.end + slot.after[here.before];
        if (slot.waits) end = std::max(end, arrival + slot.late);
        here.end = end;
        here.before = pass;
        const auto there = static_cast<Cycle>(static_cast<std::int64_t>(end) + slot.sent);
        if (pass == 0 && stage + 1 < stages) forward_there_[(stage + 1) * count + microbatch] = there;
        if (pass == 1 && stage > 0) backward_there_[(stage - 1) * count + microbatch] = there;
        moved = true;
      }
      last = std::max(last, here.end);
    }
  }
  for (std::size_t stage = 0; stage < stages; ++stage) {
    require_invariant(at[stage].next == order[stage].size(), "the slots of a schedule wait for each other");
  }
  return last;
}

Cycle PlanEvaluator::cycles(std::int32_t microbatches, PipelineSchedule schedule) {
  if (microbatches < 1) throw PlanError(fmt::format("{} microbatches; at least 1", microbatches));
  if (workloads::splits_backward(schedule) != workloads::splits_backward(schedule_) ||
      schedule == PipelineSchedule::interleaved) {
    throw PlanError(fmt::format("'{}' is no variant of '{}'", workloads::to_string(schedule), workloads::to_string(schedule_)));
  }
  return pipeline(microbatches, schedule) + outside_;
}

}  // namespace wafersim::analysis
