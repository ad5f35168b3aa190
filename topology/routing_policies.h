#pragma once

#include <memory>

#include "topology/routing.h"
#include "topology/turn_models.h"
#include "topology/up_down_order.h"

namespace wafersim::topology {

/// The routing functions behind make_routing, one source file each. `mesh` must outlive the result.

/// Dimension order, x first: first along the row to the destination's column, then along that column.
std::unique_ptr<Routing> make_xy_routing(const Mesh& mesh);
/// Dimension order, y first.
std::unique_ptr<Routing> make_yx_routing(const Mesh& mesh);
/// Shortest live paths under the up*/down* rule, one byte for each pair of tiles.
/// Throws PlanError above 65,536 tiles.
std::unique_ptr<Routing> make_table_routing(const Mesh& mesh);
/// The same with other roots.
std::unique_ptr<Routing> make_table_routing(const Mesh& mesh, const UpDownOrder& order);
/// Minimal routes under a turn model (quadrant_order_hop()), without faults; named like `balanced`, which
/// starts from it. `mesh` must be without faults.
std::unique_ptr<Routing> make_quadrant_order_routing(const Mesh& mesh, const TurnModel& model);

}  // namespace wafersim::topology
