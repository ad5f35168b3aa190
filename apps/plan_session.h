#pragma once

#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "analysis/plan_search.h"
#include "apps/plan_search_options.h"
#include "apps/plan_worker.h"
#include "apps/work_sharing.h"
#include "config/scenario.h"
#include "report/search_report.h"

namespace wafersim::apps {

using Clock = std::chrono::steady_clock;

/// The keys named by --keep, the families named by --baselines. Throw Error with status 2 for others, naming them.
std::set<analysis::PlanKey> kept_keys(const std::vector<std::string>& names);
std::vector<analysis::PlanFamily> baseline_families(const std::vector<std::string>& names);

/// A search for the best plan of a scenario: its wafer and model, everything of its plan that is kept, and the results. Rank 0
/// of a cluster searches, all ranks predict and simulate.
class PlanSession {
 public:
  /// `directory` is that of the results; files of simulations have a folder there that is removed again. The cluster must
  /// outlive this. Throws as models::resolve_hardware does, and PlanError when the routing can deadlock.
  PlanSession(config::Scenario scenario, PlanSearchOptions options, bool progress, const std::filesystem::path& directory,
              Cluster& cluster);
  PlanSession(const PlanSession&) = delete;
  PlanSession& operator=(const PlanSession&) = delete;

  /// Searches all families by predictions, as far as interrupts and the budget let it.
  void search();
  /// Simulates the best of each family: the last thing to be done.
  void confirm();
  /// All that a rank other than the first does.
  ExitStatus serve() { return apps::serve(sharing_); }
  const report::SearchReport& report() const { return report_; }
  /// Throws PlanError that says why no plan of the first family can be run; returns when there is one.
  void require_winner() const;
  /// The scenario with this plan, its mapping and its routing written out, simulated at the fidelity of the scenario (packets
  /// where that is a prediction).
  config::Scenario with_plan(const analysis::PlanPoint& point) const { return apps::with_plan(scenario_, point); }

 private:
  analysis::SearchOptions search_options(std::size_t family, std::size_t families);
  std::optional<Clock::time_point> deadline(double share) const;
  std::vector<std::optional<analysis::PlanVerdict>> predict(const std::vector<analysis::PlanPoint>& points);

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
  PlanWorker worker_;
  WorkSharing sharing_;
};

}  // namespace wafersim::apps
