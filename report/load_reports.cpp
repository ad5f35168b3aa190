#include "report/load_reports.h"

#include <fmt/format.h>

#include <array>

#include "base/text.h"
#include "report/json_blocks.h"

namespace wafersim::report {
namespace {

using Json = nlohmann::ordered_json;
using topology::LoadSummary;

std::vector<std::string> names(const std::vector<workloads::Axis>& axes) {
  std::vector<std::string> words;
  for (const workloads::Axis axis : axes) words.emplace_back(workloads::to_string(axis));
  return words;
}

/// "12.3 MiB instead of 24.6 MiB (-50.00 %)"
std::string change_text(Bytes before, Bytes after) {
  if (before == after) return human_bytes(after) + ", no change";
  const double part = static_cast<double>(after) / static_cast<double>(before) - 1;
  return fmt::format("{} instead of {} ({:+.2f} %)", human_bytes(after), human_bytes(before), 100 * part);
}

void add_change(std::vector<ReportLine>& lines, const LoadSummary& before, const LoadSummary& after) {
  lines.push_back({"  largest link load", change_text(before.largest, after.largest)});
  lines.push_back({"  bytes x hops", change_text(before.byte_hops, after.byte_hops)});
}

void add_mapping(std::vector<ReportLine>& lines, const workloads::MappingReport& report) {
  std::vector<std::string> words;
  for (const auto& [axis, mapping] : report.chosen) {
    words.push_back(fmt::format("{} {}", workloads::to_string(axis), workloads::to_string(mapping)));
  }
  lines.push_back({"mapping chosen", words.empty() ? "nothing to choose" : join(words)});
  lines.push_back({"  nesting", join(names(report.order)) + ", from the inside out"});
  lines.push_back({"  candidates", fmt::format("{} of {} measured", human_count(report.measured),
                                               human_count(report.candidates))});
  if (report.before) {
    add_change(lines, *report.before, report.after);
    return;
  }
  lines.push_back({"  largest link load", human_bytes(report.after.largest)});
  lines.push_back({"  bytes x hops", human_bytes(report.after.byte_hops)});
  lines.push_back({"  default mapping", "cannot be laid out here"});
}

void add_routing(std::vector<ReportLine>& lines, const topology::RoutingReport& report) {
  lines.push_back({"routes balanced", fmt::format("against {}; to {} destinations moved", report.baseline,
                                                  human_count(report.moved_destinations))});
  lines.push_back({"  turns", report.turns});
  add_change(lines, report.before, report.after);
  lines.push_back({"  lower bound", human_bytes(report.bound) + " on some link, whatever the routes"});
}

constexpr std::array kPairNames = {"attention", "mlp"};

const char* operand_name(bool inputs) { return inputs ? "inputs" : "weights"; }

void add_streams(std::vector<ReportLine>& lines, const workloads::StreamReport& report) {
  lines.push_back({"tensor streams", "bytes sent for a layer and microbatch, all tiles of a replica"});
  for (std::size_t pair = 0; pair < kPairNames.size(); ++pair) {
    const workloads::StreamVolumes& volumes = report.volumes[pair];
    const bool inputs = report.inputs[pair];
    const std::string label = fmt::format("  {}", kPairNames[pair]);
    if (volumes.weights == 0) {
      lines.push_back({label, "none: its degree is 1"});
      continue;
    }
    if (!volumes.inputs) {
      lines.push_back({label, fmt::format("weights, {}, as always with experts", human_bytes(volumes.weights))});
      continue;
    }
    lines.push_back({label, fmt::format("{}, {}; {} would be {}", operand_name(inputs),
                                        human_bytes(inputs ? *volumes.inputs : volumes.weights), operand_name(!inputs),
                                        human_bytes(inputs ? volumes.weights : *volumes.inputs))});
  }
}

}  // namespace

Json stream_report_json(const std::optional<workloads::StreamReport>& report) {
  if (!report) return nullptr;
  Json json = Json::object();
  for (std::size_t pair = 0; pair < kPairNames.size(); ++pair) {
    json[kPairNames[pair]] = {{"operand", operand_name(report->inputs[pair])},
                              {"bytes_with_weights", report->volumes[pair].weights},
                              {"bytes_with_inputs", report->volumes[pair].inputs ? Json(*report->volumes[pair].inputs) : Json()}};
  }
  return json;
}

Json mapping_report_json(const std::optional<workloads::MappingReport>& report) {
  if (!report) return nullptr;
  Json chosen = Json::object();
  for (const auto& [axis, mapping] : report->chosen) {
    chosen[workloads::to_string(axis)] = workloads::to_string(mapping);
  }
  const auto before = [&](Bytes LoadSummary::*part) {
    return report->before ? Json((*report->before).*part) : Json(nullptr);
  };
  return {{"chosen", chosen},
          {"order", names(report->order)},
          {"order_searched", report->order_searched},
          {"search", report->exhaustive ? "exhaustive" : "annealing"},
          {"candidates", report->candidates},
          {"measured", report->measured},
          {"max_link_bytes_before", before(&LoadSummary::largest)},
          {"max_link_bytes_after", report->after.largest},
          {"byte_hops_before", before(&LoadSummary::byte_hops)},
          {"byte_hops_after", report->after.byte_hops}};
}

Json routing_report_json(const std::optional<topology::RoutingReport>& report) {
  if (!report) return nullptr;
  return {{"baseline", report->baseline},
          {"turns", report->turns},
          {"moved_destinations", report->moved_destinations},
          {"max_link_bytes_before", report->before.largest},
          {"max_link_bytes_after", report->after.largest},
          {"max_link_bytes_bound", report->bound},
          {"byte_hops_before", report->before.byte_hops},
          {"byte_hops_after", report->after.byte_hops}};
}

std::vector<ReportLine> report_lines(const LoadReports& reports) {
  std::vector<ReportLine> lines;
  if (reports.streams) add_streams(lines, *reports.streams);
  if (reports.mapping) add_mapping(lines, *reports.mapping);
  if (reports.routing) add_routing(lines, *reports.routing);
  return lines;
}

}  // namespace wafersim::report
