#include "topology/route_balancer.h"

#include <algorithm>

#include "base/error.h"
#include "topology/balanced_routing.h"

namespace wafersim::topology {
namespace {

/// Links that may be looked at, about ten million in a second. Large traffic then keeps the routes it has.
constexpr std::uint64_t kMaxWork = 20'000'000;
constexpr std::uint64_t kMaxRefineWork = 10'000'000;
/// Memory of the trees that differ from the start; further destinations keep their routes.
constexpr std::uint64_t kMaxRowBytes = std::uint64_t{1} << 30;

constexpr int kSweeps = 8;

constexpr LinkId kNoLink = ~LinkId{0};
constexpr OutputSet kEveryOutput = 0b1111;

}  // namespace

RouteBalancer::RouteBalancer(const Mesh& mesh, const Routing& start, const TurnSets& turns,
                             const Demands& demands)
    : mesh_(mesh),
      turns_(turns),
      target_(mesh.link_slots(), kNoTile),
      flows_on_(mesh.link_slots()),
      loads_(mesh.link_slots(), 0),
      claim_epoch_(mesh.tile_count(), 0),
      claim_out_(mesh.tile_count(), Direction::north),
      labels_(mesh.link_slots()),
      visited_(mesh.tile_count(), 0),
      work_end_(kMaxWork) {
  for (LinkId link = 0; link < mesh.link_slots(); ++link) {
    target_[link] = mesh.neighbour(Mesh::link_source(link), Mesh::link_direction(link));
  }
  for (TileId tile = 0; tile < mesh.tile_count(); ++tile) coords_.push_back(mesh.coord(tile));
  measure_parts();
  flows_.reserve(demands.size());
  for (const Demand& demand : demands) {
    const auto id = static_cast<FlowId>(flows_.size());
    Path path = route(start, mesh, demand.source, demand.destination);
    flows_.push_back({demand, static_cast<int>(path.size()) + kDetourHops, {}});
    flows_to_[demand.destination].push_back(id);
    lay(id, std::move(path));
  }
  for (auto& [destination, ids] : flows_to_) {
    std::stable_sort(ids.begin(), ids.end(),
                     [this](FlowId a, FlowId b) { return flows_[a].demand.bytes > flows_[b].demand.bytes; });
  }
}

void RouteBalancer::run() {
  while (work_ < work_end_) {
    const std::optional<LinkId> link = hottest();
    if (!link || !relieve(*link)) return;
  }
}

void RouteBalancer::refine(Bytes bound) {
  work_end_ = work_ + kMaxRefineWork;
  LoadSummary best = summarize(loads_, mesh_);
  LinkBytes best_loads = loads_;
  std::map<TileId, HopRow> best_rows = rows_;
  for (int sweep = 0; sweep < kSweeps && best.largest > bound && relieve_every_link(); ++sweep) {
    run();
    const LoadSummary now = summarize(loads_, mesh_);
    if (!(now < best)) continue;
    best = now;
    best_loads = loads_;
    best_rows = rows_;
  }
  loads_ = std::move(best_loads);
  rows_ = std::move(best_rows);
}

/// Whether any route has moved.
bool RouteBalancer::relieve_every_link() {
  std::vector<LinkId> links;
  for (LinkId link = 0; link < loads_.size(); ++link) {
    if (loads_[link] > 0) links.push_back(link);
  }
  std::stable_sort(links.begin(), links.end(), [this](LinkId a, LinkId b) { return load(a) > load(b); });
  bool moved = false;
  for (const LinkId link : links) moved |= work_ < work_end_ && relieve(link);
  return moved;
}

std::optional<LinkId> RouteBalancer::hottest() {
  while (!heap_.empty() && load(heap_.front().link) != heap_.front().bytes) {
    std::pop_heap(heap_.begin(), heap_.end());
    heap_.pop_back();
  }
  if (heap_.empty()) return std::nullopt;
  return heap_.front().link;
}

void RouteBalancer::set_load(LinkId link, Bytes bytes) {
  loads_[link] = bytes;
  if (heap_.size() > 4 * loads_.size()) {
    heap_.clear();
    for (LinkId each = 0; each < loads_.size(); ++each) {
      if (loads_[each] > 0) heap_.push_back({load(each), each});
    }
    std::make_heap(heap_.begin(), heap_.end());
  }
  if (bytes == 0) return;
  heap_.push_back({load(link), link});
  std::push_heap(heap_.begin(), heap_.end());
}

/// Moves routes to one destination off a link or to where it carries less; false when none can move. Tried in
/// this order: the routes over the link together, each of them alone, all routes to the destination together.
bool RouteBalancer::relieve(LinkId hottest) {
  const Bytes below = load(hottest);
  const std::vector<Crossing> all = crossings(hottest);
  const auto any_moves = [&](const auto& move_of) {
    return std::any_of(all.begin(), all.end(),
                       [&](const Crossing& crossing) { return work_ < work_end_ && move_of(crossing); });
  };
  return any_moves(
             [&](const Crossing& crossing) { return move(crossing.destination, crossing.flows, below); }) ||
         any_moves([&](const Crossing& crossing) {
           return crossing.flows.size() > 1 &&
                  std::any_of(crossing.flows.begin(), crossing.flows.end(),
                              [&](FlowId id) { return move(crossing.destination, {id}, below); });
         }) ||
         any_moves([&](const Crossing& crossing) {
           const std::vector<FlowId>& to_destination = flows_to_.at(crossing.destination);
           return crossing.flows.size() < to_destination.size() &&
                  move(crossing.destination, to_destination, below);
         });
}

/// Most bytes first, then by destination.
std::vector<RouteBalancer::Crossing> RouteBalancer::crossings(LinkId link) const {
  std::map<TileId, Crossing> by_destination;
  for (const FlowId id : flows_on_[link]) {
    const Demand& demand = flows_[id].demand;
    Crossing& crossing = by_destination[demand.destination];
    crossing.destination = demand.destination;
    crossing.bytes += demand.bytes;
    crossing.flows.push_back(id);
  }
  std::vector<Crossing> all;
  for (auto& [destination, crossing] : by_destination) {
    std::sort(crossing.flows.begin(), crossing.flows.end(), [this](FlowId a, FlowId b) {
      const Bytes of_a = flows_[a].demand.bytes, of_b = flows_[b].demand.bytes;
      return of_a != of_b ? of_a > of_b : a < b;
    });
    all.push_back(std::move(crossing));
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const Crossing& a, const Crossing& b) { return a.bytes > b.bytes; });
  return all;
}

/// Gives `flows`, all to `destination`, new routes on which every link stays below `below`; changes nothing
/// and returns false when there are none, or when the rest of the tree could not be joined to them.
bool RouteBalancer::move(TileId destination, const std::vector<FlowId>& flows, Bytes below) {
  const bool fresh = !rows_.contains(destination);
  if (fresh && (rows_.size() + 1) * std::uint64_t{mesh_.tile_count()} > kMaxRowBytes) return false;
  std::vector<Path> before;
  before.reserve(flows.size());
  for (const FlowId id : flows) {
    before.push_back(flows_[id].path);
    lift(id);
  }
  if (lay_anew(destination, flows, below)) {
    if (std::optional<HopRow> row = complete(destination)) {
      rows_[destination] = std::move(*row);
      return true;
    }
  }
  for (std::size_t i = 0; i < flows.size(); ++i) {
    lift(flows[i]);
    lay(flows[i], std::move(before[i]));
  }
  return false;
}

bool RouteBalancer::lay_anew(TileId destination, const std::vector<FlowId>& flows, Bytes below) {
  ++epoch_;
  for (const FlowId id : flows_to_.at(destination)) claim(flows_[id].path);
  for (const FlowId id : flows) {
    std::optional<Path> path = find_path(flows_[id], below);
    if (!path) return false;
    claim(*path);
    lay(id, std::move(*path));
  }
  return true;
}

/// Takes a flow off its links; a flow without a route has none.
void RouteBalancer::lift(FlowId id) {
  Flow& flow = flows_[id];
  for (const LinkId link : flow.path) {
    set_load(link, loads_[link] - flow.demand.bytes);
    std::vector<FlowId>& on = flows_on_[link];
    on.erase(std::find(on.begin(), on.end(), id));
  }
  flow.path.clear();
}

void RouteBalancer::lay(FlowId id, Path path) {
  Flow& flow = flows_[id];
  for (const LinkId link : path) {
    set_load(link, loads_[link] + flow.demand.bytes);
    flows_on_[link].push_back(id);
  }
  flow.path = std::move(path);
}

void RouteBalancer::claim(const Path& path) {
  for (const LinkId link : path) {
    const TileId tile = Mesh::link_source(link);
    claim_epoch_[tile] = epoch_;
    claim_out_[tile] = Mesh::link_direction(link);
  }
}

OutputSet RouteBalancer::outputs(TileId tile) const {
  return claimed(tile) ? turn_bit(claim_out_[tile]) : kEveryOutput;
}

/// The shortest permitted route below a load and within the flow's length that agrees with what is claimed;
/// among equally short ones one whose largest load is smallest. Breadth first over links, because the turns
/// that are permitted depend on the link by which a tile is entered.
std::optional<RouteBalancer::Path> RouteBalancer::find_path(const Flow& flow, Bytes below) {
  ++search_;
  next_frontier_.clear();
  for (const Direction out : kAllDirections) {
    if ((outputs(flow.demand.source) & turn_bit(out)) == 0) continue;
    reach(flow, Mesh::link(flow.demand.source, out), nullptr, kNoLink, below);
  }
  std::vector<LinkId> frontier;
  while (!next_frontier_.empty()) {
    frontier.swap(next_frontier_);
    next_frontier_.clear();
    LinkId arrived = kNoLink;
    for (const LinkId link : frontier) {
      if (target_[link] != flow.demand.destination) continue;
      if (arrived == kNoLink || labels_[link].largest < labels_[arrived].largest) arrived = link;
    }
    if (arrived != kNoLink) {
      Path path = path_to(arrived, flow.demand.source);
      if (visits_twice(path)) return std::nullopt;
      return path;
    }
    for (const LinkId link : frontier) {
      const TileId through = target_[link];
      const auto permitted = static_cast<OutputSet>(turns_[link] & outputs(through));
      for (const Direction out : kAllDirections) {
        if ((permitted & turn_bit(out)) == 0) continue;
        reach(flow, Mesh::link(through, out), &labels_[link], link, below);
      }
    }
  }
  return std::nullopt;
}

void RouteBalancer::reach(const Flow& flow, LinkId link, const Label* from, LinkId before, Bytes below) {
  ++work_;
  if (!mesh_.link_alive(link)) return;
  const Bytes load = mesh_.plain_bytes(link, loads_[link] + flow.demand.bytes);
  const int hops = from == nullptr ? 1 : from->hops + 1;
  const int left = mesh_.distance(coords_[target_[link]], coords_[flow.demand.destination]);
  if (load >= below || hops + left > flow.longest) return;
  const Bytes largest = from == nullptr ? load : std::max(from->largest, load);
  Label& label = labels_[link];
  const bool first = label.search != search_;
  if (!first && (label.hops < hops || label.largest <= largest)) return;
  label = {search_, hops, largest, before};
  if (first) next_frontier_.push_back(link);
}

RouteBalancer::Path RouteBalancer::path_to(LinkId last, TileId source) const {
  Path path;
  for (LinkId link = last; link != kNoLink; link = labels_[link].before) path.push_back(link);
  std::reverse(path.begin(), path.end());
  require_invariant(Mesh::link_source(path.front()) == source, "a route starts at its source");
  return path;
}

/// Such a route would leave a tile by two outputs.
bool RouteBalancer::visits_twice(const Path& path) {
  ++visit_;
  for (const LinkId link : path) {
    std::uint32_t& visited = visited_[Mesh::link_source(link)];
    if (visited == visit_) return true;
    visited = visit_;
  }
  return false;
}

/// The tree with the claimed outputs, in which all other tiles join by the fewest hops that the turns permit;
/// nothing when some tile cannot.
std::optional<HopRow> RouteBalancer::complete(TileId destination) {
  HopRow row(mesh_.tile_count(), Hop::unreachable);
  row[destination] = Hop::local;
  std::vector<TileId> reached = {destination};
  reached.reserve(part_size_[destination]);
  for (std::size_t i = 0; i < reached.size(); ++i) {
    const TileId through = reached[i];
    for (const Direction side : kAllDirections) {
      const TileId tile = mesh_.neighbour(through, side);
      ++work_;
      if (tile == kNoTile || row[tile] != Hop::unreachable) continue;
      const LinkId link = Mesh::link(tile, opposite(side));
      if (!mesh_.link_alive(link)) continue;
      if (claimed(tile) && claim_out_[tile] != opposite(side)) continue;
      const std::optional<Direction> after = to_direction(row[through]);
      if (after && (turns_[link] & turn_bit(*after)) == 0) continue;
      row[tile] = to_hop(opposite(side));
      reached.push_back(tile);
    }
  }
  if (reached.size() != part_size_[destination]) return std::nullopt;
  return row;
}

void RouteBalancer::measure_parts() {
  part_size_.assign(mesh_.tile_count(), 0);
  for (TileId first = 0; first < mesh_.tile_count(); ++first) {
    if (!mesh_.alive(first) || part_size_[first] != 0) continue;
    std::vector<TileId> part = {first};
    part_size_[first] = 1;
    for (std::size_t i = 0; i < part.size(); ++i) {
      for (const Direction out : kAllDirections) {
        const LinkId link = Mesh::link(part[i], out);
        if (!mesh_.link_alive(link) || part_size_[target_[link]] != 0) continue;
        part_size_[target_[link]] = 1;
        part.push_back(target_[link]);
      }
    }
    for (const TileId tile : part) part_size_[tile] = static_cast<std::uint32_t>(part.size());
  }
}

}  // namespace wafersim::topology
