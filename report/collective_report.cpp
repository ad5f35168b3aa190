#include "report/collective_report.h"

#include <fmt/format.h>

#include <algorithm>

#include "report/json_blocks.h"

namespace wafersim::report {
namespace {

using Json = nlohmann::ordered_json;

/// Null when no link carried anything.
const sim::LinkMeasurement* busiest(const sim::Measurements& measurements) {
  const auto found = std::max_element(measurements.links.begin(), measurements.links.end(),
                                      [](const auto& a, const auto& b) { return a.bytes < b.bytes; });
  return found == measurements.links.end() || found->bytes == 0 ? nullptr : &*found;
}

}  // namespace

std::string collective_json(const CollectiveReport& report) {
  const sim::Measurements& measured = report.measurements;
  const sim::EngineMeasurement& engine = measured.engine;
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
  json["messages"] = measured.messages;
  json["packets"] = measured.packets;
  json["packet_hops"] = measured.packet_hops;
  const sim::LinkMeasurement* const link = busiest(measured);
  json["max_link_bytes"] = link == nullptr ? 0 : link->bytes;
  json["max_link"] = link == nullptr ? Json(nullptr) : Json(report.mesh.link_name(link->link));
  json["partial"] = measured.partial;
  json["engine"] = {{"fidelity", report.fidelity},
                    {"wall_seconds", engine.wall_seconds},
                    {"cpu_seconds", engine.cpu_seconds},
                    {"peak_rss_bytes", engine.peak_rss_bytes},
                    {"events", engine.events},
                    {"packet_hops_per_cpu_second", engine.packet_hops_per_cpu_second}};
  return json.dump(2) + "\n";
}

std::string collective_text(const CollectiveReport& report) {
  const sim::Measurements& measured = report.measurements;
  std::string text = fmt::format("{}: {} of {} B by {} on {}, relay {}\n\n", report.name, report.kind, report.bytes,
                                 report.algorithm, topology::to_string(report.shape), report.relay);
  text += fmt::format("  cycles            {}\n  cost model        {}\n", measured.cycles, report.model_cycles);
  if (report.reduce_bound_cycles) text += fmt::format("  model's bound     {}\n", *report.reduce_bound_cycles);
  text += fmt::format("  packets           {}, {} link traversals\n", measured.packets, measured.packet_hops);
  if (const sim::LinkMeasurement* const link = busiest(measured)) {
    text += fmt::format("  busiest link      {}, {} B\n", report.mesh.link_name(link->link), link->bytes);
  }
  return text;
}

}  // namespace wafersim::report
