#include "report/load_reports.h"

#include <fmt/format.h>

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

std::string change_text(const LoadSummary& before, const LoadSummary& after) {
  return fmt::format("largest link load {}; bytes x hops {}", change_text(before.largest, after.largest),
                     change_text(before.byte_hops, after.byte_hops));
}

std::string chosen_text(const workloads::MappingReport& report) {
  std::vector<std::string> words;
  for (const auto& [axis, mapping] : report.chosen) {
    words.push_back(fmt::format("{} {}", workloads::to_string(axis), workloads::to_string(mapping)));
  }
  return fmt::format("{}; from the inside out {} ({} of {} candidates measured)", join(words),
                     join(names(report.order)), human_count(report.measured),
                     human_count(report.candidates));
}

std::string mapping_change_text(const workloads::MappingReport& report) {
  if (report.before) return change_text(*report.before, report.after);
  return fmt::format("largest link load {}; bytes x hops {}; the default mapping does not fit",
                     human_bytes(report.after.largest), human_bytes(report.after.byte_hops));
}

}  // namespace

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
  if (reports.mapping) {
    lines.push_back({"mapping chosen", chosen_text(*reports.mapping)});
    lines.push_back({"  against the default", mapping_change_text(*reports.mapping)});
  }
  if (reports.routing) {
    const topology::RoutingReport& routing = *reports.routing;
    lines.push_back({"routes balanced", fmt::format("to {} destinations moved; {}",
                                                    human_count(routing.moved_destinations), routing.turns)});
    lines.push_back({"  against " + routing.baseline, change_text(routing.before, routing.after)});
    lines.push_back({"  lower bound", "no routes have a largest link load below " + human_bytes(routing.bound)});
  }
  return lines;
}

}  // namespace wafersim::report
