#pragma once

#include <optional>
#include <set>
#include <string>

#include "models/hardware.h"
#include "models/transformer.h"
#include "topology/mesh.h"
#include "workloads/mapping.h"
#include "workloads/plan.h"
#include "workloads/trace.h"

namespace wafersim::workloads {

struct LoweringInput {
  const models::TransformerSpec& model;
  const TrainingSpec& training;
  const PlanSpec& plan;
  const PlacementSpec& placement;
  const models::HardwareModel& hardware;
  const topology::Mesh& mesh;
};

/// Memory of the fullest tile by class, an upper bound of what a run reaches: statics plus every allocation that may be live at
/// once plus communication buffers for every message that may arrive early.
struct MemoryBound {
  /// A tile that may hold more than it has room for.
  struct Overflow {
    TileId tile = kNoTile;
    bool dram = false;                            ///< of its share of the DRAM, otherwise of its SRAM
    Bytes held = 0;
    Bytes capacity = 0;
    std::array<Bytes, kMemoryClasses> by_class{};  ///< in that memory, class by class at its largest
    std::string step;                              ///< in which the tile may hold most
    bool operator==(const Overflow&) const = default;
  };

  std::array<Bytes, kMemoryClasses> by_class{};   ///< largest over tiles, class by class
  std::array<Bytes, kMemoryClasses> sram_by_class{};  ///< of these, in SRAM
  Bytes peak_bytes = 0;                           ///< largest total of a tile
  Bytes peak_sram_bytes = 0;
  Bytes peak_dram_bytes = 0;
  TileId peak_tile = kNoTile;
  Bytes sram_capacity = 0;                        ///< of a tile
  Bytes dram_capacity = 0;                        ///< a tile's share of its die; 0 without DRAM
  bool fits = false;
  std::optional<Overflow> overflow;               ///< the largest one
  bool operator==(const MemoryBound&) const = default;
};

struct LoweredPlan {
  Mapping mapping;
  Trace trace;
  MemoryBound memory;
};

/// A part of the trace of a valid plan on its mapping: of stages in `whole` every tile, of others the first tile of the first
/// replica. Not to be run: the other ends of messages are missing.
Trace lower_stages(const LoweringInput& input, const Mapping& mapping, const std::set<int>& whole);

/// Lowers a plan into a trace: validates, maps, schedules. Throws PlanError when the plan cannot run.
LoweredPlan lower(const LoweringInput& input);

}  // namespace wafersim::workloads
