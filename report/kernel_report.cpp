#include "report/kernel_report.h"

#include <fmt/format.h>

#include <algorithm>

#include "report/json_blocks.h"
#include "report/planless_blocks.h"

namespace wafersim::report {
namespace {

using Json = nlohmann::ordered_json;

/// Shares of the cycles of all tiles.
struct Shares {
  double compute = 0;
  double memory_stall = 0;
  double waiting = 0;
};

Shares shares_of(const sim::Measurements& measured) {
  double compute = 0, stall = 0, total = 0;
  for (const sim::TileMeasurement& tile : measured.tiles) {
    compute += static_cast<double>(tile.cycles.compute);
    stall += static_cast<double>(tile.cycles.memory_stall);
    total += static_cast<double>(tile.cycles.total());
  }
  if (total == 0) return {};
  return {compute / total, stall / total, (total - compute - stall) / total};
}

Bytes bytes_sent(const sim::Measurements& measured) {
  Bytes bytes = 0;
  for (const sim::TileMeasurement& tile : measured.tiles) bytes += tile.bytes_sent;
  return bytes;
}

Bytes peak_bytes(const sim::Measurements& measured) {
  Bytes bytes = 0;
  for (const sim::TileMeasurement& tile : measured.tiles) bytes = std::max(bytes, tile.peak_sram_bytes);
  return bytes;
}

double utilization(const KernelReport& report) {
  const double peak =
      report.peak_flops_per_cycle.to_double() * report.shape.size() * static_cast<double>(report.measurements.cycles);
  return peak == 0 ? 0 : static_cast<double>(report.work.flops) / peak;
}

}  // namespace

std::string kernel_json(const KernelReport& report) {
  const sim::Measurements& measured = report.measurements;
  const Shares shares = shares_of(measured);
  Json json;
  json["schema_version"] = 1;
  json["name"] = report.name;
  json["scenario"] = Json::parse(report.scenario_json);
  json["kind"] = report.kind;
  json["shape"] = topology::to_string(report.shape);
  json["tiles"] = report.shape.size();
  json["steps"] = report.work.steps;
  json["group"] = optional_value(report.group);
  json["cycles"] = measured.cycles;
  json["seconds"] = report.seconds;
  json["cycles_per_step"] = static_cast<double>(measured.cycles) / report.work.steps;
  json["model_cycles"] = report.model_cycles;
  json["flops"] = report.work.flops;
  json["flops_per_second"] = report.seconds == 0 ? 0 : static_cast<double>(report.work.flops) / report.seconds;
  json["utilization"] = utilization(report);
  json["breakdown"] = {{"compute", shares.compute}, {"memory_stall", shares.memory_stall}, {"waiting", shares.waiting}};
  json["memory"] = {
      {"capacity_bytes", report.sram_capacity}, {"static_bytes", report.work.static_bytes}, {"peak_bytes", peak_bytes(measured)}};
  json["bytes_sent"] = bytes_sent(measured);
  add_network(json, measured, report.mesh, report.fidelity);
  return json.dump(2) + "\n";
}

std::string kernel_text(const KernelReport& report) {
  const sim::Measurements& measured = report.measurements;
  const Shares shares = shares_of(measured);
  std::string text = fmt::format("{}: {} on {}\n\n  cycles            {} ({:.4g} us)\n", report.name, report.kind,
                                 topology::to_string(report.shape), measured.cycles, report.seconds * 1e6);
  if (report.work.steps > 1) {
    text += fmt::format("  cycles a step     {:.6g} of {} steps\n", static_cast<double>(measured.cycles) / report.work.steps,
                        report.work.steps);
  }
  text += fmt::format("  closed form       {}\n", report.model_cycles);
  if (report.group) text += fmt::format("  group             {} tiles\n", *report.group);
  text += fmt::format("  compute           {:.1f} %, memory stall {:.1f} %, waiting {:.1f} %\n", 100 * shares.compute,
                      100 * shares.memory_stall, 100 * shares.waiting);
  text += fmt::format("  utilization       {:.1f} % of the peak of the {} engines\n", 100 * utilization(report),
                      report.work.on_matrix ? "matrix" : "vector");
  text += fmt::format("  memory            {} B of {} B in the fullest tile\n", peak_bytes(measured), report.sram_capacity);
  return text + network_text(measured, report.mesh);
}

}  // namespace wafersim::report
