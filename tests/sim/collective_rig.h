#pragma once

#include "models/hardware.h"
#include "workloads/collectives.h"
#include "workloads/trace.h"

namespace wafersim::test {

/// One collective over all tiles of a mesh, ranks row by row, on an otherwise idle machine.
struct CollectiveCase {
  topology::Shape mesh;
  workloads::Collective algorithm = workloads::Collective::ring;
  workloads::CollectiveKind kind = workloads::CollectiveKind::all_reduce;
  Bytes bytes = 0;             ///< of the whole vector
  std::uint64_t elements = 0;  ///< 0: additions cost nothing
  int chunks = 1;
};

workloads::Trace collective_trace(const CollectiveCase& collective);

/// Simulated cycles, in a process of its own.
Cycle collective_cycles(const CollectiveCase& collective, const models::HardwareModel& hardware);

}  // namespace wafersim::test
