// Permutations and packet traces that are read from CSV files.
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fmt/format.h>
#include <fstream>
#include <functional>
#include <optional>
#include <string_view>

#include "base/csv.h"
#include "base/error.h"
#include "workloads/synthetic_traffic.h"

namespace wafersim::workloads {
namespace {

/// Far enough from the end of what a Cycle holds for all that is added to it.
constexpr Cycle kLastTracedCycle = Cycle{1} << 48;
/// A packet's flits are counted in 32 bits.
constexpr Bytes kLargestTraced = 0xffff'ffff;

/// "17" or "tile_x_y"
std::optional<TileId> parse_tile(const std::string& text, const topology::Mesh& mesh) {
  TileId tile = kNoTile;
  if (const std::optional<std::uint64_t> id = whole_number(text)) {
    if (*id >= mesh.tile_count()) return std::nullopt;
    tile = static_cast<TileId>(*id);
  } else {
    int x = 0, y = 0, used = 0;
    if (std::sscanf(text.c_str(), "tile_%d_%d%n", &x, &y, &used) != 2) return std::nullopt;
    if (static_cast<std::size_t>(used) != text.size() || x < 0 || y < 0 || !mesh.contains({x, y})) return std::nullopt;
    tile = mesh.tile_at({x, y});
  }
  return mesh.alive(tile) ? std::optional(tile) : std::nullopt;
}

/// A cell and where it stands.
struct Value {
  std::string text;
  Location where;
};

[[noreturn]] void fail(const Location& where, const std::string& message) {
  throw ScenarioError({{where, "traffic.file", message}});
}

/// Calls `row` for each line that is neither empty nor a comment nor a header (a first line without a digit); fails when
/// there is none.
void read_rows(const std::string& path, std::size_t columns, const std::string& format,
               const std::function<void(const std::vector<Value>&)>& row) {
  std::ifstream in(path);
  if (!in) throw IoError(fmt::format("{}: cannot be read: {}", path, std::strerror(errno)));
  bool first = true;
  bool any = false;
  int number = 0;
  for (std::string line; std::getline(in, line);) {
    ++number;
    const std::string_view text = trimmed(line);
    if (text.empty() || text.front() == '#') continue;
    const bool header = first && text.find_first_of("0123456789") == std::string_view::npos;
    first = false;
    if (header) continue;
    std::vector<Value> values;
    for (const CsvCell& cell : csv_cells(line)) values.push_back({std::string(cell.text), {path, number, cell.column}});
    if (values.size() != columns) {
      fail({path, number, 1}, fmt::format("{} values where {} are needed: {}", values.size(), columns, format));
    }
    any = true;
    row(values);
  }
  if (!any) fail({path, 0, 0}, fmt::format("no line of {}", format));
}

TileId tile_in(const Value& value, const topology::Mesh& mesh) {
  if (const std::optional<TileId> tile = parse_tile(value.text, mesh)) return *tile;
  fail(value.where, fmt::format("'{}' is no live tile of the {} mesh; valid: 0 to {}, or tile_x_y", value.text,
                                topology::to_string(mesh.shape()), mesh.tile_count() - 1));
}

/// Throws ScenarioError that says what `value` should be unless it is a number in least .. most.
std::uint64_t number_in(const Value& value, const char* what, std::uint64_t least, std::uint64_t most) {
  const std::optional<std::uint64_t> number = whole_number(value.text);
  if (number && *number >= least && *number <= most) return *number;
  fail(value.where, fmt::format("'{}' is no {}; valid: {} to {}", value.text, what, least, most));
}

}  // namespace

std::vector<TileId> read_permutation(const std::string& path, const topology::Mesh& mesh) {
  std::vector<TileId> to(mesh.tile_count(), kNoTile);
  read_rows(path, 2, "source, destination", [&](const std::vector<Value>& values) {
    const TileId source = tile_in(values[0], mesh);
    if (to[source] != kNoTile) fail(values[0].where, mesh.name(source) + " has a destination already");
    to[source] = tile_in(values[1], mesh);
  });
  return to;
}

std::vector<TracedPacket> read_packet_trace(const std::string& path, const topology::Mesh& mesh) {
  std::vector<TracedPacket> packets;
  read_rows(path, 4, "cycle, source, destination, bytes", [&](const std::vector<Value>& values) {
    packets.push_back({.cycle = number_in(values[0], "cycle", 0, kLastTracedCycle),
                       .source = tile_in(values[1], mesh),
                       .destination = tile_in(values[2], mesh),
                       .bytes = number_in(values[3], "number of bytes", 1, kLargestTraced)});
  });
  std::stable_sort(packets.begin(), packets.end(),
                   [](const TracedPacket& a, const TracedPacket& b) { return a.cycle < b.cycle; });
  return packets;
}

}  // namespace wafersim::workloads
