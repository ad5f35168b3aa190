#include "report/advice_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "report/csv_row.h"
#include "report/text_table.h"
#include "workloads/plan_words.h"

namespace wafersim::report {
namespace {

using Json = nlohmann::ordered_json;

/// Where the table of the paper on tensor streams draws its lines (arXiv 2512.14256): 6 to 70 B and 70 to 200 B parameters; its
/// long sequences begin at 8192 tokens.
constexpr std::uint64_t kLargeModel = 60'000'000'000;  // llama2-70b has 69 B
constexpr std::uint64_t kLongSequence = 8192;

std::string parameters_text(std::uint64_t count) {
  const bool billions = count >= 1'000'000'000;
  return fmt::format("{:.3g} {}", static_cast<double>(count) / (billions ? 1e9 : 1e6), billions ? "B" : "M");
}

std::string time_text(const AdviceCell& cell) { return cell.best ? human_seconds(cell.seconds) : "-"; }

std::vector<std::string> row_of(const Advice& advice, const AdviceCell& cell) {
  std::string plan = "none: " + cell.fault;
  if (cell.best) plan = analysis::plan_text(cell.best->point);
  constexpr std::size_t kMost = 100;
  if (plan.size() > kMost) plan = plan.substr(0, kMost) + "...";
  const double rate = cell.seconds > 0 ? static_cast<double>(cell.batch * cell.sequence) / cell.seconds : 0;
  const bool simulated = cell.best && cell.best->simulated;
  return {plan,
          parameters_text(cell.parameters),
          cell.model,
          std::to_string(cell.sequence),
          std::to_string(cell.batch),
          time_text(cell) + (advice.confirmed && cell.best && !simulated ? " (predicted)" : ""),
          human_count(static_cast<std::uint64_t>(rate)),
          cell.best ? human_bytes(cell.best->verdict.memory.peak_bytes) : "-"};
}

}  // namespace

std::string advice_text(const Advice& advice) {
  std::string text = fmt::format("The best plans on {}, {} tokens in an iteration, times {}\n", advice.wafer,
                                 human_count(advice.tokens), advice.confirmed ? "simulated" : "predicted");
  for (const bool large : {false, true}) {
    for (const bool longer : {false, true}) {
      Table table{{"plan", "parameters", "model", "sequence", "batch", "iteration", "tokens/s", "memory"}};
      for (const AdviceCell& cell : advice.cells) {
        if ((cell.parameters >= kLargeModel) == large && (cell.sequence >= kLongSequence) == longer)
          table.push_back(row_of(advice, cell));
      }
      if (table.size() == 1) continue;
      text += fmt::format("\n{}, {}\n{}", large ? "Models of 60 B parameters and more" : "Models below 60 B parameters",
                          longer ? "long sequences (8192 tokens and more)" : "short sequences", aligned(table, 1));
    }
  }
  return text;
}

std::string advice_csv(const Advice& advice) {
  std::string text =
      "model,parameters,sequence,batch,dp,ep,tp,tatp,sp,sp_degree,pp,schedule,virtual_stages,zero,recompute,microbatch,mapping,"
      "routing,"
      "peak_bytes,predicted_cycles,simulated_cycles,seconds,fault\n";
  for (const AdviceCell& cell : advice.cells) {
    text += fmt::format("{},{},{},{}", cell.model, cell.parameters, cell.sequence, cell.batch);
    if (!cell.best) {
      text += fmt::format(",,,,,,,,,,,,,,,,,,,{}\n", csv_cell(cell.fault));
      continue;
    }
    const analysis::SearchedPlan& best = *cell.best;
    const workloads::PlanSpec& plan = best.point.plan;
    text += fmt::format(",{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{:.9g},\n", plan.dp, plan.ep, plan.tp, plan.tatp,
                        workloads::to_string(plan.sp), plan.sp_degree, plan.pp, workloads::to_string(plan.schedule),
                        plan.virtual_stages, plan.zero, workloads::to_string(best.point.training.recompute),
                        best.point.training.microbatch, csv_cell(analysis::mapping_text(plan)), best.point.routing,
                        best.verdict.memory.peak_bytes, best.verdict.cycles,
                        best.simulated ? std::to_string(*best.simulated) : "", cell.seconds);
  }
  return text;
}

std::string advice_json(const Advice& advice) {
  Json cells = Json::array();
  for (const AdviceCell& cell : advice.cells) {
    Json json = {
        {"model", cell.model}, {"parameters", cell.parameters}, {"sequence", cell.sequence}, {"global_batch", cell.batch}};
    json["fault"] = cell.fault.empty() ? Json(nullptr) : Json(cell.fault);
    if (cell.best) {
      const analysis::SearchedPlan& best = *cell.best;
      const workloads::PlanSpec& plan = best.point.plan;
      json["seconds"] = cell.seconds;
      json["predicted_cycles"] = best.verdict.cycles;
      json["simulated_cycles"] = best.simulated ? Json(*best.simulated) : Json(nullptr);
      json["peak_bytes"] = best.verdict.memory.peak_bytes;
      json["plan"] = {{"dp", plan.dp},
                      {"ep", plan.ep},
                      {"tp", plan.tp},
                      {"tatp", plan.tatp},
                      {"sp", workloads::to_string(plan.sp)},
                      {"sp_degree", plan.sp_degree},
                      {"pp", plan.pp},
                      {"schedule", workloads::to_string(plan.schedule)},
                      {"virtual_stages", plan.virtual_stages},
                      {"zero", plan.zero},
                      {"recompute", workloads::to_string(best.point.training.recompute)},
                      {"microbatch", best.point.training.microbatch},
                      {"mapping", analysis::mapping_text(plan)},
                      {"routing", best.point.routing}};
    }
    cells.push_back(std::move(json));
  }
  const Json json = {{"wafer", advice.wafer}, {"tokens", advice.tokens}, {"confirmed", advice.confirmed}, {"cells", cells}};
  return json.dump(2) + "\n";
}

}  // namespace wafersim::report
