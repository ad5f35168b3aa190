// Permutations and packet traces that are read from CSV files.
#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <fmt/format.h>
#include <fstream>
#include <functional>

#include "base/error.h"
#include "workloads/synthetic_traffic.h"

namespace wafersim::workloads {
namespace {

/// Far enough from the end of what a Cycle holds for all that is added to it.
constexpr Cycle kLastTracedCycle = Cycle{1} << 48;

std::string trimmed(const std::string& text) {
  const auto first = text.find_first_not_of(" \t\r");
  if (first == std::string::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
}

std::vector<std::string> cells(const std::string& line) {
  std::vector<std::string> result;
  std::size_t start = 0;
  while (true) {
    const std::size_t comma = line.find(',', start);
    result.push_back(trimmed(line.substr(start, comma - start)));
    if (comma == std::string::npos) return result;
    start = comma + 1;
  }
}

bool parse_count(const std::string& text, std::uint64_t& out) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  return error == std::errc{} && end == text.data() + text.size();
}

/// "17" or "tile_x_y"
bool parse_tile(const std::string& text, const topology::Mesh& mesh, TileId& out) {
  std::uint64_t id = 0;
  if (parse_count(text, id)) {
    out = static_cast<TileId>(id);
    return id < mesh.tile_count() && mesh.alive(out);
  }
  int x = 0;
  int y = 0;
  int used = 0;
  if (std::sscanf(text.c_str(), "tile_%d_%d%n", &x, &y, &used) != 2) return false;
  if (static_cast<std::size_t>(used) != text.size() || x < 0 || y < 0 || !mesh.contains({x, y})) return false;
  out = mesh.tile_at({x, y});
  return mesh.alive(out);
}

[[noreturn]] void fail(const Location& where, const std::string& message) {
  throw ScenarioError({{where, "traffic.file", message}});
}

/// Calls `row` for each line that is neither empty nor a comment nor a header (a first line without a digit); fails when
/// there is none.
void read_rows(const std::string& path, std::size_t columns, const std::string& format,
               const std::function<void(const std::vector<std::string>&, const Location& where)>& row) {
  std::ifstream in(path);
  if (!in) throw IoError(fmt::format("{}: cannot be read: {}", path, std::strerror(errno)));
  Location where{path, 0, 1};
  bool first = true;
  bool any = false;
  for (std::string line; std::getline(in, line);) {
    ++where.line;
    const std::string text = trimmed(line);
    if (text.empty() || text.front() == '#') continue;
    const bool header = first && text.find_first_of("0123456789") == std::string::npos;
    first = false;
    if (header) continue;
    const std::vector<std::string> values = cells(text);
    if (values.size() != columns) {
      fail(where, fmt::format("{} values where {} are needed: {}", values.size(), columns, format));
    }
    any = true;
    row(values, where);
  }
  if (!any) fail({path, 0, 0}, fmt::format("no line of {}", format));
}

TileId tile_in(const std::string& text, const topology::Mesh& mesh, const Location& where) {
  TileId tile = kNoTile;
  if (parse_tile(text, mesh, tile)) return tile;
  fail(where, fmt::format("'{}' is no live tile of the {} mesh; valid: 0 to {}, or tile_x_y", text,
                          topology::to_string(mesh.shape()), mesh.tile_count() - 1));
}

}  // namespace

std::vector<TileId> read_permutation(const std::string& path, const topology::Mesh& mesh) {
  std::vector<TileId> to(mesh.tile_count(), kNoTile);
  read_rows(path, 2, "source, destination", [&](const std::vector<std::string>& values, const Location& where) {
    const TileId source = tile_in(values[0], mesh, where);
    if (to[source] != kNoTile) fail(where, mesh.name(source) + " has a destination already");
    to[source] = tile_in(values[1], mesh, where);
  });
  return to;
}

std::vector<TracedPacket> read_packet_trace(const std::string& path, const topology::Mesh& mesh) {
  std::vector<TracedPacket> packets;
  const auto add = [&](const std::vector<std::string>& values, const Location& where) {
    TracedPacket packet;
    if (!parse_count(values[0], packet.cycle) || packet.cycle > kLastTracedCycle) {
      fail(where, fmt::format("'{}' is no cycle; valid: 0 to {}", values[0], kLastTracedCycle));
    }
    packet.source = tile_in(values[1], mesh, where);
    packet.destination = tile_in(values[2], mesh, where);
    if (!parse_count(values[3], packet.bytes) || packet.bytes == 0) {
      fail(where, fmt::format("'{}' is no number of bytes; valid: 1 or more", values[3]));
    }
    packets.push_back(packet);
  };
  read_rows(path, 4, "cycle, source, destination, bytes", add);
  std::stable_sort(packets.begin(), packets.end(),
                   [](const TracedPacket& a, const TracedPacket& b) { return a.cycle < b.cycle; });
  return packets;
}

}  // namespace wafersim::workloads
