#include "apps/plan_confirmation.h"

#include <nlohmann/json.hpp>

#include "apps/child_processes.h"
#include "apps/interrupt.h"
#include "report/atomic_file.h"
#include "report/csv_table.h"
#include "report/run_directory.h"

namespace wafersim::apps {
namespace {

namespace fs = std::filesystem;

struct Place {
  fs::path scenario, run, log;
};

Place place_of(const fs::path& work, std::uint64_t number) {
  const std::string name = std::to_string(number);
  return {work / (name + ".yaml"), work / name, work / (name + ".log")};
}

void record(Confirmation& confirmation, const Place& place, int status) {
  if (status != 0) {
    confirmation.fault = error_of(place.log, status);
    return;
  }
  const auto summary = nlohmann::json::parse(report::read_file(place.run / report::kSummaryFile));
  confirmation.cycles = summary.at("cycles").get<Cycle>();
  const auto& energy = summary.at("energy");
  if (!energy.is_null()) confirmation.joules = energy.at("total_joules").get<double>();
}

/// Removes it however the simulations end.
struct WorkDirectory {
  explicit WorkDirectory(fs::path where) : path(std::move(where)) {
    fs::remove_all(path);
    fs::create_directories(path);
  }
  ~WorkDirectory() {
    std::error_code ignored;
    fs::remove_all(path, ignored);
  }
  WorkDirectory(const WorkDirectory&) = delete;
  WorkDirectory& operator=(const WorkDirectory&) = delete;
  const fs::path path;
};

}  // namespace

void simulate_all(std::vector<Confirmation>& confirmations, const fs::path& work, std::size_t jobs,
                  std::optional<Clock::time_point> deadline) {
  const WorkDirectory directory(work);
  ChildProcesses children;
  std::size_t next = 0;
  std::vector<bool> ended(confirmations.size(), false);
  const auto late = [&] { return InterruptGuard::interrupted() || (deadline && Clock::now() >= *deadline); };
  while (!late() && (next < confirmations.size() || children.running() != 0)) {
    while (next < confirmations.size() && children.running() < jobs) {
      const Place place = place_of(directory.path, next);
      report::write_file(place.scenario, config::to_yaml(confirmations[next].scenario));
      children.start(next++, {"run", place.scenario.string(), "-o", place.run.string(), "--quiet"}, place.log);
    }
    if (const auto child = children.wait()) {
      record(confirmations[child->number], place_of(directory.path, child->number), child->status);
      ended[child->number] = true;
    }
  }
  children.interrupt();
  while (children.running() != 0) children.wait();
  for (std::size_t i = 0; i < confirmations.size(); ++i) {
    if (!ended[i]) confirmations[i].fault = InterruptGuard::interrupted() ? "interrupted" : "out of the time of --budget";
  }
}

}  // namespace wafersim::apps
