#include "apps/plan_session.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <map>

#include "apps/interrupt.h"
#include "apps/prepared_run.h"
#include "base/error.h"
#include "base/text.h"

namespace wafersim::apps {

using analysis::PlanFamily;
using analysis::PlanKey;
using analysis::SearchedPlan;
using analysis::SearchResult;

namespace {

/// Shares of a budget after which the outer and the inner level end; the rest is for simulations.
constexpr double kOuterShare = 0.5;
constexpr double kInnerShare = 0.65;

template <class Value>
Value one_of(const char* option, const std::string& word, const std::vector<std::pair<std::string, Value>>& valid) {
  std::vector<std::string> words;
  for (const auto& [name, value] : valid) {
    if (name == word) return value;
    words.push_back(name);
  }
  const std::string near = nearest(word, words);
  throw Error(ExitStatus::scenario, fmt::format("{}: '{}' is unknown;{} valid: {}", option, word,
                                                near.empty() ? "" : fmt::format(" did you mean '{}'?", near), join(words)));
}

config::Scenario resolved(config::Scenario scenario) {
  // What is found is confirmed by simulations.
  if (scenario.network.fidelity == models::Fidelity::analytic) scenario.network.fidelity = models::Fidelity::packet;
  return scenario;
}

analysis::PlanGround ground_of(const config::Scenario& scenario, const models::HardwareModel& hardware,
                               const topology::Mesh& mesh) {
  const bool free_messages = hardware.fidelity == models::Fidelity::ideal;
  return {scenario.model,
          scenario.placement,
          hardware,
          mesh,
          free_messages ? models::CostModel::roofline : models::CostModel::alpha_beta_contention,
          scenario.seed,
          [](const workloads::LoweringInput& input, const workloads::Trace& trace) { return make_routes(input, trace).policy; },
          [](const workloads::LoweringInput& input) { return choose_mapping(input).plan; }};
}

/// One line on standard error, in place, where that is a terminal.
class SearchProgress {
 public:
  SearchProgress(bool wanted, PlanFamily family, const Frequency& clock)
      : shown_(wanted && ::isatty(STDERR_FILENO) != 0), family_(family), clock_(clock) {}
  ~SearchProgress() {
    if (shown_) std::fputs("\r\033[K", stderr);
  }
  SearchProgress(const SearchProgress&) = delete;
  SearchProgress& operator=(const SearchProgress&) = delete;

  void update(std::size_t done, std::size_t all, const SearchedPlan* best) const {
    if (!shown_) return;
    std::string text = "none fits yet";
    if (best != nullptr) {
      const double seconds = static_cast<double>(best->verdict.cycles) / clock_.hertz.to_double();
      text = fmt::format("best {}: {}", human_seconds(seconds), analysis::plan_text(best->point));
    }
    const std::string line = fmt::format("{}: {} of {} plans, {}", to_string(family_), done, all, text);
    fmt::print(stderr, "\r\033[K{}", line.substr(0, 119));
    std::fflush(stderr);
  }

 private:
  bool shown_;
  PlanFamily family_;
  Frequency clock_;
};

}  // namespace

std::set<PlanKey> kept_keys(const std::vector<std::string>& names) {
  std::vector<std::pair<std::string, PlanKey>> valid;
  for (const PlanKey key : analysis::plan_keys()) valid.emplace_back(to_string(key), key);
  std::set<PlanKey> keys;
  for (const std::string& name : names) keys.insert(one_of("--keep", name, valid));
  return keys;
}

std::vector<PlanFamily> baseline_families(const std::vector<std::string>& names) {
  std::vector<std::pair<std::string, PlanFamily>> valid;
  for (const PlanFamily family : {PlanFamily::megatron, PlanFamily::megatron_sp, PlanFamily::fsdp}) {
    valid.emplace_back(to_string(family), family);
  }
  std::vector<PlanFamily> families;
  for (const std::string& name : names) {
    const PlanFamily family = one_of("--baselines", name, valid);
    if (std::find(families.begin(), families.end(), family) == families.end()) families.push_back(family);
  }
  return families;
}

PlanSession::PlanSession(config::Scenario scenario, PlanSearchOptions options, bool progress,
                         const std::filesystem::path& directory, Cluster& cluster)
    : scenario_(resolved(std::move(scenario))),
      options_(std::move(options)),
      kept_(kept_keys(options_.kept)),
      families_(baseline_families(options_.baselines)),
      progress_(progress),
      hardware_(models::resolve_hardware(scenario_.wafer, scenario_.router, scenario_.network)),
      mesh_(models::mesh_spec(scenario_.wafer)),
      predictor_(ground_of(scenario_, hardware_, mesh_)),
      report_{scenario_.name,
              hardware_.clock,
              mesh_,
              predictor_.capacity(),
              static_cast<std::uint64_t>(scenario_.training.global_batch * scenario_.model.sequence *
                                         scenario_.training.iterations),
              {},
              kept_.empty(),
              false,
              std::vector<report::RankShare>(static_cast<std::size_t>(cluster.size()))},
      worker_(scenario_, predictor_, jobs_of_rank(options_.jobs, cluster), directory, cluster.rank()),
      sharing_(cluster, worker_, jobs_of_rank(options_.jobs, cluster)) {
  families_.insert(families_.begin(), PlanFamily::all);
}

std::optional<Clock::time_point> PlanSession::deadline(double share) const {
  if (options_.budget_seconds <= 0) return std::nullopt;
  return start_ + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(share * options_.budget_seconds));
}

analysis::SearchOptions PlanSession::search_options(std::size_t family, std::size_t families) {
  analysis::SearchOptions options;
  options.most_plans = options_.most_plans;
  options.finalists = std::max<std::size_t>(2 * options_.top, 1);
  options.seed = options_.seed.value_or(scenario_.seed);
  options.predict = [this](const std::vector<analysis::PlanPoint>& points) { return predict(points); };
  if (options_.operators && families_[family] == PlanFamily::all) {
    options.divide = [this](const analysis::PlanPoint& point) { return predictor_.divided(point); };
  }
  const double share = kInnerShare / static_cast<double>(families);
  const auto stop_at = [this](double at) {
    return [end = deadline(at)] { return InterruptGuard::interrupted() || (end && Clock::now() >= *end); };
  };
  options.stop_outer = stop_at(share * (static_cast<double>(family) + kOuterShare / kInnerShare));
  options.stop_inner = stop_at(share * (static_cast<double>(family) + 1));
  return options;
}

void PlanSession::search() {
  for (std::size_t i = 0; i < families_.size(); ++i) {
    const analysis::PlanSpace space(
        {scenario_.model, {scenario_.plan, scenario_.training, scenario_.router.routing}, mesh_, families_[i], kept_});
    analysis::SearchOptions options = search_options(i, families_.size());
    const SearchProgress progress(progress_, families_[i], hardware_.clock);
    options.progress = [&](std::size_t done, std::size_t all, const SearchedPlan* best) { progress.update(done, all, best); };
    const bool mappings = !kept_.contains(PlanKey::mapping), routings = !kept_.contains(PlanKey::routing);
    report_.searches.push_back(search_plans(space, families_[i], mappings, routings, predictor_, options));
  }
  report_.interrupted = InterruptGuard::interrupted();
}

std::vector<std::optional<analysis::PlanVerdict>> PlanSession::predict(const std::vector<analysis::PlanPoint>& points) {
  std::vector<std::optional<analysis::PlanVerdict>> verdicts;
  std::vector<std::uint64_t> numbers;
  std::map<std::uint64_t, std::size_t> asked;  // for which points
  for (const analysis::PlanPoint& point : points) {
    verdicts.push_back(predictor_.recall(point));
    if (verdicts.back()) continue;
    numbers.push_back(worker_.add(PlanWorker::Kind::predict, point));
    asked[numbers.back()] = verdicts.size() - 1;
  }
  const auto record = [&](int rank, const Worker::Ended& ended) {
    const std::size_t i = asked.at(ended.number);
    verdicts[i] = verdict_of(ended.outcome);
    predictor_.remember(points[i], *verdicts[i]);
    ++report_.shares[static_cast<std::size_t>(rank)].predicted;
  };
  // A budget is asked for between batches.
  sharing_.run(numbers, record, [] { return false; });
  return verdicts;
}

void PlanSession::confirm() {
  std::map<std::string, std::uint64_t> known;  // by text of the scenario: families share plans
  std::vector<std::uint64_t> numbers;
  std::vector<std::pair<report::FoundPlan, std::uint64_t>> asked;
  for (std::size_t s = 0; s < report_.searches.size(); ++s) {
    std::vector<std::size_t> best = report_.searches[s].ranking();
    if (best.size() > options_.top) best.resize(options_.top);
    for (const std::size_t plan : best) {
      const analysis::PlanPoint& point = report_.searches[s].plans[plan].point;
      const auto [found, fresh] = known.emplace(config::to_json(with_plan(point)), 0);
      if (fresh) numbers.push_back(found->second = worker_.add(PlanWorker::Kind::simulate, point));
      asked.push_back({{s, plan}, found->second});
    }
  }
  std::map<std::uint64_t, report::PointOutcome> outcomes;
  const auto record = [&](int rank, const Worker::Ended& ended) {
    outcomes[ended.number] = ended.outcome;
    ++report_.shares[static_cast<std::size_t>(rank)].simulated;
  };
  const std::optional<Clock::time_point> end = deadline(1);
  sharing_.run(numbers, record, [&] { return end && Clock::now() >= *end; });
  const std::string unfinished = InterruptGuard::interrupted() ? "interrupted" : "out of the time of --budget";
  for (const auto& [found, number] : asked) {
    SearchedPlan& plan = report_.searches[found.search].plans[found.plan];
    const auto outcome = outcomes.find(number);
    plan.simulation_fault = outcome == outcomes.end() ? unfinished : outcome->second.message;
    if (outcome == outcomes.end()) continue;
    plan.simulated = cycles_of(outcome->second);
    plan.simulated_joules = joules_of(outcome->second);
  }
  report_.interrupted = report_.interrupted || InterruptGuard::interrupted();
}

void PlanSession::require_winner() const {
  if (report::winner(report_)) return;
  const SearchResult& search = report_.searches.front();
  if (report_.interrupted) throw Error(ExitStatus::interrupted, "interrupted before a plan was found that fits");
  if (search.space == 0) {
    throw PlanError(fmt::format("no plan for {} on {} is valid: {}", scenario_.model.name, topology::to_string(mesh_.shape()),
                                search.first_fault.empty() ? "no degrees of its axes can be laid out" : search.first_fault));
  }
  const std::string room =
      fmt::format("{} of a tile (wafer.sram.capacity, wafer.dram.capacity)", human_bytes(report_.capacity));
  if (search.plans.empty()) {
    const bool none_looked_at = search.too_large < search.space;
    throw PlanError(none_looked_at
                        ? fmt::format("--budget {} s ended before any plan was looked at", options_.budget_seconds)
                        : fmt::format("none of {} valid plans fits: parameters, gradients and optimizer states alone exceed {}",
                                      human_count(search.space), room));
  }
  const SearchedPlan* nearest_fit = nullptr;
  for (const SearchedPlan& plan : search.plans) {
    if (plan.verdict.outcome != analysis::PlanVerdict::Outcome::does_not_fit) continue;
    if (nearest_fit == nullptr || plan.verdict.memory.peak_bytes < nearest_fit->verdict.memory.peak_bytes) nearest_fit = &plan;
  }
  if (nearest_fit == nullptr) throw PlanError(fmt::format("no plan can be run: {}", search.plans.front().verdict.fault));
  throw PlanError(fmt::format("none of {} plans that were looked at fits {}; the smallest, {}: {}",
                              human_count(search.plans.size()), room, analysis::plan_text(nearest_fit->point),
                              report::reason_of(report_, *nearest_fit)));
}

}  // namespace wafersim::apps
