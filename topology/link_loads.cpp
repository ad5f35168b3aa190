#include "topology/link_loads.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"

namespace wafersim::topology {
namespace {

constexpr std::size_t index(Direction direction) { return static_cast<std::size_t>(direction); }

}  // namespace

Demands merged(Demands demands) {
  std::erase_if(
      demands, [](const Demand& demand) { return demand.bytes == 0 || demand.source == demand.destination; });
  std::sort(demands.begin(), demands.end(), [](const Demand& a, const Demand& b) {
    return a.source != b.source ? a.source < b.source : a.destination < b.destination;
  });
  std::size_t count = 0;
  for (const Demand& demand : demands) {
    const bool same = count > 0 && demands[count - 1].source == demand.source &&
                      demands[count - 1].destination == demand.destination;
    if (same) {
      demands[count - 1].bytes += demand.bytes;
    } else {
      demands[count++] = demand;
    }
  }
  demands.resize(count);
  return demands;
}

LoadSummary summarize(const LinkBytes& loads) {
  LoadSummary summary;
  for (const Bytes bytes : loads) {
    summary.largest = std::max(summary.largest, bytes);
    summary.byte_hops += bytes;
  }
  return summary;
}

LoadMeter::LoadMeter(const Routing& routing, const Mesh& mesh)
    : routing_(routing),
      straight_first_(routing.straight_first()),
      rows_(mesh.rows()),
      cols_(mesh.cols()),
      step_{-mesh.cols(), 1, mesh.cols(), -1},
      longest_(mesh.tile_count()),
      loads_(mesh.link_slots(), 0) {
  if (!straight_first_) return;
  for (TileId tile = 0; tile < mesh.tile_count(); ++tile) coords_.push_back(mesh.coord(tile));
  for (const Direction direction : kAllDirections) changes_[index(direction)].assign(mesh.tile_count(), 0);
}

bool LoadMeter::add(const Demand& demand) {
  if (straight_first_) {
    add_straight(demand);
    return true;
  }
  TileId at = demand.source;
  std::size_t hops = 0;
  while (true) {
    const Hop hop = routing_.next(at, demand.destination);
    if (hop == Hop::local) return true;
    const std::optional<Direction> direction = to_direction(hop);
    if (!direction) return false;
    loads_[Mesh::link(at, *direction)] += demand.bytes;
    at = static_cast<TileId>(at + step_[static_cast<std::size_t>(*direction)]);
    require_invariant(++hops < longest_, "a route does not end");
  }
}

void LoadMeter::add_straight(const Demand& demand) {
  const Coord from = coords_[demand.source], to = coords_[demand.destination];
  const bool x_first = *straight_first_ == Dimension::x;
  const int row = x_first ? from.y : to.y, column = x_first ? to.x : from.x;
  if (from.x != to.x) {
    add_run(to.x > from.x ? Direction::east : Direction::west, row, from.x, to.x, demand.bytes);
  }
  if (from.y != to.y) {
    add_run(to.y > from.y ? Direction::south : Direction::north, column, from.y, to.y, demand.bytes);
  }
}

/// The links of a run leave the tiles from `from` to the one before `to`, in places of their row or column
/// (`line`). Changes behind the last place are left out; differences may wrap below zero, their sums do not.
void LoadMeter::add_run(Direction direction, int line, int from, int to, Bytes bytes) {
  const bool along_row = direction == Direction::east || direction == Direction::west;
  const int length = along_row ? cols_ : rows_;
  const int first = std::min(from, to + 1), end = std::max(from + 1, to);
  std::vector<Bytes>& changes = changes_[index(direction)];
  const auto start = static_cast<std::size_t>(line) * static_cast<std::size_t>(length);
  changes[start + static_cast<std::size_t>(first)] += bytes;
  if (end < length) changes[start + static_cast<std::size_t>(end)] -= bytes;
}

const LinkBytes& LoadMeter::loads() {
  if (!straight_first_) return loads_;
  for (const Direction direction : kAllDirections) {
    const bool along_row = direction == Direction::east || direction == Direction::west;
    const int lines = along_row ? rows_ : cols_, length = along_row ? cols_ : rows_;
    auto change = changes_[index(direction)].begin();
    for (int line = 0; line < lines; ++line) {
      Bytes load = 0;
      for (int place = 0; place < length; ++place, ++change) {
        load += *change;
        const int tile = along_row ? line * cols_ + place : place * cols_ + line;
        loads_[Mesh::link(static_cast<TileId>(tile), direction)] = load;
      }
    }
  }
  return loads_;
}

void LoadMeter::clear() {
  std::fill(loads_.begin(), loads_.end(), 0);
  for (std::vector<Bytes>& changes : changes_) std::fill(changes.begin(), changes.end(), 0);
}

LinkBytes link_loads(const Routing& routing, const Mesh& mesh, const Demands& demands) {
  LoadMeter meter(routing, mesh);
  for (const Demand& demand : demands) {
    if (meter.add(demand)) continue;
    // route() knows how to say why there is no way.
    route(routing, mesh, demand.source, demand.destination);
    throw InternalError("a route is blocked for link_loads() only");
  }
  return meter.loads();
}

namespace {

__extension__ using Wide = unsigned __int128;

/// Bytes over a cut in one direction, and the live links that can carry them.
struct Cut {
  Bytes bytes = 0;
  Bytes links = 0;
};

/// The cuts that the links of one direction cross, by the row or column that those links leave.
using Cuts = std::array<std::vector<Cut>, kDirections>;

void add_crossings(Cuts& cuts, Direction direction, int from, int to, Bytes bytes) {
  std::vector<Cut>& along = cuts[index(direction)];
  const int step = from < to ? 1 : -1;
  for (int at = from; at != to; at += step) along[static_cast<std::size_t>(at)].bytes += bytes;
}

std::string line_cut_name(Direction direction, std::size_t line) {
  const bool columns = direction == Direction::east || direction == Direction::west;
  const bool upwards = direction == Direction::east || direction == Direction::south;
  return fmt::format("links from {} {} to {}", columns ? "column" : "row", line, upwards ? line + 1 : line - 1);
}

}  // namespace

Bytes cut_bound(const Mesh& mesh, const Demands& demands) {
  const BusiestCut cut = busiest_cut(mesh, demands);
  return ceil_div(cut.bytes, cut.links);
}

BusiestCut busiest_cut(const Mesh& mesh, const Demands& demands) {
  using enum Direction;
  const auto rows = static_cast<std::size_t>(mesh.rows()), cols = static_cast<std::size_t>(mesh.cols());
  Cuts cuts = {std::vector<Cut>(rows), std::vector<Cut>(cols), std::vector<Cut>(rows),
               std::vector<Cut>(cols)};
  std::vector<Cut> out_of(mesh.tile_count()), into(mesh.tile_count());
  for (LinkId link = 0; link < mesh.link_slots(); ++link) {
    if (!mesh.link_alive(link)) continue;
    const Direction direction = Mesh::link_direction(link);
    const TileId source = Mesh::link_source(link);
    const Coord at = mesh.coord(source);
    const int line = direction == east || direction == west ? at.x : at.y;
    ++cuts[index(direction)][static_cast<std::size_t>(line)].links;
    ++out_of[source].links;
    ++into[mesh.neighbour(source, direction)].links;
  }
  for (const Demand& demand : demands) {
    if (demand.source == demand.destination) continue;
    const Coord from = mesh.coord(demand.source), to = mesh.coord(demand.destination);
    add_crossings(cuts, to.x > from.x ? east : west, from.x, to.x, demand.bytes);
    add_crossings(cuts, to.y > from.y ? south : north, from.y, to.y, demand.bytes);
    out_of[demand.source].bytes += demand.bytes;
    into[demand.destination].bytes += demand.bytes;
  }
  BusiestCut busiest;
  const auto consider = [&busiest](const std::vector<Cut>& all, const auto& name) {
    for (std::size_t i = 0; i < all.size(); ++i) {
      const Cut& cut = all[i];
      if (cut.links == 0 || cut.bytes == 0) continue;
      if (Wide{cut.bytes} * busiest.links > Wide{busiest.bytes} * cut.links) busiest = {cut.bytes, cut.links, name(i)};
    }
  };
  for (const Direction direction : kAllDirections)
    consider(cuts[index(direction)], [direction](std::size_t line) { return line_cut_name(direction, line); });
  const auto tile_name = [&mesh](std::size_t tile) { return mesh.name(static_cast<TileId>(tile)); };
  consider(out_of, [&](std::size_t tile) { return "links out of " + tile_name(tile); });
  consider(into, [&](std::size_t tile) { return "links into " + tile_name(tile); });
  return busiest;
}

}  // namespace wafersim::topology
