#pragma once

#include <vector>

#include "workloads/streamed_collective.h"

namespace wafersim::test {

/// A row of wse_line_collectives.csv.
struct WseRow {
  int tiles = 0;
  Bytes wavelets = 0;
  Cycle star = 0, chain = 0, tree = 0;
  int group = 0;
  Cycle two_phase = 0, bound = 0, broadcast = 0, ring = 0;
};
std::vector<WseRow> wse_rows();

/// A row of `tiles` tiles of a WSE-2, a wavelet of 4 bytes a packet, as scenarios/studies/wse/line.yaml has it.
models::HardwareModel wse_line(int tiles);

struct WseResult {
  Cycle cycles = 0;
  Cycle model = 0;  ///< by models::spatial_cost
};
/// One collective of a row, in a process of its own.
WseResult wse_collective(const WseRow& row, workloads::StreamedKind kind, workloads::StreamedAlgorithm algorithm,
                         std::optional<workloads::StreamRelay> relay = {});

}  // namespace wafersim::test
