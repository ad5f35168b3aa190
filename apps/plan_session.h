#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "analysis/plan_search.h"
#include "apps/plan_confirmation.h"
#include "apps/plan_search_options.h"
#include "config/scenario.h"
#include "report/search_report.h"

namespace wafersim::apps {

/// The keys named by --keep, the families named by --baselines. Throw Error with status 2 for others, naming them.
std::set<analysis::PlanKey> kept_keys(const std::vector<std::string>& names);
std::vector<analysis::PlanFamily> baseline_families(const std::vector<std::string>& names);

/// A search for the best plan of a scenario: its wafer and model, everything of its plan that is kept, and the results.
class PlanSession {
 public:
  /// Throws as models::resolve_hardware does, and PlanError when the routing can deadlock.
  PlanSession(config::Scenario scenario, PlanSearchOptions options, bool progress);
  PlanSession(const PlanSession&) = delete;
  PlanSession& operator=(const PlanSession&) = delete;

  /// Searches all families by predictions, as far as interrupts and the budget let it.
  void search();
  /// Simulates the best of each family. `work` is a directory of its own.
  void confirm(const std::filesystem::path& work);
  const report::SearchReport& report() const { return report_; }
  /// Throws PlanError that says why no plan of the first family can be run; returns when there is one.
  void require_winner() const;
  /// The scenario with this plan, its mapping and its routing written out, simulated at the fidelity of the scenario (packets
  /// where that is a prediction).
  config::Scenario with_plan(const analysis::PlanPoint& point) const;

 private:
  analysis::SearchOptions search_options(std::size_t family, std::size_t families) const;
  std::optional<Clock::time_point> deadline(double share) const;
  std::size_t jobs() const;

  const config::Scenario scenario_;
  const PlanSearchOptions options_;
  const std::set<analysis::PlanKey> kept_;
  std::vector<analysis::PlanFamily> families_;
  const bool progress_;
  const Clock::time_point start_ = Clock::now();
  const models::HardwareModel hardware_;
  const topology::Mesh mesh_;
  analysis::PlanPredictor predictor_;
  report::SearchReport report_;
};

}  // namespace wafersim::apps
