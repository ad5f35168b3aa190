#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "analysis/critical_path.h"
#include "sim/measurements.h"
#include "topology/mesh.h"

namespace wafersim::report {

/// Writes critical_path.json (docs/results.md). Throws IoError.
void write_path(const std::filesystem::path& path, const sim::PathMeasurement& measurement,
                const analysis::PathSummary& summary, const workloads::Trace& trace,
                const topology::Mesh& mesh);

/// The segments of a critical_path.json, as far as analysis::what_if() looks at them. Throws IoError.
std::vector<sim::PathSegment> read_path(const std::filesystem::path& path);

/// The kinds of segments with their cycles; wires in their parts: "router", "link" and "serialization".
std::vector<std::pair<std::string, Cycle>> path_parts(const analysis::PathSummary& summary);

}  // namespace wafersim::report
