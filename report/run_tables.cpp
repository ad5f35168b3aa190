#include "report/run_tables.h"

#include <fmt/format.h>

#include <charconv>

#include "base/error.h"
#include "report/run_directory.h"

namespace wafersim::report {
namespace {

namespace fs = std::filesystem;

/// Tiles of one wafer.
topology::Shape wafer_of(const nlohmann::ordered_json& summary) {
  topology::Shape shape;
  const auto mesh = nlohmann::ordered_json::json_pointer("/wafer/mesh");
  const auto& scenario = summary["scenario"];
  if (!scenario.contains(mesh) || !scenario[mesh].is_string() ||
      !topology::parse_shape(scenario[mesh], shape)) {
    throw IoError("cannot use summary.json: scenario.wafer.mesh is no shape");
  }
  return shape;
}

/// Tiles of all wafers side by side.
topology::Shape mesh_of(const nlohmann::ordered_json& summary, const topology::Shape& wafer) {
  const auto grid = nlohmann::ordered_json::json_pointer("/wafer/wafers/grid");
  const auto& scenario = summary.at("scenario");
  topology::Shape wafers{1, 1};
  if (scenario.contains(grid) && (!scenario[grid].is_string() || !topology::parse_shape(scenario[grid], wafers))) {
    throw IoError("cannot use summary.json: scenario.wafer.wafers.grid is no shape");
  }
  return {wafer.rows * wafers.rows, wafer.cols * wafers.cols};
}

/// What one of our JSON files says; nothing when there is no such file.
std::optional<nlohmann::ordered_json> json_if_there(const fs::path& path) {
  if (!fs::exists(path)) return std::nullopt;
  nlohmann::ordered_json json = nlohmann::ordered_json::parse(read_file(path), nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) throw IoError(fmt::format("cannot use {}: it is no JSON object", path.string()));
  return json;
}

}  // namespace

nlohmann::ordered_json read_summary(const fs::path& directory) {
  const fs::path path = directory / kSummaryFile;
  if (!fs::exists(path)) {
    throw IoError(
        fmt::format("{} holds no results of a run: it has no {}", directory.string(), kSummaryFile));
  }
  nlohmann::ordered_json summary =
      nlohmann::ordered_json::parse(read_file(path), nullptr, /*allow_exceptions=*/false);
  if (!summary.is_object() || !summary.contains("wafersim_version") || !summary.contains("scenario")) {
    throw IoError(fmt::format("cannot use {}: it is not the summary of a run", path.string()));
  }
  if (summary.value("schema_version", 0) != kSchemaVersion || !summary.contains("machine")) {
    throw IoError(fmt::format("cannot use {}: it is of wafersim {}, this is {}; run the scenario again",
                              path.string(), summary["wafersim_version"].dump(), WAFERSIM_VERSION));
  }
  return summary;
}

RunTables::RunTables(const fs::path& directory)
    : summary(read_summary(directory)),
      wafer(wafer_of(summary)),
      mesh(mesh_of(summary, wafer)),
      tiles(directory / kTilesFile),
      links(directory / kLinksFile),
      steps(directory / kStepsFile),
      ranks(CsvTable::if_there(directory / kRanksFile)),
      memory(CsvTable::if_there(directory / kMemoryFile)),
      tile_windows(CsvTable::if_there(directory / kTileWindowsFile)),
      link_windows(CsvTable::if_there(directory / kLinkWindowsFile)),
      step_cycles(CsvTable::if_there(directory / kStepCyclesFile)),
      operations(CsvTable::if_there(directory / kOperationsFile)),
      latency(CsvTable::if_there(directory / kLatencyFile)),
      spans(CsvTable::if_there(directory / kSpansFile)),
      bubbles(CsvTable::if_there(directory / kBubblesFile)),
      flows(CsvTable::if_there(directory / kFlowsFile)),
      critical_path(json_if_there(directory / kPathFile)),
      directory_(directory) {
  const std::size_t tile = tiles.column("tile");
  for (std::size_t row = 0; row < tiles.rows(); ++row) tile_rows_[tiles.text(row, tile)] = row;
  const std::size_t link = links.column("link");
  for (std::size_t row = 0; row < links.rows(); ++row) link_rows_[links.text(row, link)] = row;
}

std::uint64_t RunTables::place(const CsvTable& table, std::size_t row) const {
  return table.whole(row, table.column("y")) * static_cast<std::uint64_t>(mesh.cols) +
         table.whole(row, table.column("x"));
}

std::uint64_t RunTables::target_place(std::size_t link) const {
  const std::string_view name = links.text(link, links.column("link"));
  std::uint64_t x = 0, y = 0;
  const std::size_t behind = name.rfind('_'), before = name.rfind('_', behind - 1);
  const auto parsed = [&name](std::size_t first, std::size_t end, std::uint64_t& out) {
    const char* const last = name.data() + end;
    return std::from_chars(name.data() + first, last, out).ptr == last;
  };
  if (behind == name.npos || before == name.npos || !parsed(before + 1, behind, x) || !parsed(behind + 1, name.size(), y)) {
    throw IoError(fmt::format("cannot use the tables in {}: {} has no link '{}'", directory_.string(), kLinksFile, name));
  }
  return y * static_cast<std::uint64_t>(mesh.cols) + x;
}

std::size_t RunTables::tile_row(std::string_view name) const {
  const auto found = tile_rows_.find(name);
  if (found != tile_rows_.end()) return found->second;
  throw IoError(
      fmt::format("cannot use the tables in {}: {} has no tile '{}'", directory_.string(), kTilesFile, name));
}

std::size_t RunTables::link_row(std::string_view name) const {
  const auto found = link_rows_.find(name);
  if (found != link_rows_.end()) return found->second;
  throw IoError(
      fmt::format("cannot use the tables in {}: {} has no link '{}'", directory_.string(), kLinksFile, name));
}

}  // namespace wafersim::report
