#include "apps/fitted_models.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "analysis/model_trial.h"
#include "apps/interrupt.h"
#include "apps/prediction.h"
#include "apps/study_runner.h"

namespace wafersim::apps {
namespace {

constexpr std::size_t kLeast = 2 * analysis::kCycleParts;  // answers to fit a model on

analysis::CycleParts parts_of(const analysis::Prediction& prediction) {
  const auto cycles = static_cast<double>(prediction.cycles);
  const analysis::Breakdown& share = prediction.breakdown;
  return {cycles * share.compute, cycles * share.memory_stall, cycles * share.exposed_total(), cycles * share.bubble,
          cycles * share.idle};
}

/// Points that a model has an answer for, every second one.
struct Halves {
  std::vector<std::size_t> training, held_out;
};

Halves halves_of(const report::TrialModel& model) {
  Halves result;
  bool trains = true;
  for (std::size_t i = 0; i < model.answers.size(); ++i) {
    if (!model.answers[i].cycles) continue;
    (trains ? result.training : result.held_out).push_back(i);
    trains = !trains;
  }
  return result;
}

report::TrialAnswer left_out() {
  report::TrialAnswer answer;
  answer.left_out = true;
  return answer;
}

std::unique_ptr<const PreparedRun> prepared(const config::Study& study, const report::TrialPoint& point) {
  return std::make_unique<const PreparedRun>(
      ScenarioArguments{study.scenario, overrides_of(study, study.points[point.number - 1])});
}

}  // namespace

report::TrialAnswer own_answer(const PreparedRun& run, models::CostModel model, const analysis::LinkFactors& factors) {
  const analysis::Prediction prediction = predict(run, model, factors);
  return {static_cast<double>(prediction.cycles), parts_of(prediction), {}};
}

std::optional<report::TrialModel> fitted(const report::Trial& trial, const report::TrialModel& model) {
  const Halves halves = halves_of(model);
  if (halves.training.size() < kLeast) return std::nullopt;
  report::TrialModel result{model.name + ", fitted", model.answers, {}, {}};
  for (report::TrialAnswer& answer : result.answers) {
    if (answer.cycles && !answer.parts) answer.parts = analysis::CycleParts{*answer.cycles};
  }
  std::vector<analysis::CycleParts> parts;
  std::vector<double> simulated;
  for (const std::size_t i : halves.training) {
    parts.push_back(*result.answers[i].parts);
    simulated.push_back(trial.points[i].cycles);
    result.answers[i] = left_out();
  }
  const analysis::CycleParts factors = analysis::fit_factors(parts, simulated);
  for (const std::size_t i : halves.held_out) {
    report::TrialAnswer& answer = result.answers[i];
    answer.cycles = analysis::scaled(*answer.parts, factors);
    for (std::size_t k = 0; k < factors.size(); ++k) (*answer.parts)[k] *= factors[k];
    if (*answer.cycles <= 0) answer = {std::nullopt, std::nullopt, "the fitted factors leave nothing"};
  }
  result.factors = factors;
  return result;
}

std::optional<report::TrialModel> calibrated(const config::Study& study, const report::Trial& trial,
                                             const report::TrialModel& model, models::CostModel own) {
  constexpr std::size_t kMost = 64;
  const Halves halves = halves_of(model);
  if (own == models::CostModel::roofline || halves.training.size() < kLeast) return std::nullopt;
  std::vector<std::pair<std::unique_ptr<const PreparedRun>, double>> training;  // and the simulated cycles
  const std::size_t count = std::min(kMost, halves.training.size());
  for (std::size_t i = 0; i < count; ++i) {
    const report::TrialPoint& point = trial.points[halves.training[i * halves.training.size() / count]];
    training.emplace_back(prepared(study, point), point.cycles);
  }
  const analysis::LinkFactors factors = analysis::fit_link_factors([&](const analysis::LinkFactors& tried) {
    double squares = 0;
    for (const auto& [run, simulated] : training) {
      if (InterruptGuard::interrupted()) return 0.0;
      const double error = *own_answer(*run, own, tried).cycles / simulated - 1;
      squares += error * error;
    }
    return squares;
  });
  report::TrialModel result{model.name + ", calibrated", model.answers, {}, factors};
  for (const std::size_t i : halves.training) result.answers[i] = left_out();
  for (const std::size_t i : halves.held_out) {
    if (InterruptGuard::interrupted()) return std::nullopt;
    result.answers[i] = own_answer(*prepared(study, trial.points[i]), own, factors);
  }
  return result;
}

}  // namespace wafersim::apps
