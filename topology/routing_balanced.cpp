#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/error.h"
#include "topology/balanced_routing.h"
#include "topology/route_balancer.h"
#include "topology/routing_policies.h"

namespace wafersim::topology {
namespace {

const std::string kName = "balanced";

void require_simple(const Mesh& mesh) {
  if (mesh.simple()) return;
  throw PlanError(fmt::format("router.routing: 'balanced' cannot route on a {}", mesh.topology_name()));
}

/// Sets of turns whose routes are refined, which takes most of the time.
constexpr std::size_t kRefinedStarts = 3;
/// The others are left out when refining the best lowers its largest load by less than this part of it.
constexpr Bytes kWorthwhilePart = 256;

/// The routes of a turn model before anything is moved.
class QuadrantOrderRouting final : public Routing {
 public:
  QuadrantOrderRouting(const Mesh& mesh, const TurnModel& model) : model_(model) {
    for (TileId tile = 0; tile < mesh.tile_count(); ++tile) coords_.push_back(mesh.coord(tile));
  }

  const std::string& name() const override { return kName; }
  Hop next(TileId at, TileId destination) const override {
    return quadrant_order_hop(model_, coords_[at], coords_[destination]);
  }
  TurnSets permitted_turns(const Mesh& mesh) const override { return turn_sets(model_, mesh); }

 private:
  TurnModel model_;
  std::vector<Coord> coords_;  ///< by tile
};

/// Trees of their own for some destinations; the others keep the routes of `base`.
class BalancedRouting final : public Routing {
 public:
  BalancedRouting(const Mesh& mesh, std::unique_ptr<Routing> base, std::map<TileId, HopRow> rows)
      : tiles_(mesh.tile_count()), base_(std::move(base)), first_hop_(tiles_, kNoRow) {
    hops_.reserve(rows.size() * tiles_);
    for (auto& [destination, row] : rows) {
      first_hop_[destination] = hops_.size();
      hops_.insert(hops_.end(), row.begin(), row.end());
      row = {};
    }
  }

  const std::string& name() const override { return kName; }

  Hop next(TileId at, TileId destination) const override {
    const std::size_t first = first_hop_[destination];
    return first == kNoRow ? base_->next(at, destination) : hops_[first + at];
  }

  /// Those of the base, and those that the trees really take.
  TurnSets permitted_turns(const Mesh& mesh) const override {
    TurnSets turns = base_->permitted_turns(mesh);
    for (const std::size_t first : first_hop_) {
      if (first == kNoRow) continue;
      for (TileId at = 0; at < tiles_; ++at) {
        const std::optional<Direction> in = to_direction(hops_[first + at]);
        if (!in) continue;
        const TileId through = mesh.neighbour(at, *in);
        if (const auto out = to_direction(hops_[first + through]))
          turns[Mesh::link(at, *in)] |= turn_bit(*out);
      }
    }
    return turns;
  }

 private:
  static constexpr std::size_t kNoRow = ~std::size_t{0};

  TileId tiles_;
  std::unique_ptr<Routing> base_;
  std::vector<std::size_t> first_hop_;  ///< by destination, into hops_; kNoRow for those of the base
  std::vector<Hop> hops_;               ///< by destination, then by tile
};

/// Where the search begins: routes, and the turns that they and all others may take.
struct Start {
  std::string rule;
  std::unique_ptr<Routing> routing;
  TurnSets turns;
};

/// The starts, made one after the other: with faults each has a table of its own.
class Starts {
 public:
  explicit Starts(const Mesh& mesh) : mesh_(mesh) {}

  std::size_t size() const { return needs_order() ? 4 : turn_models().size(); }
  Start make(std::size_t index) const { return needs_order() ? up_down(index) : turn_model(index); }

 private:
  /// Turn models know no way round faults, and forbid no cycle along a ring.
  bool needs_order() const { return mesh_.has_faults() || mesh_.wraps(); }
  Start turn_model(std::size_t index) const {
    const TurnModel& model = turn_models()[index];
    return {"turn model, " + model.name,
            model.permits_xy() ? make_xy_routing(mesh_) : make_quadrant_order_routing(mesh_, model),
            turn_sets(model, mesh_)};
  }

  /// The first is that of `table`.
  Start up_down(std::size_t index) const {
    const int right = mesh_.cols() - 1, bottom = mesh_.rows() - 1;
    const std::array<Coord, 4> corners = {Coord{0, 0}, {right, 0}, {0, bottom}, {right, bottom}};
    const UpDownOrder order(mesh_,
                            index == 0 ? roots_near_corners(mesh_) : roots_near(mesh_, corners[index]));
    const std::string root = order.live_tiles() == 0 ? "no tile" : mesh_.name(order.tile(0));
    return {"up*/down* from " + root, make_table_routing(mesh_, order), turn_sets(order, mesh_)};
  }

  const Mesh& mesh_;
};

bool delivers(const Routing& routing, const Mesh& mesh, const Demand& demand) {
  TileId at = demand.source;
  for (Hop hop = routing.next(at, demand.destination); hop != Hop::local;
       hop = routing.next(at, demand.destination)) {
    const std::optional<Direction> direction = to_direction(hop);
    if (!direction) return false;
    at = mesh.neighbour(at, *direction);
  }
  return true;
}

bool delivers_all(const Routing& routing, const Mesh& mesh, const Demands& demands) {
  return std::all_of(demands.begin(), demands.end(),
                     [&](const Demand& demand) { return delivers(routing, mesh, demand); });
}

/// Without what no live way can carry. `covering` has a route wherever there is one.
Demands deliverable(const Mesh& mesh, const Routing& covering, const Demands& demands) {
  Demands kept = merged(demands);
  std::erase_if(kept, [&](const Demand& demand) {
    return !mesh.alive(demand.source) || !mesh.alive(demand.destination) || !delivers(covering, mesh, demand);
  });
  return kept;
}

}  // namespace

std::unique_ptr<Routing> make_quadrant_order_routing(const Mesh& mesh, const TurnModel& model) {
  return std::make_unique<QuadrantOrderRouting>(mesh, model);
}

namespace {

/// The largest load that each start comes to, best first; the first among equals.
std::vector<std::size_t> ranked(const Starts& starts, const Mesh& mesh, const Demands& demands) {
  std::vector<std::pair<LoadSummary, std::size_t>> found;
  for (std::size_t index = 0; index < starts.size(); ++index) {
    const Start start = starts.make(index);
    RouteBalancer balancer(mesh, *start.routing, start.turns, demands);
    balancer.run();
    found.emplace_back(summarize(balancer.loads(), mesh), index);
  }
  std::sort(found.begin(), found.end());
  std::vector<std::size_t> order;
  for (const auto& [load, index] : found) order.push_back(index);
  return order;
}

/// The routes of xy where they are alive and need no second class of virtual channels, else those of `table`.
void measure_baseline(RoutingReport& report, const Routing& table, const Mesh& mesh, const Demands& demands) {
  const std::unique_ptr<Routing> xy = make_xy_routing(mesh);
  const bool xy_delivers = !mesh.wraps() && delivers_all(*xy, mesh, demands);
  report.baseline = xy_delivers ? "xy" : "table";
  report.before = summarize(link_loads(xy_delivers ? *xy : table, mesh, demands), mesh);
  report.bound = cut_bound(mesh, demands);
}

}  // namespace

BalancedRoutes balance_routes(const Mesh& mesh, const Demands& demands_in) {
  require_simple(mesh);
  const Starts starts(mesh);
  BalancedRoutes best;
  Demands demands;
  {
    const Start first = starts.make(0);
    demands = deliverable(mesh, *first.routing, demands_in);
    measure_baseline(best.report, *first.routing, mesh, demands);
  }
  std::vector<std::size_t> order = ranked(starts, mesh, demands);
  order.resize(std::min(order.size(), kRefinedStarts));
  for (const std::size_t index : order) {
    Start start = starts.make(index);
    RouteBalancer balancer(mesh, *start.routing, start.turns, demands);
    balancer.run();
    const Bytes unrefined = summarize(balancer.loads(), mesh).largest;
    balancer.refine(best.report.bound);
    const LoadSummary after = summarize(balancer.loads(), mesh);
    const bool worthwhile = unrefined - after.largest >= ceil_div(unrefined, kWorthwhilePart);
    if (best.routing && !(after < best.report.after)) continue;
    std::map<TileId, HopRow> rows = balancer.take_rows();
    best.report.after = after;
    best.report.turns = start.rule;
    best.report.moved_destinations = rows.size();
    best.routing = std::make_unique<BalancedRouting>(mesh, std::move(start.routing), std::move(rows));
    if (!worthwhile) break;
  }
  return best;
}

}  // namespace wafersim::topology
