#include "sim/step_recorder.h"

#include <algorithm>

namespace wafersim::sim {

StepRecorder::StepRecorder(const workloads::Trace& trace, bool keep_steps)
    : keep_steps_(keep_steps), iterations_(static_cast<std::size_t>(std::max(trace.iterations, 1))) {
  for (const workloads::TileBinding& binding : trace.tiles) {
    for (const workloads::Step& step : trace.programs[binding.program].steps) {
      ++iterations_.at(static_cast<std::size_t>(step.iteration)).steps;
    }
  }
  for (Iteration& iteration : iterations_) iteration.steps_left = iteration.steps;
  if (!keep_steps) return;
  for (const workloads::TileBinding& binding : trace.tiles) {
    const auto group = static_cast<std::size_t>(binding.group);
    if (group >= groups_.size()) groups_.resize(group + 1);
    const std::size_t steps = trace.programs[binding.program].steps.size();
    if (groups_[group].size() < steps) groups_[group].resize(steps);
  }
}

void StepRecorder::record(const workloads::TileBinding& binding, std::uint32_t index, const workloads::Step& step,
                          const StepTimes& times) {
  Iteration& iteration = iterations_[static_cast<std::size_t>(step.iteration)];
  --iteration.steps_left;
  iteration.end = std::max(iteration.end, times.done);
  if (!keep_steps_) return;
  Sum& sum = groups_[static_cast<std::size_t>(binding.group)][index];
  StepMeasurement& m = sum.measurement;
  const Cycle duration = times.done - times.opened;
  if (m.tiles == 0) {
    m = {binding.group, binding.stage, index, step.kind, step.pass, step.layer, step.microbatch, step.iteration,
         times.opened, kNever, times.done, duration, duration, 0.0, 0};
  }
  m.start = std::min(m.start, times.opened);
  m.first_compute = std::min(m.first_compute, times.first_compute);
  m.end = std::max(m.end, times.done);
  m.shortest = std::min(m.shortest, duration);
  m.longest = std::max(m.longest, duration);
  ++m.tiles;
  sum.total += duration;
}

void StepRecorder::copy_first_replica(int replicas, int stages) {
  for (Iteration& iteration : iterations_) {
    iteration.steps_left = iteration.steps - (iteration.steps - iteration.steps_left) * static_cast<std::uint64_t>(replicas);
  }
  if (!keep_steps_) return;
  const auto first = static_cast<std::size_t>(stages);
  for (std::size_t group = first; group < groups_.size(); ++group) {
    const std::vector<Sum>& done = groups_[group % first];
    for (std::size_t i = 0; i < std::min(done.size(), groups_[group].size()); ++i) {
      if (done[i].measurement.tiles == 0) continue;
      groups_[group][i] = done[i];
      groups_[group][i].measurement.group = static_cast<std::int32_t>(group);
    }
  }
}

std::vector<Cycle> StepRecorder::iteration_ends() const {
  std::vector<Cycle> ends;
  for (const Iteration& iteration : iterations_) {
    if (iteration.steps_left != 0) break;
    ends.push_back(iteration.end);
  }
  return ends;
}

Cycle StepRecorder::last_end() const {
  Cycle end = 0;
  for (const Iteration& iteration : iterations_) end = std::max(end, iteration.end);
  return end;
}

std::vector<StepMeasurement> StepRecorder::take_steps() {
  std::vector<StepMeasurement> out;
  for (std::vector<Sum>& group : groups_) {
    for (Sum& sum : group) {
      if (sum.measurement.tiles == 0) continue;  // not reached in a partial run
      sum.measurement.mean = static_cast<double>(sum.total) / sum.measurement.tiles;
      out.push_back(sum.measurement);
    }
  }
  groups_.clear();
  return out;
}

}  // namespace wafersim::sim
