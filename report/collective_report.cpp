#include "report/collective_report.h"

#include <fmt/format.h>

#include "report/json_blocks.h"
#include "report/planless_blocks.h"

namespace wafersim::report {
namespace {

using Json = nlohmann::ordered_json;

}  // namespace

std::string collective_json(const CollectiveReport& report) {
  const sim::Measurements& measured = report.measurements;
  Json json;
  json["schema_version"] = 1;
  json["name"] = report.name;
  json["scenario"] = Json::parse(report.scenario_json);
  json["kind"] = report.kind;
  json["algorithm"] = report.algorithm;
  json["relay"] = report.relay;
  json["row_group"] = optional_value(report.row_group);
  json["column_group"] = optional_value(report.column_group);
  json["shape"] = topology::to_string(report.shape);
  json["tiles"] = report.shape.size();
  json["bytes"] = report.bytes;
  json["cycles"] = measured.cycles;
  json["seconds"] = report.seconds;
  json["model_cycles"] = report.model_cycles;
  json["reduce_bound_cycles"] = optional_value(report.reduce_bound_cycles);
  add_network(json, measured, report.mesh, report.fidelity);
  return json.dump(2) + "\n";
}

std::string collective_text(const CollectiveReport& report) {
  const sim::Measurements& measured = report.measurements;
  std::string text = fmt::format("{}: {} of {} B by {} on {}, relay {}\n\n", report.name, report.kind, report.bytes,
                                 report.algorithm, topology::to_string(report.shape), report.relay);
  text += fmt::format("  cycles            {}\n  cost model        {}\n", measured.cycles, report.model_cycles);
  if (report.reduce_bound_cycles) text += fmt::format("  model's bound     {}\n", *report.reduce_bound_cycles);
  text += network_text(measured, report.mesh);
  return text;
}

}  // namespace wafersim::report
