#include "report/trial_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "base/error.h"
#include "base/text.h"
#include "report/csv_row.h"

namespace wafersim::report {
namespace {

using analysis::CyclePart;
using analysis::CycleParts;
using Json = nlohmann::ordered_json;

/// Predictions of a model beside simulations, where it has some.
struct Compared {
  std::vector<double> predicted, simulated;
  std::vector<std::size_t> group;
};

template <class Take>
Compared compared(const Trial& trial, const TrialModel& model, const Take& take) {
  Compared result;
  for (std::size_t i = 0; i < trial.points.size(); ++i) {
    if (!model.answers[i].cycles || !take(trial.points[i])) continue;
    result.predicted.push_back(*model.answers[i].cycles);
    result.simulated.push_back(trial.points[i].cycles);
    result.group.push_back(trial.points[i].group);
  }
  return result;
}

std::string load_class(const TrialPoint& point) {
  if (point.link_load < 0.1) return "below 10 %";
  if (point.link_load < 0.3) return "10 to 30 %";
  return point.link_load < 0.6 ? "30 to 60 %" : "above 60 %";
}

std::string queue_class(const TrialPoint& point) {
  if (point.queueing < 0.01) return "below 0.01";
  if (point.queueing < 0.1) return "0.01 to 0.1";
  return point.queueing < 1 ? "0.1 to 1" : "above 1";
}

std::string message_class(const TrialPoint& point) {
  if (!point.message_bytes) return "unknown";
  constexpr double kKib = 1024;
  if (*point.message_bytes < 4 * kKib) return "below 4 KiB";
  if (*point.message_bytes < 32 * kKib) return "4 to 32 KiB";
  return *point.message_bytes < 256 * kKib ? "32 to 256 KiB" : "above 256 KiB";
}

std::string setting(const TrialPoint& point, const std::string& key) {
  for (const auto& [name, value] : point.settings) {
    if (name == key) return value;
  }
  return {};
}

std::string percent_text(double value) { return fmt::format("{:.2f} %", 100 * value); }

Json statistics_json(const analysis::ErrorStatistics& errors) {
  return {{"points", errors.points}, {"mape", errors.mape}, {"median", errors.median}, {"p95", errors.p95},
          {"max", errors.worst},     {"bias", errors.bias}, {"r2", errors.r2},         {"kendall_tau", errors.tau}};
}

Json choices_json(const analysis::ChoiceStatistics& choices) {
  return {{"groups", choices.groups},
          {"best_picked", choices.best_picked},
          {"regret", choices.regret},
          {"worst_regret", choices.worst_regret},
          {"top3_regret", choices.top3_regret}};
}

}  // namespace

CycleParts cycle_parts(const std::string& text) {
  const auto json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  const auto number = [](const nlohmann::json& block, const char* key) {
    if (!block.is_object() || !block.contains(key) || !block[key].is_number()) {
      throw IoError(fmt::format("a result has no number '{}'", key));
    }
    return block[key].get<double>();
  };
  const double cycles = number(json, "cycles");
  const nlohmann::json breakdown = json.value("breakdown", nlohmann::json());
  CycleParts parts{};
  for (const CyclePart part : {CyclePart::compute, CyclePart::memory_stall, CyclePart::bubble, CyclePart::idle}) {
    parts[static_cast<std::size_t>(part)] = cycles * number(breakdown, analysis::to_string(part));
  }
  const nlohmann::json exposed = breakdown.value("exposed_communication", nlohmann::json());
  for (const auto& [axis, share] : exposed.items()) {
    if (share.is_number()) parts[static_cast<std::size_t>(CyclePart::communication)] += cycles * share.get<double>();
  }
  return parts;
}

TrialPoint trial_point(const std::string& summary) {
  TrialPoint point;
  point.parts = cycle_parts(summary);
  const auto json = nlohmann::json::parse(summary);
  point.cycles = json["cycles"].get<double>();
  point.bound = "compute";
  double most = 0.02;  // less is nothing to speak of
  for (const auto& [axis, share] : json["breakdown"]["exposed_communication"].items()) {
    if (share.get<double>() > most) point.bound = axis, most = share.get<double>();
  }
  const auto network = json.value("network", nlohmann::json());
  if (!network.is_object() || !network.contains("hotspots") || network["hotspots"].empty()) return point;
  const auto& hottest = network["hotspots"][0];
  point.link_load = network["max_link_utilization"].get<double>();
  const double busy = hottest["utilization"].get<double>() * point.cycles;
  if (busy > 0 && hottest["queue_cycles"].is_number()) point.queueing = hottest["queue_cycles"].get<double>() / busy;
  return point;
}

TrialScores scores(const Trial& trial, const TrialModel& model) {
  const Compared all = compared(trial, model, [](const TrialPoint&) { return true; });
  TrialScores result{analysis::error_statistics(all.predicted, all.simulated),
                     analysis::choice_statistics(all.predicted, all.simulated, all.group), 0};
  for (const TrialAnswer& answer : model.answers) result.faults += answer.cycles || answer.left_out ? 0 : 1;
  return result;
}

std::vector<TrialClass> classes(const Trial& trial, const TrialModel& model) {
  std::vector<TrialClass> result;
  const auto add = [&](const std::string& by, const auto& value_of) {
    std::set<std::string> values;
    for (const TrialPoint& point : trial.points) values.insert(value_of(point));
    if (values.size() < 2) return;
    for (const std::string& value : values) {
      const Compared some = compared(trial, model, [&](const TrialPoint& point) { return value_of(point) == value; });
      if (!some.predicted.empty()) result.push_back({by, value, analysis::error_statistics(some.predicted, some.simulated)});
    }
  };
  add("exposed most", [](const TrialPoint& point) { return point.bound; });
  add("message size", message_class);
  add("hottest link", load_class);
  add("queueing at it", queue_class);
  std::set<std::string> keys;
  for (const TrialPoint& point : trial.points) {
    for (const auto& [key, value] : point.settings) keys.insert(key);
  }
  for (const std::string& key : keys) {
    add(key, [&key](const TrialPoint& point) { return setting(point, key); });
  }
  return result;
}

std::vector<TrialFailure> worst_points(const Trial& trial, const TrialModel& model, std::size_t count) {
  std::vector<TrialFailure> all;
  for (std::size_t i = 0; i < trial.points.size(); ++i) {
    if (model.answers[i].cycles) all.push_back({i, *model.answers[i].cycles / trial.points[i].cycles - 1, {}, 0, 0});
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const TrialFailure& a, const TrialFailure& b) { return std::abs(a.error) > std::abs(b.error); });
  if (all.size() > count) all.resize(count);
  for (TrialFailure& failure : all) {
    const auto& parts = model.answers[failure.point].parts;
    if (!parts) continue;
    double most = -1;
    for (std::size_t k = 0; k < analysis::kCycleParts; ++k) {
      const double off = std::abs((*parts)[k] - trial.points[failure.point].parts[k]);
      if (off <= most) continue;
      most = off;
      failure.part = static_cast<CyclePart>(k);
      failure.part_predicted = (*parts)[k];
      failure.part_simulated = trial.points[failure.point].parts[k];
    }
  }
  return all;
}

std::string trial_points_csv(const Trial& trial) {
  std::set<std::string> keys;
  for (const TrialPoint& point : trial.points) {
    for (const auto& [key, value] : point.settings) keys.insert(key);
  }
  std::string text = "point";
  for (const std::string& key : keys) text += fmt::format(",{}", key);
  text += ",bound,link_load,queueing,message_bytes,simulated";
  for (const TrialModel& model : trial.models) text += fmt::format(",{0},{0} error,{0} fault", csv_cell(model.name));
  text += "\n";
  for (std::size_t i = 0; i < trial.points.size(); ++i) {
    const TrialPoint& point = trial.points[i];
    text += std::to_string(point.number);
    for (const std::string& key : keys) text += fmt::format(",{}", csv_cell(setting(point, key)));
    text += fmt::format(",{},{:.4f},{:.4f},{},{}", point.bound, point.link_load, point.queueing,
                        point.message_bytes ? fmt::format("{:.0f}", *point.message_bytes) : "", point.cycles);
    for (const TrialModel& model : trial.models) {
      const TrialAnswer& answer = model.answers[i];
      if (answer.cycles) {
        text += fmt::format(",{:.10g},{:.6f},", *answer.cycles, *answer.cycles / point.cycles - 1);
      } else {
        text += fmt::format(",,,{}", csv_cell(answer.left_out ? "used for fitting" : answer.fault));
      }
    }
    text += "\n";
  }
  return text;
}

std::string trial_models_csv(const Trial& trial) {
  std::string text =
      "model,points,faults,mape,median,p95,max,bias,r2,kendall_tau,groups,best_picked,regret,worst_regret,top3_regret\n";
  for (const TrialModel& model : trial.models) {
    const TrialScores of = scores(trial, model);
    const auto& [points, mape, median, p95, worst, bias, r2, tau] = of.errors;
    const auto& choices = of.choices;
    text += fmt::format("{},{},{},{:.6f},{:.6f},{:.6f},{:.6f},{:.6f},{:.6f},{:.6f},{},{:.6f},{:.6f},{:.6f},{:.6f}\n",
                        csv_cell(model.name), points, of.faults, mape, median, p95, worst, bias, r2, tau, choices.groups,
                        choices.best_picked, choices.regret, choices.worst_regret, choices.top3_regret);
  }
  return text;
}

std::string trial_json(const Trial& trial) {
  Json json;
  json["wafersim_version"] = WAFERSIM_VERSION;
  json["name"] = trial.name;
  json["points"] = trial.points.size();
  json["failed_points"] = trial.failed_points;
  Json models = Json::array();
  for (const TrialModel& model : trial.models) {
    const TrialScores of = scores(trial, model);
    Json entry{{"name", model.name},
               {"faults", of.faults},
               {"errors", statistics_json(of.errors)},
               {"choices", choices_json(of.choices)},
               {"factors", nullptr},
               {"link_factors", nullptr}};
    if (model.factors) {
      Json factors = Json::object();
      for (std::size_t k = 0; k < analysis::kCycleParts; ++k) {
        factors[analysis::to_string(static_cast<CyclePart>(k))] = (*model.factors)[k];
      }
      entry["factors"] = std::move(factors);
    }
    if (model.links) entry["link_factors"] = {{"latency", model.links->latency}, {"bandwidth", model.links->bandwidth}};
    Json by = Json::array();
    for (const TrialClass& each : classes(trial, model)) {
      by.push_back({{"by", each.by}, {"value", each.value}, {"errors", statistics_json(each.errors)}});
    }
    entry["classes"] = std::move(by);
    Json worst = Json::array();
    for (const TrialFailure& failure : worst_points(trial, model)) {
      worst.push_back({{"point", trial.points[failure.point].number},
                       {"error", failure.error},
                       {"part", failure.part ? Json(analysis::to_string(*failure.part)) : Json(nullptr)},
                       {"predicted_cycles", failure.part_predicted},
                       {"simulated_cycles", failure.part_simulated}});
    }
    entry["worst"] = std::move(worst);
    models.push_back(std::move(entry));
  }
  json["models"] = std::move(models);
  return json.dump(2) + "\n";
}

std::string trial_text(const Trial& trial) {
  std::string text = fmt::format("{}: {} points simulated, {} failed\n", trial.name, trial.points.size(), trial.failed_points);
  std::size_t width = 5;
  for (const TrialModel& model : trial.models) width = std::max(width, model.name.size());
  text += fmt::format("  {:<{}}  {:>6} {:>9} {:>9} {:>9} {:>9} {:>9} {:>8} {:>7} {:>7} {:>9} {:>9}\n", "model", width, "points",
                      "MAPE", "median", "p95", "max", "bias", "R^2", "tau", "best", "regret", "top 3");
  for (const TrialModel& model : trial.models) {
    const TrialScores of = scores(trial, model);
    const auto& [points, mape, median, p95, worst, bias, r2, tau] = of.errors;
    text += fmt::format("  {:<{}}  {:>6}", model.name, width, points);
    if (points > 0)
      text += fmt::format(" {:>9} {:>9} {:>9} {:>9} {:>9} {:>8.4f} {:>7.4f}", percent_text(mape), percent_text(median),
                          percent_text(p95), percent_text(worst), percent_text(bias), r2, tau);
    if (of.choices.groups > 0) {
      text += fmt::format(" {:>5.0f} % {:>9} {:>9}", 100 * of.choices.best_picked, percent_text(of.choices.regret),
                          percent_text(of.choices.top3_regret));
    }
    text += of.faults > 0 ? fmt::format("  {} without an answer\n", of.faults) : "\n";
  }
  for (const TrialModel& model : trial.models) {
    std::map<std::string, std::vector<std::uint64_t>> faults;
    for (std::size_t i = 0; i < model.answers.size(); ++i) {
      if (!model.answers[i].cycles && !model.answers[i].left_out)
        faults[model.answers[i].fault].push_back(trial.points[i].number);
    }
    for (const auto& [fault, points] : faults) {
      const std::string more = points.size() > 1 ? fmt::format(" and {} more", points.size() - 1) : "";
      text += fmt::format("  {}: point {}{}: {}\n", model.name, points.front(), more, fault);
    }
  }
  return text;
}

}  // namespace wafersim::report
