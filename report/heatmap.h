#pragma once

#include "report/terminal_canvas.h"
#include "sim/measurements.h"
#include "topology/mesh.h"

namespace wafersim::report {

/// Draws the mesh with the compute utilization of its tiles, north-west corner first. Larger meshes are drawn
/// with several tiles to a cell, at most 64 x 32 cells; a cell shows the mean of its used tiles, a dot when
/// it has none. Private to this folder.
void draw_heatmap(Canvas& canvas, const sim::Measurements& measurements, const topology::Mesh& mesh);

}  // namespace wafersim::report
