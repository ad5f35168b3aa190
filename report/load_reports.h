#pragma once

#include <optional>
#include <string>
#include <vector>

#include "topology/balanced_routing.h"
#include "workloads/mapping_search.h"
#include "workloads/stream_operand.h"

namespace wafersim::report {

/// What was chosen for the smallest largest link load, and what it brought: the mapping with `plan.mapping:
/// auto`, the routes with `router.routing: balanced`. Each is absent when nothing was left to choose. And what travels
/// along tensor streams, where there are any.
struct LoadReports {
  std::optional<workloads::MappingReport> mapping;
  std::optional<topology::RoutingReport> routing;
  std::optional<workloads::StreamReport> streams = {};
};

/// One fact for a person: "mapping" and "tp row, pp snake 2x4, ...".
struct ReportLine {
  std::string label;
  std::string value;
};
/// Empty when all are absent.
std::vector<ReportLine> report_lines(const LoadReports& reports);

}  // namespace wafersim::report
