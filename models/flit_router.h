#pragma once

#include <optional>
#include <vector>

#include "base/quantity.h"
#include "base/units.h"
#include "topology/mesh.h"

namespace wafersim::models {

/// How a flit router hands on packets. `wormhole`: flits move as soon as there is room for one of them, and a packet may lie
/// in many routers at once. `cut_through`: a packet is granted its output only when the buffer behind has room for all of it,
/// and keeps the output until its tail has left.
enum class Switching { wormhole, cut_through };

/// Separable allocators of VCs and switch ports, one iteration. `islip`: outputs grant first, inputs accept (McKeown 1999),
/// pointers move past accepted grants only. `round_robin`: inputs choose first, outputs arbitrate among the chosen.
enum class Allocator { islip, round_robin };

/// Named pipelines: a head spends 3, 4 or 5 cycles in a router and on the link behind it, when that has a latency of one.
/// p5 has a stage for each of routing, VC allocation, switch allocation and traversal; p4 looks ahead for the route; p3 also
/// allocates VC and switch in the same cycle, the latter speculatively (Peh and Dally 2001).
enum class PipelinePreset { p3, p4, p5 };

/// Cycles of each stage of a flit router.
struct PipelineStages {
  int routing = 1;            ///< 0: look-ahead, known when the head arrives
  int vc_allocation = 1;
  int switch_allocation = 1;
  int traversal = 1;
  int credit = 0;             ///< on top of the credit latency
  bool speculative = false;   ///< switch allocation does not wait for VC allocation

  /// From the arrival of a head to the cycle in which it is on the link, without contention: R of a packet router.
  int cycles() const {
    const int allocation = speculative ? switch_allocation : vc_allocation + switch_allocation;
    return routing + allocation + traversal;
  }
  bool operator==(const PipelineStages&) const = default;
};

PipelineStages stages_of(PipelinePreset preset);
/// The stages of a router of `cycles` >= 1: p3, p4 or p5 without their link, longer ones with a longer traversal; 1 is a
/// speculative look-ahead router whose traversal is part of the allocation cycle.
PipelineStages stages_of_length(int cycles);

/// What a scenario says of flit routers, in its `router` section.
struct FlitRouterSpec {
  std::optional<DataSize> flit_bytes;          ///< absent = what a link carries in a cycle, rounded up
  std::optional<int> vc_buffer_flits;          ///< absent = from vc_buffer, or the smallest that keeps a link busy
  std::optional<PipelinePreset> preset;
  std::optional<PipelineStages> stages;
  Allocator allocator = Allocator::islip;
  std::optional<Switching> switching;          ///< absent = see RouterSpec::switching

  /// Nothing where only the pipeline's length is given.
  std::optional<PipelineStages> named_stages() const;
};

/// What the flit engine is made of, resolved; the rest is in HardwareModel.
struct FlitModel {
  Bytes flit_bytes = 0;
  unsigned vc_buffer_flits = 0;  ///< of each VC of a mesh input
  PipelineStages stages;
  Allocator allocator = Allocator::islip;
  Switching switching = Switching::wormhole;
};

struct RouterSpec;
struct HardwareModel;

/// Bytes of a flit: what a link carries in a cycle, rounded up, unless the scenario says otherwise.
Bytes flit_size(const RouterSpec& router, const HardwareModel& model);
/// Fills `model.flit`; the links, the packet size, the pipeline and the packet buffers of `model` are there already. `classes`
/// are those of the mesh's links. Throws PlanError when a value is out of its range.
void resolve_flit_router(const RouterSpec& router, const std::vector<topology::LinkClass>& classes, HardwareModel& model);

/// VCs of an input that a flit router can have.
inline constexpr int kMaxFlitVcs = 16;

}  // namespace wafersim::models
