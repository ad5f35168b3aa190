#include "models/flit_router.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "models/hardware.h"

namespace wafersim::models {
namespace {

constexpr int kLongestStage = 1000;

void require_stage(int cycles, int least, const char* name) {
  if (cycles >= least && cycles <= kLongestStage) return;
  throw PlanError(
      fmt::format("router.pipeline_stages.{}: {} is out of range; valid: {} to {}", name, cycles, least, kLongestStage));
}

void check_stages(const PipelineStages& stages) {
  require_stage(stages.routing, 0, "routing");
  require_stage(stages.vc_allocation, 1, "vc_allocation");
  require_stage(stages.switch_allocation, 1, "switch_allocation");
  require_stage(stages.traversal, 0, "traversal");
  require_stage(stages.credit, 0, "credit");
  if (!stages.speculative || (stages.vc_allocation == 1 && stages.switch_allocation == 1)) return;
  throw PlanError(
      "router.pipeline_stages.speculative: both allocations must take one cycle, because the switch is allocated in the "
      "cycle in which the VC is");
}

/// The smallest buffer in which single flits of one VC keep a link busy: those that a router sends before the credit of the
/// first is back.
unsigned default_buffer(const LinkModel& link, const HardwareModel& model) {
  const PipelineStages& stages = model.flit.stages;
  const int front = stages.routing + (stages.speculative ? 0 : stages.vc_allocation);
  const auto in_router = static_cast<Cycle>(front + stages.traversal + stages.credit);
  const Cycle loop = in_router + 2 + link.cycles + link.credit_cycles;
  const Rational flit_cycles = Rational(static_cast<std::int64_t>(model.flit.flit_bytes)) / link.bytes_per_cycle;
  const Rational flits = Rational(static_cast<std::int64_t>(loop)) / std::max(flit_cycles, Rational(1));
  return static_cast<unsigned>(std::max<std::uint64_t>(2, flits.ceil()));
}

unsigned buffer_flits(const RouterSpec& router, const std::vector<topology::LinkClass>& classes, const HardwareModel& model) {
  if (router.flit.vc_buffer_flits) return static_cast<unsigned>(*router.flit.vc_buffer_flits);
  const bool whole_packets = model.fidelity == Fidelity::flit && model.flit.switching == Switching::cut_through;
  if (router.vc_buffer || whole_packets) {
    const Bytes flits = model.vc_buffer_bytes / model.flit.flit_bytes;
    if (flits == 0) {
      throw PlanError(fmt::format("router.vc_buffer: {} B hold no flit of {} B", model.vc_buffer_bytes, model.flit.flit_bytes));
    }
    return static_cast<unsigned>(std::min<Bytes>(flits, 1U << 30));
  }
  unsigned buffer = 0;
  for (const topology::LinkClass& link_class : classes) buffer = std::max(buffer, default_buffer(model.link(link_class), model));
  return buffer;
}

/// Flits take whole cycles: one of plain links, injection and ejection, one or more of other links.
void check_cut_through(const RouterSpec& router, const std::vector<topology::LinkClass>& classes, const HardwareModel& model) {
  const char* const chosen = router.flit.switching ? "" : " (auto where router.pipeline is 0 cycles)";
  const Rational flit(static_cast<std::int64_t>(model.flit.flit_bytes));
  if (model.link_bytes_per_cycle != flit || model.injection_bytes_per_cycle != flit || model.ejection_bytes_per_cycle != flit) {
    throw PlanError(fmt::format("router.switching: cut_through{} needs links, injection and ejection of one flit ({} B) a cycle",
                                chosen, model.flit.flit_bytes));
  }
  const bool whole = std::all_of(classes.begin(), classes.end(), [&](const topology::LinkClass& link_class) {
    const Rational cycles = flit / model.link(link_class).bytes_per_cycle;
    return cycles.is_integer() && cycles >= Rational(1);
  });
  if (whole) return;
  throw PlanError(fmt::format("wafer.reticle.bandwidth: with router.switching cut_through{} a link over a border must take a "
                              "flit ({} B) in whole cycles, one or more",
                              chosen, model.flit.flit_bytes));
}

}  // namespace

PipelineStages stages_of(PipelinePreset preset) {
  PipelineStages stages;
  if (preset != PipelinePreset::p5) stages.routing = 0;
  stages.speculative = preset == PipelinePreset::p3;
  return stages;
}

PipelineStages stages_of_length(int cycles) {
  if (cycles == 2) return stages_of(PipelinePreset::p3);
  if (cycles == 3) return stages_of(PipelinePreset::p4);
  PipelineStages stages = stages_of(cycles < 2 ? PipelinePreset::p3 : PipelinePreset::p5);
  stages.traversal = std::max(0, cycles < 2 ? 0 : cycles - 3);
  return stages;
}

std::optional<PipelineStages> FlitRouterSpec::named_stages() const {
  if (stages) return stages;
  if (preset) return stages_of(*preset);
  return std::nullopt;
}

Bytes flit_size(const RouterSpec& router, const HardwareModel& model) {
  return router.flit.flit_bytes ? router.flit.flit_bytes->bytes : model.link_bytes_per_cycle.ceil();
}

void resolve_flit_router(const RouterSpec& router, const std::vector<topology::LinkClass>& classes, HardwareModel& model) {
  const FlitRouterSpec& spec = router.flit;
  FlitModel& flit = model.flit;
  flit.allocator = spec.allocator;
  flit.switching = router.switching();
  flit.flit_bytes = flit_size(router, model);
  const std::optional<PipelineStages> stages = spec.named_stages();
  flit.stages = stages ? *stages : stages_of_length(static_cast<int>(std::min<Cycle>(model.router_cycles, kLongestStage)));
  check_stages(flit.stages);
  flit.vc_buffer_flits = buffer_flits(router, classes, model);
  if (model.fidelity != Fidelity::flit) return;
  if (flit.switching == Switching::cut_through) return check_cut_through(router, classes, model);
  if (model.router_cycles == 0) {
    throw PlanError("router.pipeline: 0 cycles; a wormhole router takes at least one (router.switching: cut_through or auto may "
                    "take none)");
  }
}

}  // namespace wafersim::models
