#pragma once

#include <functional>

#include "sim/measurements.h"

namespace wafersim::bench {

/// What a benchmark reports of one simulation.
struct ChildResult {
  double cpu_seconds = 0;
  std::uint64_t events = 0;
  std::uint64_t packet_hops = 0;
  std::uint64_t messages = 0;
  std::uint64_t cycles = 0;
  std::uint64_t peak_rss_bytes = 0;
};

/// Runs `simulate` in a process of its own (SystemC allows one simulation in a process) and returns its figures. CPU time
/// and memory are the whole child's: building the trace and elaboration included.
/// Throws std::runtime_error when the child fails.
ChildResult run_in_child(const std::function<sim::Measurements()>& simulate);

}  // namespace wafersim::bench
