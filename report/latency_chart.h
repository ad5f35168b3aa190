#pragma once

#include <string>

#include "report/traffic_report.h"

namespace wafersim::report {

/// The latency-throughput curve of a sweep as an SVG picture: mean packet latency (with its confidence interval) of the stable
/// loads, the largest stable load, and the ideal saturation as a line that no curve crosses. The report has a sweep.
std::string latency_chart(const TrafficReport& report);

}  // namespace wafersim::report
