#pragma once

#include <condition_variable>
#include <deque>
#include <exception>
#include <map>
#include <mutex>
#include <stop_token>
#include <thread>
#include <utility>

#include "analysis/plan_predictor.h"
#include "apps/child_processes.h"
#include "apps/work_sharing.h"
#include "config/scenario.h"

namespace wafersim::apps {

/// The scenario with this plan and routing.
config::Scenario with_plan(config::Scenario scenario, const analysis::PlanPoint& point);

/// Of the outcome of a prediction, every field; of that of a simulation, its cycles and its energy: nothing when there are none.
analysis::PlanVerdict verdict_of(const report::PointOutcome& outcome);
std::optional<Cycle> cycles_of(const report::PointOutcome& outcome);
std::optional<double> joules_of(const report::PointOutcome& outcome);

/// Predicts plans of a scenario on threads, and simulates them in processes of their own.
class PlanWorker : public Worker {
 public:
  enum class Kind { predict, simulate };

  /// Scenario and predictor must outlive this. Files of simulations lie in `directory`, in a folder for this rank.
  PlanWorker(const config::Scenario& scenario, analysis::PlanPredictor& predictor, std::size_t threads,
             const std::filesystem::path& directory, int rank);
  /// Waits for predictions that are being made.
  ~PlanWorker() override;

  /// A new piece of work. Returns its number, ascending.
  std::uint64_t add(Kind kind, analysis::PlanPoint point);

  std::string hand_over(std::uint64_t number) override;
  void take_over(std::uint64_t number, const std::string& text) override;
  void start(std::uint64_t number) override;
  std::size_t running() const override { return predicting_ + children_.running(); }
  /// Throws what a prediction has thrown that is no verdict.
  std::optional<Ended> wait() override;
  void interrupt() override;

 private:
  struct Piece {
    Kind kind = Kind::predict;
    analysis::PlanPoint point;
  };
  struct Predicted {
    std::uint64_t number = 0;
    analysis::PlanVerdict verdict;
    std::exception_ptr failure;
  };

  std::filesystem::path file_of(std::uint64_t number, const char* ending) const;
  Piece take(std::uint64_t number);
  void predict(const std::stop_token& stop);
  std::optional<Ended> wait_for_simulation();

  const config::Scenario& scenario_;
  analysis::PlanPredictor& predictor_;
  const std::size_t threads_;
  const WorkFolder work_;
  std::map<std::uint64_t, Piece> pieces_;  ///< not yet started
  std::uint64_t last_ = 0;
  ChildProcesses children_;
  std::size_t predicting_ = 0;  ///< asked of the threads and not yet seen by wait()

  std::mutex mutex_;  ///< of the two queues
  std::condition_variable_any asked_, answered_;
  std::deque<std::pair<std::uint64_t, analysis::PlanPoint>> questions_;
  std::deque<Predicted> answers_;
  std::vector<std::jthread> predictors_;  ///< end before what they use
};

}  // namespace wafersim::apps
