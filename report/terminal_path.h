#pragma once

#include <string>

#include "analysis/critical_path.h"
#include "report/terminal_canvas.h"
#include "topology/mesh.h"

namespace wafersim::report {

/// The section of the critical path: what it consists of, where it waits, and what other machines could gain.
/// Private to this folder.
void draw_path(Canvas& canvas, const analysis::PathSummary& path, const topology::Mesh& mesh);

/// "at most 11.2 % shorter", "as long", "at least 3.0 % longer": the length of a run that `cycles` are the
/// least of, beside `base`.
std::string bound_text(Cycle cycles, Cycle base);

/// "1.8 % shorter", "3.0 % longer", "as long".
std::string change_text(Cycle cycles, Cycle base);

}  // namespace wafersim::report
