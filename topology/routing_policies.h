#pragma once

#include <memory>

#include "topology/routing.h"

namespace wafersim::topology {

/// The routing functions behind make_routing, one source file each. `mesh` must outlive the result.

/// Dimension order, x first: first along the row to the destination's column, then along that column.
std::unique_ptr<Routing> make_xy_routing(const Mesh& mesh);
/// Dimension order, y first.
std::unique_ptr<Routing> make_yx_routing(const Mesh& mesh);
/// Shortest live paths under the up*/down* rule, one byte for each pair of tiles.
/// Throws PlanError above 65,536 tiles.
std::unique_ptr<Routing> make_table_routing(const Mesh& mesh);

}  // namespace wafersim::topology
