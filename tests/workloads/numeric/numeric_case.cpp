#include "tests/workloads/numeric/numeric_case.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "tests/workloads/numeric/ordering.h"

namespace wafersim::workloads::numeric {

namespace {

/// Relative to the number itself, and to the largest of its kind for those that are zero but for rounding.
constexpr double kRelative = 1e-10;
constexpr double kRounding = 1e-13;

double norm_of(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value * value;
  return std::sqrt(sum);
}

bool is_close(double value, double expected, double largest) {
  return std::abs(value - expected) <= kRelative * std::abs(expected) + kRounding * largest;
}

Problem problem_of(const NumericCase& setup) {
  Problem problem;
  problem.model = setup.model;
  problem.sequences = static_cast<std::uint64_t>(setup.training.microbatch);
  problem.microbatches = static_cast<std::uint64_t>(setup.training.microbatches(setup.plan.dp));
  problem.replicas = static_cast<std::uint64_t>(setup.plan.dp);
  problem.largest_norm = setup.largest_norm;
  problem.routing = Routing(setup.model, setup.training, setup.plan);
  return problem;
}

}  // namespace

NumericCase::NumericCase() {
  model = tiny_model();
  training.global_batch = 8;
  training.microbatch = 2;
  training.optimizer = Optimizer::sgd;
}

NumericRun::NumericRun(const NumericCase& setup, const Trace& trace)
    : setup_(setup),
      trace_(trace),
      problem_(problem_of(setup)),
      parameters_(setup.model),
      map_(setup.model, setup.training, setup.plan) {
  final_weights_ = parameters_.initial();
  const topology::Mesh mesh = setup_.mesh();
  FaultList faults(5);
  NumericExecutor executor(trace_, problem_, map_, final_weights_, faults);
  Replay(trace_, mesh, faults, &executor).run();
  faults_ = faults.texts();
  gradients_ = executor.gradients();
  weights_ = executor.weights();
  square_sums_ = executor.square_sums();
  for (int i = 0; i < setup_.training.iterations; ++i) {
    const auto iteration = static_cast<std::uint64_t>(i);
    losses_.push_back(executor.loss(iteration));
    reference_.push_back(Reference(problem_.model, parameters_, final_weights_, problem_.routing)
                             .evaluate({problem_.model, iteration}, problem_.global_batch()));
    if (setup_.training.optimizer == Optimizer::none) {
      for (const BucketValue& each : executor.gradients_left(i)) gradients_.push_back(each);
      continue;
    }
    const double norm = norm_of(reference_.back().gradients);
    const double scale = problem_.largest_norm > 0 ? std::min(1.0, problem_.largest_norm / norm) : 1;
    for (std::size_t p = 0; p < final_weights_.size(); ++p) {
      final_weights_[p] -= problem_.learning_rate * scale * reference_.back().gradients[p];
    }
  }
}

void NumericRun::compare(std::vector<std::string>& wrong, const std::string& what,
                         const std::vector<BucketValue>& values, const std::vector<double>& expected,
                         std::int32_t iteration) const {
  double largest = 0;
  for (const double each : expected) largest = std::max(largest, std::abs(each));
  std::vector<bool> found(expected.size());
  std::size_t off = 0;
  std::string first;
  for (const BucketValue& each : values) {
    if (each.iteration != iteration) continue;
    const ParameterId& id = map_.at(each.layer, each.row);
    const auto index = parameters_.index(each.layer, id);
    const double wanted = index ? expected[*index] : 0;
    if (index) found[*index] = true;
    if (is_close(each.value, wanted, largest)) continue;
    if (off++ > 0) continue;
    first = fmt::format("tile {}, layer {}, part {} ({}, {}): {} instead of {}", each.tile, each.layer,
                        static_cast<int>(id.part), id.row, id.col, each.value, wanted);
  }
  if (off > 0) wrong.push_back(fmt::format("{} {} are wrong: {}", off, what, first));
  const auto missing = std::count(found.begin(), found.end(), false);
  if (missing > 0) wrong.push_back(fmt::format("{} {} are nowhere", missing, what));
}

std::string NumericRun::differences() const {
  std::vector<std::string> wrong = faults_;
  for (std::size_t i = 0; i < reference_.size(); ++i) {
    if (setup_.model.head && !is_close(losses_[i], reference_[i].loss, 0)) {
      wrong.push_back(fmt::format("loss {} instead of {}", losses_[i], reference_[i].loss));
    }
    compare(wrong, fmt::format("gradients of iteration {}", i), gradients_, reference_[i].gradients,
            static_cast<std::int32_t>(i));
  }
  if (setup_.training.optimizer == Optimizer::none) return join(wrong, "\n");
  compare(wrong, "weights", weights_, final_weights_, -1);
  for (const double square : square_sums_) {
    const auto is_norm = [&](const Evaluation& each) {
      return is_close(std::sqrt(square), norm_of(each.gradients), 0);
    };
    if (std::any_of(reference_.begin(), reference_.end(), is_norm)) continue;
    wrong.push_back(
        fmt::format("gradient norm {} instead of {}", std::sqrt(square), norm_of(reference_[0].gradients)));
    break;
  }
  if (setup_.training.clip_grad && square_sums_.empty()) wrong.push_back("no gradient norm");
  return join(wrong, "\n");
}

std::string differences(const NumericCase& setup) { return NumericRun(setup).differences(); }

std::string differences_with(const NumericCase& setup, const std::string& name, Kernel kernel,
                             const std::function<void(Meaning&)>& change) {
  Trace trace = setup.lower().trace;
  for (StepTemplate& each : trace.templates) {
    if (each.name != name) continue;
    for (Op& op : each.ops) {
      Meaning changed = trace.meanings[op.operand.meaning];
      if (changed.kernel != kernel) continue;
      change(changed);
      op.operand.meaning = static_cast<std::uint32_t>(trace.meanings.size());
      trace.meanings.push_back(changed);
      return NumericRun(setup, trace).differences();
    }
  }
  return "";
}

std::string faults(const NumericCase& setup) {
  const Trace trace = setup.lower().trace;
  std::vector<std::string> all = unordered_uses(trace, 3);
  if (std::string text = NumericRun(setup, trace).differences(); !text.empty())
    all.push_back(std::move(text));
  return join(all, "\n");
}

}  // namespace wafersim::workloads::numeric
