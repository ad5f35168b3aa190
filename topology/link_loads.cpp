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

Demands between_routers(const Mesh& mesh, Demands demands) {
  if (!mesh.concentrated()) return demands;
  for (Demand& demand : demands) {
    demand.source = mesh.router(demand.source);
    demand.destination = mesh.router(demand.destination);
  }
  return demands;
}

LoadSummary summarize(const LinkBytes& loads, const Mesh& mesh) {
  LoadSummary summary;
  for (LinkId link = 0; link < loads.size(); ++link) {
    summary.largest = std::max(summary.largest, mesh.plain_bytes(link, loads[link]));
    summary.byte_hops += loads[link];
  }
  return summary;
}

LoadMeter::LoadMeter(const Routing& routing, const Mesh& mesh)
    : routing_(routing),
      mesh_(mesh),
      straight_first_(routing.straight_first()),
      rows_(mesh.rows()),
      cols_(mesh.cols()),
      longest_(mesh.tile_count()),
      loads_(mesh.link_slots(), 0) {
  if (!straight_first_) return;
  for (TileId tile = 0; tile < mesh.tile_count(); ++tile) coords_.push_back(mesh.coord(tile));
  for (std::size_t direction = 0; direction < kPlainDirections; ++direction) changes_[direction].assign(mesh.tile_count(), 0);
}

bool LoadMeter::add(const Demand& demand) {
  if (straight_first_) {
    add_straight(demand);
    return true;
  }
  TileId at = mesh_.router(demand.source);
  std::size_t hops = 0;
  while (true) {
    const Hop hop = routing_.next(at, demand.destination);
    if (hop == Hop::local) return true;
    const std::optional<Direction> direction = to_direction(hop);
    if (!direction) return false;
    loads_[Mesh::link(at, *direction)] += demand.bytes;
    at = mesh_.neighbour(at, *direction);
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
  const bool along_row = axis_of(direction) == Dimension::x;
  const int length = along_row ? cols_ : rows_;
  const int first = std::min(from, to + 1), end = std::max(from + 1, to);
  std::vector<Bytes>& changes = changes_[index(direction)];
  const auto start = static_cast<std::size_t>(line) * static_cast<std::size_t>(length);
  changes[start + static_cast<std::size_t>(first)] += bytes;
  if (end < length) changes[start + static_cast<std::size_t>(end)] -= bytes;
}

const LinkBytes& LoadMeter::loads() {
  if (!straight_first_) return loads_;
  for (const Direction direction : kCompass) {
    const bool along_row = axis_of(direction) == Dimension::x;
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

/// Bytes over a cut in one direction, and the bandwidth of the live links that can carry them, in plain links.
struct Cut {
  Bytes bytes = 0;
  Rational rate{0};

  /// Has more bytes for its bandwidth; never without bandwidth.
  bool is_busier_than(const BusiestCut& other) const {
    if (rate == Rational(0)) return false;
    const Rational of_rates = other.rate / rate;
    return Wide{bytes} * static_cast<std::uint64_t>(of_rates.num()) >
           Wide{other.bytes} * static_cast<std::uint64_t>(of_rates.den());
  }
};

/// The cuts that part the first lines of a dimension from the others, by the number of the last of those; over them
/// up and down.
struct LineCuts {
  explicit LineCuts(int lines) : up(static_cast<std::size_t>(lines)), down(static_cast<std::size_t>(lines)) {}
  template <class Visit>
  void for_each_between(int from, int to, const Visit& visit) {
    for (int line = from; line < to; ++line) visit(up[static_cast<std::size_t>(line)]);
    for (int line = to; line < from; ++line) visit(down[static_cast<std::size_t>(line)]);
  }
  std::vector<Cut> up, down;
};

}  // namespace

Bytes cut_bound(const Mesh& mesh, const Demands& demands) {
  const BusiestCut cut = busiest_cut(mesh, demands);
  const auto num = static_cast<std::uint64_t>(cut.rate.num()), den = static_cast<std::uint64_t>(cut.rate.den());
  return static_cast<Bytes>((Wide{cut.bytes} * den + num - 1) / num);
}

BusiestCut busiest_cut(const Mesh& mesh, const Demands& demands_in) {
  const Demands demands = between_routers(mesh, demands_in);
  LineCuts columns(mesh.cols()), rows(mesh.rows());
  std::vector<Cut> out_of(mesh.tile_count()), into(mesh.tile_count());
  const auto for_each_cut = [&](TileId source, TileId target, const auto& visit) {
    const Coord from = mesh.coord(source), to = mesh.coord(target);
    columns.for_each_between(from.x, to.x, visit);
    rows.for_each_between(from.y, to.y, visit);
    visit(out_of[source]);
    visit(into[target]);
  };
  for (LinkId link = 0; link < mesh.link_slots(); ++link) {
    if (!mesh.link_alive(link)) continue;
    const TileId source = Mesh::link_source(link);
    const Rational& rate = mesh.link_classes()[mesh.link_class(link)].rate;
    for_each_cut(source, mesh.neighbour(source, Mesh::link_direction(link)),
                 [&rate](Cut& cut) { cut.rate = cut.rate + rate; });
  }
  for (const Demand& demand : demands) {
    if (demand.source == demand.destination) continue;
    for_each_cut(demand.source, demand.destination, [&demand](Cut& cut) { cut.bytes += demand.bytes; });
  }
  BusiestCut busiest;
  const auto consider = [&busiest](const std::vector<Cut>& all, const auto& name) {
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (all[i].is_busier_than(busiest)) busiest = {all[i].bytes, all[i].rate, name(i)};
    }
  };
  const auto line_name = [](const char* lines, int from, int to) {
    return [=](std::size_t line) {
      const int first = static_cast<int>(line);
      return fmt::format("links from {} {} to {}", lines, first + from, first + to);
    };
  };
  consider(rows.down, line_name("row", 1, 0));
  consider(columns.up, line_name("column", 0, 1));
  consider(rows.up, line_name("row", 0, 1));
  consider(columns.down, line_name("column", 1, 0));
  const auto tile_name = [&mesh](std::size_t tile) { return mesh.name(static_cast<TileId>(tile)); };
  consider(out_of, [&](std::size_t tile) { return "links out of " + tile_name(tile); });
  consider(into, [&](std::size_t tile) { return "links into " + tile_name(tile); });
  return busiest;
}

}  // namespace wafersim::topology
