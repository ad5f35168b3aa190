#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <unordered_map>

#include "report/csv_table.h"
#include "topology/mesh.h"

namespace wafersim::report {

/// The summary.json of a run. Throws IoError where there is none, or none of this version.
nlohmann::ordered_json read_summary(const std::filesystem::path& directory);

/// The files of a run, read back. Those that a run need not have are optional.
struct RunTables {
  /// Throws IoError when one that every run has is missing or none of wafersim's, or when a file cannot be
  /// used.
  explicit RunTables(const std::filesystem::path& directory);

  nlohmann::ordered_json summary;
  topology::Shape wafer;  ///< tiles of one wafer
  topology::Shape mesh;   ///< of all, side by side
  CsvTable tiles;
  CsvTable links;
  CsvTable steps;
  std::optional<CsvTable> ranks;
  std::optional<CsvTable> memory;
  std::optional<CsvTable> tile_windows;
  std::optional<CsvTable> link_windows;
  std::optional<CsvTable> step_cycles;
  std::optional<CsvTable> operations;
  std::optional<CsvTable> latency;
  std::optional<CsvTable> spans;
  std::optional<CsvTable> bubbles;
  std::optional<CsvTable> flows;
  std::optional<nlohmann::ordered_json> critical_path;

  /// y x columns + x of the row's tile, in tiles.csv and links.csv.
  std::uint64_t place(const CsvTable& table, std::size_t row) const;
  /// The same of the tile whose router the link in a row of links.csv leads to.
  std::uint64_t target_place(std::size_t link) const;
  /// The row of a tile in tiles.csv, and of a link in links.csv. Throw IoError for an unknown name.
  std::size_t tile_row(std::string_view name) const;
  std::size_t link_row(std::string_view name) const;
  /// The tile in its place, of a name in any table.
  std::uint64_t tile_place(std::string_view name) const { return place(tiles, tile_row(name)); }

 private:
  std::filesystem::path directory_;
  std::unordered_map<std::string_view, std::size_t> tile_rows_;
  std::unordered_map<std::string_view, std::size_t> link_rows_;
};

}  // namespace wafersim::report
