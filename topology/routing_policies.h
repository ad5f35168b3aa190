#pragma once

#include <memory>

#include "topology/routing.h"
#include "topology/turn_models.h"
#include "topology/up_down_order.h"

namespace wafersim::topology {

/// The policies behind make_routing and make_routing_policy, one source file each. `mesh` must outlive the
/// result.

/// Dimension order, x first: first along the row to the destination's column, then along that column. Where rows or
/// columns are rings, the shorter way round (make_ring_order_routing()).
std::unique_ptr<Routing> make_xy_routing(const Mesh& mesh);
/// Dimension order, y first.
std::unique_ptr<Routing> make_yx_routing(const Mesh& mesh);
/// Dimension order on a mesh with rings, in two classes of virtual channels parted by a dateline on each ring.
std::unique_ptr<Routing> make_ring_order_routing(const Mesh& mesh, std::string name, Dimension first);
/// Shortest live paths under the up*/down* rule, one byte for each pair of tiles.
/// Throws PlanError above 65,536 tiles.
std::unique_ptr<Routing> make_table_routing(const Mesh& mesh);
/// The same with other roots.
std::unique_ptr<Routing> make_table_routing(const Mesh& mesh, const UpDownOrder& order);
/// Minimal routes under a turn model (quadrant_order_hop()), without faults; named like `balanced`, which
/// starts from it. `mesh` must be without faults.
std::unique_ptr<Routing> make_quadrant_order_routing(const Mesh& mesh, const TurnModel& model);

/// Drawn for each packet. With faults o1turn needs both routes of every pair, valiant a connected mesh.
std::unique_ptr<RoutingPolicy> make_o1turn_routing(const Mesh& mesh);
std::unique_ptr<RoutingPolicy> make_valiant_routing(const Mesh& mesh);

/// Adaptive: see make_adaptive_routing() for faults.
std::unique_ptr<RoutingPolicy> make_west_first_routing(const Mesh& mesh);
std::unique_ptr<RoutingPolicy> make_north_last_routing(const Mesh& mesh);
std::unique_ptr<RoutingPolicy> make_negative_first_routing(const Mesh& mesh);
std::unique_ptr<RoutingPolicy> make_odd_even_routing(const Mesh& mesh);

}  // namespace wafersim::topology
