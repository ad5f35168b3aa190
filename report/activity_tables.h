#pragma once

#include <filesystem>
#include <vector>

#include "analysis/hot_flows.h"
#include "sim/measurements.h"
#include "topology/mesh.h"
#include "workloads/mapping.h"

namespace wafersim::report {

/// Tables of what is recorded on request. docs/results.md describes their columns. Each throws IoError.

void write_tile_windows(const std::filesystem::path& path, const sim::Measurements& measurements,
                        const topology::Mesh& mesh);
void write_link_windows(const std::filesystem::path& path, const sim::Measurements& measurements,
                        const topology::Mesh& mesh);
void write_step_cycles(const std::filesystem::path& path, const std::vector<sim::StepCycles>& steps);
void write_operations(const std::filesystem::path& path,
                      const std::vector<sim::OperationMeasurement>& operations);
void write_latencies(const std::filesystem::path& path, const std::vector<sim::MessageStatistics>& messages);
void write_spans(const std::filesystem::path& path, const std::vector<sim::TileSpans>& tiles,
                 const topology::Mesh& mesh);
void write_bubbles(const std::filesystem::path& path, const std::vector<sim::GroupBubbles>& groups);
void write_flows(const std::filesystem::path& path, const std::vector<analysis::LinkFlows>& links,
                 const topology::Mesh& mesh);

}  // namespace wafersim::report
