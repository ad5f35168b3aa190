#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/product.h"
#include "report/load_reports.h"
#include "topology/mesh.h"
#include "workloads/lowering.h"

namespace wafersim::report {

/// What is known of a scenario before it is simulated.
struct CheckFacts {
  std::string scenario_json;  ///< the resolved scenario as JSON text
  std::uint64_t parameters = 0;
  Product flops_per_iteration;
  std::uint64_t tiles_used = 0;
  std::uint64_t tiles_total = 0;  ///< live tiles of the wafer
  workloads::MemoryBound memory;
  std::string peak_tile;      ///< name of memory.peak_tile
  std::string overflow_tile;  ///< name of memory.overflow->tile, when there is one
  bool verified = false;  ///< the trace was checked; `faults` says what was found
  std::vector<std::string> faults;
  LoadReports loads = {};
};

/// One JSON object: scenario, parameters, flops_per_iteration, tiles_used, tiles_total, memory, fits,
/// mapping_report, routing_report, stream_report and, when the trace was verified, faults. Indented, with a final
/// newline.
std::string check_json(const CheckFacts& facts);

/// The same facts as a block of lines for a person; the scenario is left out.
std::string check_text(const CheckFacts& facts);

/// Which tile, named `tile`, may hold how much too much in which memory, of what, and when; empty when the plan fits.
std::string overflow_text(const workloads::MemoryBound& memory, const std::string& tile);

}  // namespace wafersim::report
