#pragma once

#include <filesystem>
#include <optional>

#include "analysis/energy.h"
#include "sim/measurements.h"
#include "topology/mesh.h"
#include "workloads/mapping.h"

namespace wafersim::report {

/// Tables of a run. The first line names the columns, units are part of the names; docs/results.md describes
/// them. Utilizations have six decimals, energies the fewest that tell the number. Throw IoError.

/// One row per used tile, ascending.
void write_tiles(const std::filesystem::path& path, const sim::Measurements& measurements, const topology::Mesh& mesh,
                 const std::optional<analysis::EnergySummary>& energy = std::nullopt);
/// One row per used tile, ascending: its rank along each axis. `mapping` is that of `plan`.
void write_ranks(const std::filesystem::path& path, const workloads::PlanSpec& plan, const workloads::Mapping& mapping,
                 const topology::Mesh& mesh);
/// One row per live link, ascending.
void write_links(const std::filesystem::path& path, const sim::Measurements& measurements, const topology::Mesh& mesh,
                 const std::optional<analysis::EnergySummary>& energy = std::nullopt);
/// One row per step and stage group.
void write_steps(const std::filesystem::path& path, const sim::Measurements& measurements);
/// One row per change of a tile's memory, or per window of time; of the tiles that were recorded.
void write_memory(const std::filesystem::path& path, const sim::Measurements& measurements,
                  const topology::Mesh& mesh);

}  // namespace wafersim::report
