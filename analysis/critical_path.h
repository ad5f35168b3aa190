#pragma once

#include <array>
#include <string>
#include <vector>

#include "base/rational.h"
#include "sim/measurements.h"

namespace wafersim::analysis {

/// What a machine would be like: each part so many times as fast.
struct MachineChange {
  std::string name;              ///< "links 2x"
  Rational links{1};             ///< bandwidth of links, injection and ejection
  Rational compute{1};           ///< matrix and vector engines
  Rational memory{1};            ///< bandwidth of SRAM and DRAM
  bool instant_routers = false;  ///< router pipelines and turns take no cycles
  bool ideal_network = false;    ///< messages arrive in the cycle in which they are sent
};

/// Reads "links 2x", "compute 1.5x", "memory 4x" (factors above 0), "routers instant" or "network ideal".
/// Throws Error with exit status 2 for anything else.
MachineChange parse_change(const std::string& text);
/// Those that a critical path is asked about.
std::vector<MachineChange> usual_changes();

/// What remains of a critical path on another machine.
struct WhatIf {
  MachineChange change;
  /// No run with the same operations, messages and order of operations on each engine takes less: what is
  /// left of the path's operations and wires, with all its waiting for others, at buffers and for shared
  /// memory taken away.
  Cycle at_least = 0;
  /// The same with that waiting kept; on links, as much shorter as their serialization.
  Cycle with_waits = 0;
};

/// Where the cycles of a critical path went. All sums of `by_kind`, and those of `axes` with the operations',
/// are its length.
struct PathSummary {
  Cycle cycles = 0;
  std::size_t segments = 0;
  std::array<Cycle, sim::kPathKinds> by_kind{};
  // What `wire` consists of.
  Cycle router = 0;
  Cycle link = 0;
  Cycle serialization = 0;
  struct Axis {
    Cycle wire = 0;  ///< and overhead
    Cycle queueing = 0;
  };
  std::array<Axis, workloads::kAxes + 1> axes{};  ///< of messages; the last is Axis::none
  struct Step {
    workloads::StepKind kind = workloads::StepKind::custom;
    workloads::Pass pass = workloads::Pass::none;
    Cycle compute = 0;
    Cycle memory_stall = 0;  ///< and memory_wait
  };
  std::vector<Step> steps;  ///< ascending by kind, then pass
  struct Link {
    topology::LinkId link = 0;
    Cycle queue = 0;  ///< behind packets
    Cycle room = 0;   ///< for room behind the link
  };
  std::vector<Link> links;      ///< on which the path waited, longest first
  std::vector<WhatIf> what_if;  ///< of usual_changes()

  Cycle compute() const;
  Cycle queueing() const;
};

PathSummary summarize(const sim::PathMeasurement& path, const workloads::Trace& trace);
WhatIf what_if(const std::vector<sim::PathSegment>& segments, const MachineChange& change);

}  // namespace wafersim::analysis
