#include "workloads/program_builder.h"

#include <utility>

namespace wafersim::workloads {

void ProgramBuilder::start_iteration(int iteration) { iteration_ = static_cast<std::int16_t>(iteration); }

void ProgramBuilder::wait_for(const std::vector<std::uint32_t>& steps) {
  program_.waits.insert(program_.waits.end(), steps.begin(), steps.end());
}

void ProgramBuilder::wait_for_gathers(const std::vector<std::int32_t>& buckets) {
  if (gathers_.empty()) return;
  for (const std::int32_t bucket : buckets) {
    const auto found = gathers_.find(bucket);
    if (found == gathers_.end()) continue;
    program_.waits.push_back(found->second);
    gathers_.erase(found);
  }
}

std::uint32_t ProgramBuilder::add(Step step) {
  step.iteration = iteration_;
  step.first_wait = program_.steps.empty() ? 0 : program_.steps.back().first_wait + program_.steps.back().wait_count;
  step.wait_count = static_cast<std::uint32_t>(program_.waits.size()) - step.first_wait;
  program_.steps.push_back(step);
  return static_cast<std::uint32_t>(program_.steps.size() - 1);
}

void ProgramBuilder::foreground(Step step, const std::vector<std::int32_t>& buckets,
                                const std::vector<std::uint32_t>& more) {
  // Without an optimizer nothing has taken the gradients of the iteration before.
  const bool fresh_iteration = !program_.steps.empty() && program_.steps.back().iteration != iteration_;
  wait_for(last_foreground_);
  wait_for_gathers(buckets);
  wait_for(more);
  if (fresh_iteration) wait_for(std::exchange(syncs_, {}));
  last_foreground_.assign(1, add(step));
}

std::uint32_t ProgramBuilder::gradient_sync(Step step) {
  step.background = true;
  wait_for(last_foreground_);
  return syncs_.emplace_back(add(step));
}

void ProgramBuilder::tied_gradient_sync(Step step) {
  step.background = true;
  wait_for(last_foreground_);
  wait_for(syncs_);
  syncs_.push_back(add(step));
}

void ProgramBuilder::optimizer(Step step) {
  wait_for(last_foreground_);
  wait_for(std::exchange(syncs_, {}));
  last_foreground_.assign(1, add(step));
}

void ProgramBuilder::parameter_gather(Step step) {
  step.background = true;
  wait_for(last_foreground_);
  gathers_[step.layer] = add(step);
}

std::uint32_t ProgramBuilder::prefetch(Step step) {
  step.background = true;
  wait_for(last_foreground_);
  return add(step);
}

Program ProgramBuilder::finish() {
  program_.steps.shrink_to_fit();
  program_.waits.shrink_to_fit();
  return std::exchange(program_, {});
}

}  // namespace wafersim::workloads
