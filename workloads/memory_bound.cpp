#include "workloads/memory_bound.h"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "base/error.h"

namespace wafersim::workloads {

namespace {

constexpr std::size_t kAll = kMemoryClasses;

MemorySums communication(Bytes bytes) {
  return sums_of(static_cast<std::size_t>(MemoryClass::communication_buffers), bytes);
}

class BoundBuilder {
 public:
  BoundBuilder(const Trace& trace, const std::vector<std::int32_t>& in_flight, const std::vector<StepMemory>& steps)
      : trace_(trace), in_flight_(in_flight), steps_(steps) {
    bounds_.resize(trace.programs.size());
  }

  /// What tile `binding` may hold at most, statics included.
  TileBound bound(const TileBinding& binding) {
    std::optional<ProgramBound>& known = bounds_[binding.program];
    if (!known) known = bound(trace_.programs[binding.program], binding.stage);
    MemorySums sums = known->sums;
    for (std::size_t c = 0; c < kMemoryClasses; ++c) {
      sums = sums + sums_of(c, trace_.statics[binding.statics].bytes[c]);
    }
    TileBound result{{}, static_cast<Bytes>(sums[kAll]), known->step};
    for (std::size_t c = 0; c < kMemoryClasses; ++c) result.by_class[c] = static_cast<Bytes>(sums[c]);
    return result;
  }

 private:
  struct ProgramBound {
    MemorySums sums{};
    std::int32_t step = -1;  ///< with the largest total
  };

  /// Passes that may be on their way to a stage in a direction: those in flight at the upstream end. From the first
  /// stage upstream is the last, with several chunks; otherwise nothing goes there.
  std::int64_t window(Pass pass, std::int32_t sender_stage) const {
    const auto stages = static_cast<std::int32_t>(in_flight_.size());
    const std::int32_t upstream = pass == Pass::forward ? sender_stage : sender_stage - 1;
    return in_flight_[static_cast<std::size_t>((upstream + stages) % stages)];
  }

  /// Background steps of one microbatch, which a later step of the model waits for: what they may hold until then.
  class Pending {
   public:
    void add(std::uint32_t step, const StepMemory& memory) {
      open_.emplace(step, &memory);
      held_ = held_ + memory.peak;
      early_ = std::max(early_, memory.early_of_all);
      most_ = std::max(most_, open_.size());
    }
    /// Returns by how much a step that waits for `step` finds the level changed.
    MemorySums end(std::uint32_t step) {
      const auto found = open_.find(step);
      if (found == open_.end()) return {};
      const StepMemory& memory = *found->second;
      held_ = held_ + times(memory.peak, -1);
      open_.erase(found);
      return memory.change;
    }
    const MemorySums& held() const { return held_; }
    /// Peers take part in the same steps, so they can be ahead by a few more than are open here.
    Bytes early() const { return most_ == 0 ? 0 : (most_ + kStepsAhead) * early_; }

   private:
    static constexpr Bytes kStepsAhead = 3;
    std::map<std::uint32_t, const StepMemory*> open_;
    MemorySums held_{};
    Bytes early_ = 0;
    std::size_t most_ = 0;
  };

  ProgramBound bound(const Program& program, std::int32_t stage) const {
    std::int32_t fullest = -1;
    MemorySums level{}, highest{}, unsent_forward{}, unsent_backward{};
    std::array<MemorySums, 2> background{};
    Bytes early = 0, forward_receives = 0, backward_receives = 0;
    Pending pending;
    for (std::uint32_t number = 0; number < program.steps.size(); ++number) {
      const Step& step = program.steps[number];
      const StepMemory& each = steps_[step.step_template];
      if (step.background) {
        if (step.microbatch >= 0) {
          pending.add(number, each);
          continue;
        }
        if (step.iteration > 0) continue;
        MemorySums& open = background[step.kind == StepKind::gradient_sync ? 0 : 1];
        open = open + each.peak + communication(each.early_of_all);
        continue;
      }
      for (std::uint32_t i = 0; i < step.wait_count; ++i) {
        level = level + pending.end(program.waits[step.first_wait + i]);
      }
      const MemorySums most = level + each.peak + pending.held();
      if (fullest < 0 || most[kAll] > highest[kAll]) fullest = static_cast<std::int32_t>(number);
      highest = largest(highest, most);
      level = level + each.change;
      const bool forward = step.pass == Pass::forward;
      MemorySums& unsent = forward ? unsent_forward : unsent_backward;
      unsent = largest(unsent, each.detached_free);
      early = std::max(early, each.early_of_one);
      Bytes& receives = forward ? forward_receives : backward_receives;
      receives = std::max(receives, each.pipeline_receives);
    }
    MemorySums total = highest + largest(background[0], background[1]) + communication(2 * early + pending.early());
    total = total + times(unsent_forward, window(Pass::forward, stage));
    total = total + times(unsent_backward, window(Pass::backward, stage));
    total = total + times(communication(forward_receives), window(Pass::forward, stage - 1));
    total = total + times(communication(backward_receives), window(Pass::backward, stage + 1));
    return {total, fullest};
  }

  const Trace& trace_;
  const std::vector<std::int32_t>& in_flight_;
  const std::vector<StepMemory>& steps_;  ///< by template
  std::vector<std::optional<ProgramBound>> bounds_;  ///< by program
};

}  // namespace

std::vector<TileBound> bound_tiles(const Trace& trace, const std::vector<std::int32_t>& in_flight) {
  return bound_tiles(trace, in_flight, step_memories(trace));
}

std::vector<TileBound> bound_tiles(const Trace& trace, const std::vector<std::int32_t>& in_flight,
                                   const std::vector<StepMemory>& steps) {
  BoundBuilder builder(trace, in_flight, steps);
  std::vector<TileBound> result;
  for (const TileBinding& binding : trace.tiles) result.push_back(builder.bound(binding));
  return result;
}

}  // namespace wafersim::workloads
