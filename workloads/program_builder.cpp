#include "workloads/program_builder.h"

#include <utility>

namespace wafersim::workloads {

namespace {

using Waits = std::vector<std::uint32_t>;

Waits join(Waits first, const Waits& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

}  // namespace

void ProgramBuilder::start_iteration(int iteration) { iteration_ = static_cast<std::int16_t>(iteration); }

std::uint32_t ProgramBuilder::add(Step step, Waits waits) {
  step.iteration = iteration_;
  step.first_wait = static_cast<std::uint32_t>(program_.waits.size());
  step.wait_count = static_cast<std::uint32_t>(waits.size());
  program_.waits.insert(program_.waits.end(), waits.begin(), waits.end());
  program_.steps.push_back(step);
  return static_cast<std::uint32_t>(program_.steps.size() - 1);
}

Waits ProgramBuilder::take_gathers(const std::vector<std::int32_t>& buckets) {
  Waits waits;
  for (const std::int32_t bucket : buckets) {
    const auto found = gathers_.find(bucket);
    if (found == gathers_.end()) continue;
    waits.push_back(found->second);
    gathers_.erase(found);
  }
  return waits;
}

void ProgramBuilder::foreground(Step step, const std::vector<std::int32_t>& buckets,
                                const std::vector<std::uint32_t>& more) {
  // Without an optimizer nothing has taken the gradients of the iteration before.
  const bool fresh_iteration = !program_.steps.empty() && program_.steps.back().iteration != iteration_;
  Waits waits = join(join(last_foreground_, take_gathers(buckets)), more);
  if (fresh_iteration) waits = join(std::move(waits), std::exchange(syncs_, {}));
  last_foreground_ = {add(step, std::move(waits))};
}

std::uint32_t ProgramBuilder::gradient_sync(Step step) {
  step.background = true;
  return syncs_.emplace_back(add(step, last_foreground_));
}

void ProgramBuilder::tied_gradient_sync(Step step) {
  step.background = true;
  syncs_.push_back(add(step, join(last_foreground_, syncs_)));
}

void ProgramBuilder::optimizer(Step step) {
  last_foreground_ = {add(step, join(last_foreground_, std::exchange(syncs_, {})))};
}

void ProgramBuilder::parameter_gather(Step step) {
  step.background = true;
  gathers_[step.layer] = add(step, last_foreground_);
}

std::uint32_t ProgramBuilder::prefetch(Step step) {
  step.background = true;
  return add(step, last_foreground_);
}

Program ProgramBuilder::finish() {
  program_.steps.shrink_to_fit();
  program_.waits.shrink_to_fit();
  return std::exchange(program_, {});
}

}  // namespace wafersim::workloads
