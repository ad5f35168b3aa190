#include "report/search_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/text.h"
#include "report/check_report.h"
#include "report/csv_row.h"
#include "report/text_table.h"
#include "workloads/plan_words.h"

namespace wafersim::report {
namespace {

using analysis::PlanVerdict;
using analysis::SearchedPlan;
using analysis::SearchResult;

constexpr std::size_t kShown = 10;

const char* outcome_word(const SearchedPlan& plan) {
  if (plan.simulated) return "simulated";
  switch (plan.verdict.outcome) {
    case PlanVerdict::Outcome::predicted:
      return "predicted";
    case PlanVerdict::Outcome::does_not_fit:
      return "does_not_fit";
    case PlanVerdict::Outcome::refused:
      return "refused";
  }
  return "?";
}

double seconds(const SearchReport& report, Cycle cycles) {
  return static_cast<double>(cycles) / report.clock.hertz.to_double();
}

std::string time_text(const SearchReport& report, const std::optional<Cycle>& cycles) {
  return cycles ? human_seconds(seconds(report, *cycles)) : "-";
}

std::string joules_text(const std::optional<double>& joules) { return joules ? human_unit(*joules, "J") : "-"; }

/// Empty where there is none.
std::string joules_cell(const std::optional<double>& joules) { return joules ? fmt::format("{}", *joules) : ""; }

bool other_routing(const SearchResult& search, const SearchedPlan& plan) {
  return plan.point.routing != search.plans[plan.base].point.routing;
}

std::string placed_text(const SearchResult& search, const SearchedPlan& plan) {
  std::string text = analysis::mapping_text(plan.point.plan);
  if (other_routing(search, plan)) text += ", routing " + plan.point.routing;
  return text == "default" ? "" : text;
}

/// Distinct plans, those that were simulated first, in the order of their times.
std::vector<std::size_t> shown_plans(const SearchResult& search) {
  std::vector<std::size_t> order = search.ranking();
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    const SearchedPlan &left = search.plans[a], &right = search.plans[b];
    if (left.simulated.has_value() != right.simulated.has_value()) return left.simulated.has_value();
    return left.simulated && *left.simulated < *right.simulated;
  });
  if (order.size() > kShown) order.resize(kShown);
  return order;
}

std::vector<std::string> plan_row(const SearchReport& report, const SearchedPlan& plan) {
  const double predicted = static_cast<double>(plan.verdict.cycles);
  std::string error = "-";
  if (plan.simulated) error = fmt::format("{:+.2f} %", 100 * (predicted / static_cast<double>(*plan.simulated) - 1));
  const double rate = static_cast<double>(report.tokens) / seconds(report, cycles_of(plan));
  std::vector<std::string> row{analysis::plan_text(plan.point),
                               time_text(report, plan.simulated),
                               time_text(report, plan.verdict.cycles),
                               error,
                               human_count(static_cast<std::uint64_t>(rate)),
                               human_bytes(plan.verdict.memory.peak_bytes)};
  if (energy_modelled(report)) row.push_back(joules_text(plan.simulated_joules ? plan.simulated_joules : plan.verdict.joules));
  return row;
}

std::string fastest_text(const SearchReport& report) {
  const SearchResult& search = report.searches.front();
  Table table{{"plan", "simulated", "predicted", "error", "tokens/s", "memory"}};
  if (energy_modelled(report)) table.front().push_back("energy");
  std::vector<std::string> places;
  for (const std::size_t number : shown_plans(search)) {
    table.push_back(plan_row(report, search.plans[number]));
    places.push_back(placed_text(search, search.plans[number]));
  }
  std::string text, lines = aligned(table, 1);
  std::size_t row = 0, begin = 0;
  for (std::size_t end = lines.find('\n'); end != std::string::npos; end = lines.find('\n', begin), ++row) {
    text += lines.substr(begin, end + 1 - begin);
    if (row > 0 && !places[row - 1].empty()) text += "      mapping: " + places[row - 1] + "\n";
    begin = end + 1;
  }
  return text;
}

std::string baselines_text(const SearchReport& report) {
  const std::optional<FoundPlan> best = winner(report);
  if (report.searches.size() < 2 || !best) return {};
  Table table{{"baseline", "plan", "simulated", "predicted", "gain"}};
  for (std::size_t s = 1; s < report.searches.size(); ++s) {
    const SearchResult& search = report.searches[s];
    const std::optional<FoundPlan> own = best_of(report, s);
    if (!own) {
      const std::string why = search.space == 0      ? "no valid plan"
                              : search.plans.empty() ? (search.whole ? "all too large" : "not looked at")
                                                     : "none of its plans fits";
      table.push_back({to_string(search.family), why, "-", "-", "-"});
      continue;
    }
    const SearchedPlan& plan = at(report, *own);
    const double gain = static_cast<double>(cycles_of(plan)) / static_cast<double>(cycles_of(at(report, *best)));
    table.push_back({to_string(search.family), analysis::plan_text(plan.point), time_text(report, plan.simulated),
                     time_text(report, plan.verdict.cycles), fmt::format("{:.2f} x", gain)});
  }
  return "\nThe best plan against baselines that were searched in the same way\n" + aligned(table, 2);
}

std::string front_text(const SearchReport& report) {
  const std::vector<std::size_t> front = pareto_front(report);
  if (front.size() < 2) return {};
  const bool energy = energy_modelled(report);
  Table table{{"plan", "predicted", "memory"}};
  if (energy) table.front().push_back("energy");
  for (std::size_t i = 0; i < std::min(kShown, front.size()); ++i) {
    const SearchedPlan& plan = report.searches.front().plans[front[i]];
    table.push_back(
        {analysis::plan_text(plan.point), time_text(report, plan.verdict.cycles), human_bytes(plan.verdict.memory.peak_bytes)});
    if (energy) table.back().push_back(joules_text(plan.verdict.joules));
  }
  std::string text = fmt::format("\nFaster for more memory{}: the Pareto front\n", energy ? " or energy" : "");
  text += aligned(table, 1);
  if (front.size() > kShown) text += fmt::format("  and {} more in {}\n", front.size() - kShown, kSearchTable);
  return text;
}

std::string counts_text(const SearchResult& search) {
  std::size_t outer = 0, fit = 0, placed = 0, simulated = 0;
  for (std::size_t i = 0; i < search.plans.size(); ++i) {
    const SearchedPlan& plan = search.plans[i];
    const bool own = plan.base == i;
    outer += own ? 1 : 0;
    placed += own ? 0 : 1;
    fit += own && plan.fits() ? 1 : 0;
    simulated += plan.simulated ? 1 : 0;
  }
  return fmt::format(
      "{} valid plans, {} too large at sight, {} looked at{}, {} of them fit, {} other mappings or routes, {} simulated",
      human_count(search.space), human_count(search.too_large), human_count(outer), search.whole ? " (all others)" : "",
      human_count(fit), human_count(placed), simulated);
}

std::string share_text(const std::vector<RankShare>& shares, std::size_t RankShare::*count, const char* what) {
  std::size_t all = 0, least = shares.front().*count, most = least;
  for (const RankShare& share : shares) {
    all += share.*count;
    least = std::min(least, share.*count);
    most = std::max(most, share.*count);
  }
  return fmt::format("{} {}, {} to {} each", human_count(all), what, human_count(least), human_count(most));
}

std::string shares_text(const std::vector<RankShare>& shares) {
  if (shares.size() < 2) return {};
  return fmt::format("Shared by {} ranks: {}; {}\n", shares.size(), share_text(shares, &RankShare::predicted, "predictions"),
                     share_text(shares, &RankShare::simulated, "simulations"));
}

}  // namespace

const SearchedPlan& at(const SearchReport& report, const FoundPlan& found) {
  return report.searches[found.search].plans[found.plan];
}

Cycle cycles_of(const SearchedPlan& plan) { return plan.simulated.value_or(plan.verdict.cycles); }

std::optional<FoundPlan> best_of(const SearchReport& report, std::size_t search) {
  const std::vector<SearchedPlan>& plans = report.searches[search].plans;
  std::optional<FoundPlan> best;
  const auto better = [](const SearchedPlan& a, const SearchedPlan& b) {
    if (a.simulated.has_value() != b.simulated.has_value()) return a.simulated.has_value();
    return cycles_of(a) < cycles_of(b);
  };
  for (std::size_t i = 0; i < plans.size(); ++i) {
    if (plans[i].fits() && (!best || better(plans[i], plans[best->plan]))) best = FoundPlan{search, i};
  }
  return best;
}

std::optional<FoundPlan> winner(const SearchReport& report) {
  std::optional<FoundPlan> best = best_of(report, 0);
  if (!report.baselines_compete) return best;
  for (std::size_t s = 1; s < report.searches.size(); ++s) {
    const std::optional<FoundPlan> other = best_of(report, s);
    if (!other || (best && at(report, *best).simulated && !at(report, *other).simulated)) continue;
    if (!best || cycles_of(at(report, *other)) < cycles_of(at(report, *best))) best = other;
  }
  return best;
}

std::string reason_of(const SearchReport& report, const SearchedPlan& plan) {
  switch (plan.verdict.outcome) {
    case PlanVerdict::Outcome::predicted:
      return plan.simulation_fault;
    case PlanVerdict::Outcome::does_not_fit: {
      const auto& overflow = plan.verdict.memory.overflow;
      return overflow_text(plan.verdict.memory, overflow ? report.mesh.name(overflow->tile) : "");
    }
    case PlanVerdict::Outcome::refused:
      return plan.verdict.fault;
  }
  return {};
}

double measure_of(const SearchedPlan& plan, PlanMeasure measure) {
  switch (measure) {
    case PlanMeasure::time:
      return static_cast<double>(plan.verdict.cycles);
    case PlanMeasure::memory:
      return static_cast<double>(plan.verdict.memory.peak_bytes);
    case PlanMeasure::energy:
      return plan.verdict.joules.value_or(0);
  }
  return 0;
}

bool energy_modelled(const SearchReport& report) {
  const std::vector<SearchedPlan>& plans = report.searches.front().plans;
  return std::any_of(plans.begin(), plans.end(), [](const SearchedPlan& plan) { return plan.fits() && plan.verdict.joules; });
}

std::vector<std::size_t> pareto_front(const SearchReport& report, std::span<const PlanMeasure> measures) {
  const std::vector<SearchedPlan>& plans = report.searches.front().plans;
  const auto key = [&](std::size_t i) {
    std::vector<double> values;
    for (const PlanMeasure measure : measures) values.push_back(measure_of(plans[i], measure));
    return values;
  };
  std::vector<std::pair<std::vector<double>, std::size_t>> order;
  for (std::size_t i = 0; i < plans.size(); ++i) {
    if (plans[i].fits()) order.emplace_back(key(i), i);
  }
  std::sort(order.begin(), order.end());
  // In this order only those before can be at least as good in everything, and one of these that is itself on the front.
  std::vector<std::pair<std::vector<double>, std::size_t>> front;
  for (const auto& [values, number] : order) {
    const bool beaten = std::any_of(front.begin(), front.end(), [&own = values](const auto& other) {
      return std::equal(own.begin(), own.end(), other.first.begin(), [](double a, double b) { return b <= a; });
    });
    if (!beaten) front.emplace_back(values, number);
  }
  std::vector<std::size_t> numbers;
  for (const auto& [values, number] : front) numbers.push_back(number);
  return numbers;
}

std::vector<std::size_t> pareto_front(const SearchReport& report) {
  constexpr std::array kAll{PlanMeasure::time, PlanMeasure::memory, PlanMeasure::energy};
  return pareto_front(report, std::span(kAll).first(energy_modelled(report) ? 3 : 2));
}

std::string search_csv(const SearchReport& report) {
  std::string text =
      "plan,search,base,dp,ep,tp,tatp,operators,sp,sp_degree,pp,schedule,virtual_stages,zero,recompute,microbatch,mapping,"
      "routing,tiles,outcome,"
      "peak_bytes,capacity_bytes,predicted_cycles,simulated_cycles,predicted_joules,simulated_joules,pareto,reason\n";
  const std::vector<std::size_t> front = pareto_front(report);
  std::size_t first = 1;
  for (std::size_t s = 0; s < report.searches.size(); ++s) {
    const SearchResult& search = report.searches[s];
    for (std::size_t i = 0; i < search.plans.size(); ++i) {
      const SearchedPlan& plan = search.plans[i];
      const workloads::PlanSpec& spec = plan.point.plan;
      const bool refused = plan.verdict.outcome == PlanVerdict::Outcome::refused;
      const bool on_front = s == 0 && std::find(front.begin(), front.end(), i) != front.end();
      text += fmt::format("{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}\n", first + i,
                          to_string(search.family), first + plan.base, spec.dp, spec.ep, spec.tp, spec.tatp,
                          csv_cell(analysis::operators_text(spec)), workloads::to_string(spec.sp), spec.sp_degree, spec.pp, workloads::to_string(spec.schedule),
                          spec.virtual_stages, spec.zero, workloads::to_string(plan.point.training.recompute),
                          plan.point.training.microbatch, csv_cell(analysis::mapping_text(spec)), plan.point.routing,
                          spec.tiles_used(), outcome_word(plan), refused ? "" : std::to_string(plan.verdict.memory.peak_bytes),
                          report.capacity, plan.fits() ? std::to_string(plan.verdict.cycles) : "",
                          plan.simulated ? std::to_string(*plan.simulated) : "", joules_cell(plan.verdict.joules),
                          joules_cell(plan.simulated_joules), on_front ? 1 : 0,
                          csv_cell(reason_of(report, plan)));
    }
    first += search.plans.size();
  }
  return text;
}

std::string search_text(const SearchReport& report) {
  std::string text = fmt::format("{}: {}\n", report.name, counts_text(report.searches.front()));
  text += shares_text(report.shares);
  if (report.interrupted) text += "Interrupted: the best of what was looked at until then\n";
  if (!winner(report)) return text;
  return text + "\n" + fastest_text(report) + baselines_text(report) + front_text(report);
}

}  // namespace wafersim::report
