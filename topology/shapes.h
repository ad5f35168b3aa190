#pragma once

#include <vector>

#include "topology/mesh.h"

namespace wafersim::topology {

/// Positions inside a ROWSxCOLS rectangle, relative to its north-west corner.

/// Row by row, each from west to east.
std::vector<Coord> row_major(const Shape& shape);

/// Boustrophedon: row 0 west to east, row 1 east to west, ... Consecutive positions are neighbours.
std::vector<Coord> snake(const Shape& shape);

/// A Hamiltonian cycle when rows*cols is even and both are >= 2 (consecutive positions and last-to-first are
/// neighbours). Otherwise the closure is named in `closing_hops`: for odd x odd with both >= 3 a cycle in
/// which exactly one step has 2 hops; for a single row or column the folded order (0, 2, 4, ..., 5, 3, 1)
/// whose steps have at most 2 hops. `closing_hops` is the longest step, 1 for a true Hamiltonian cycle. A single
/// row or column that is `closed`, its last place being next to its first, is a cycle as it stands.
struct CycleOrder {
  std::vector<Coord> positions;
  int closing_hops = 1;
};
CycleOrder hamiltonian_cycle(const Shape& shape, bool closed = false);

/// The most square factorization rows x cols = count that fits `within` (rows <= within.rows, cols <=
/// within.cols). Wider than tall where both ways fit; taller than wide only when nothing else fits. Returns
/// {0, 0} when none does.
Shape most_square(int count, const Shape& within);

}  // namespace wafersim::topology
