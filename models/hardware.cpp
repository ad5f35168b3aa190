#include "models/hardware.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"

namespace wafersim::models {
namespace {

void require(bool holds, const char* name, const std::string& value, const char* range) {
  if (!holds) throw PlanError(fmt::format("{}: {} is out of range; it must be {}", name, value, range));
}

void require_at_least(std::int64_t value, std::int64_t least, const char* name) {
  if (value < least)
    throw PlanError(fmt::format("{}: {} is out of range; it must be at least {}", name, value, least));
}

Cycle resolve_duration(const Duration& duration, const Frequency& clock, Cycle least, const char* name) {
  require(duration.value >= Rational(0), name, to_string(duration), "at least 0");
  const Cycle cycles = duration.cycles(clock);
  if (cycles < least) {
    throw PlanError(
        fmt::format("{}: {} is {} cycles; it must be at least {}", name, to_string(duration), cycles, least));
  }
  return cycles;
}

Rational resolve_bandwidth(const Bandwidth& bandwidth, const Frequency& clock, const char* name) {
  require(bandwidth.value > Rational(0), name, to_string(bandwidth), "above 0");
  return bandwidth.bytes_per_cycle(clock);
}

Rational resolve_compute(const ComputeRate& rate, const Frequency& clock, const char* name) {
  require(rate.value > Rational(0), name, to_string(rate), "above 0");
  return rate.flops_per_cycle(clock);
}

void resolve_core(const CoreSpec& core, HardwareModel& model) {
  const MatrixSpec& matrix = core.matrix;
  require(matrix.shape.rows >= 1 && matrix.shape.cols >= 1, "wafer.core.matrix.shape",
          to_string(matrix.shape), "at least 1x1");
  const Rational flops_per_array(2 * std::int64_t{matrix.shape.rows} * matrix.shape.cols);
  if (matrix.peak) {
    model.arrays = resolve_compute(*matrix.peak, model.clock, "wafer.core.matrix.peak") / flops_per_array;
  } else {
    require_at_least(matrix.arrays, 1, "wafer.core.matrix.arrays");
    model.arrays = Rational(matrix.arrays);
  }
  model.array = matrix.shape;
  model.dataflow = matrix.dataflow;
  model.matrix_flops_per_cycle = flops_per_array * model.arrays;
  model.vector_flops_per_cycle = resolve_compute(core.vector.peak, model.clock, "wafer.core.vector.peak");
  model.launch_overhead =
      resolve_duration(core.launch_overhead, model.clock, 0, "wafer.core.launch_overhead");
  model.kernel_table = core.table;
}

void resolve_memory(const WaferSpec& wafer, HardwareModel& model) {
  model.sram_capacity = wafer.sram.capacity.bytes;
  if (wafer.sram.bandwidth) {
    model.sram_bytes_per_cycle =
        resolve_bandwidth(*wafer.sram.bandwidth, model.clock, "wafer.sram.bandwidth");
  }
  if (!wafer.dram) return;
  const DramSpec& dram = *wafer.dram;
  require(dram.die.rows >= 1 && dram.die.cols >= 1, "wafer.dram.die", to_string(dram.die), "at least 1x1");
  model.dram_capacity = dram.capacity.bytes;
  model.dram_bytes_per_cycle = resolve_bandwidth(dram.bandwidth, model.clock, "wafer.dram.bandwidth");
  model.dram_die = dram.die;
}

void resolve_links(const WaferSpec& wafer, HardwareModel& model) {
  const NicSpec& nic = wafer.nic;
  model.link_bytes_per_cycle = resolve_bandwidth(wafer.link.bandwidth, model.clock, "wafer.link.bandwidth");
  model.injection_bytes_per_cycle = resolve_bandwidth(nic.injection_bandwidth.value_or(wafer.link.bandwidth),
                                                      model.clock, "wafer.nic.injection_bandwidth");
  model.ejection_bytes_per_cycle = resolve_bandwidth(nic.ejection_bandwidth.value_or(wafer.link.bandwidth),
                                                     model.clock, "wafer.nic.ejection_bandwidth");
  model.nic_ports = nic.ports;
  model.link_cycles = resolve_duration(wafer.link.latency, model.clock, 1, "wafer.link.latency");
  model.injection_cycles =
      resolve_duration(nic.injection_latency, model.clock, 0, "wafer.nic.injection_latency");
  model.ejection_cycles =
      resolve_duration(nic.ejection_latency, model.clock, 0, "wafer.nic.ejection_latency");
  model.message_overhead =
      resolve_duration(nic.message_overhead, model.clock, 0, "wafer.nic.message_overhead");
  model.stream_cycles = resolve_duration(nic.stream_latency, model.clock, 0, "wafer.nic.stream_latency");
}

/// Those that links of the wafer belong to; dead ones change nothing.
std::vector<topology::LinkClass> link_classes(const WaferSpec& wafer) {
  topology::MeshSpec spec = mesh_spec(wafer);
  if (spec.wrap == topology::Wrap::none && !spec.reticle && !spec.express && !spec.wafers && spec.concentration.size() == 1) {
    return {topology::LinkClass{}};
  }
  spec.dead_tiles.clear();
  spec.dead_links.clear();
  return topology::Mesh(spec).link_classes();
}

/// What links that are not plain differ in; called after resolve_links.
void resolve_other_links(const WaferSpec& wafer, HardwareModel& model) {
  if (wafer.wrap_latency) model.wrap_cycles = resolve_duration(*wafer.wrap_latency, model.clock, 1, "wafer.wrap_latency");
  if (wafer.express && wafer.express->latency) {
    model.express_cycles = resolve_duration(*wafer.express->latency, model.clock, 1, "wafer.express.latency");
  }
  if (wafer.wafers) model.wafer_cycles = resolve_duration(wafer.wafers->latency, model.clock, 1, "wafer.wafers.latency");
  if (!wafer.reticle || !wafer.reticle->latency) return;
  const Cycle border = resolve_duration(*wafer.reticle->latency, model.clock, 1, "wafer.reticle.latency");
  if (border < model.link_cycles) {
    throw PlanError(fmt::format("wafer.reticle.latency: {} is {} cycles; it must be at least the {} of wafer.link.latency",
                                to_string(*wafer.reticle->latency), border, model.link_cycles));
  }
  model.border_cycles = border - model.link_cycles;
}

/// The buffer of a VC where packets are not parted, as the scenario gives it: in bytes or in flits.
std::optional<DataSize> packet_buffer(const RouterSpec& router, const HardwareModel& model) {
  if (!router.flit.vc_buffer_flits) return router.vc_buffer;
  return DataSize{static_cast<Bytes>(*router.flit.vc_buffer_flits) * flit_size(router, model)};
}

/// Reads the link fields of `model`; called after resolve_links.
void resolve_router(const RouterSpec& router, const std::vector<topology::LinkClass>& classes, HardwareModel& model) {
  require_at_least(router.virtual_channels, 1, "router.virtual_channels");
  model.routing = router.routing;
  model.virtual_channels = router.virtual_channels;
  const std::optional<PipelineStages> stages = router.flit.named_stages();
  model.router_cycles = stages ? static_cast<Cycle>(stages->cycles())
                               : resolve_duration(router.pipeline, model.clock, 0, "router.pipeline");
  model.turn_cycles = resolve_duration(router.turn, model.clock, 0, "router.turn");
  constexpr Cycle kLongestTurn = 65535;
  require(model.turn_cycles <= kLongestTurn, "router.turn", to_string(router.turn), "at most 65535 cycles");
  model.credit_cycles = router.credit_latency ? resolve_duration(*router.credit_latency, model.clock, 1,
                                                                 "router.credit_latency")
                                              : model.link_cycles;
  model.credits_take_link = !router.credit_latency;
  // The injection link fills a VC of the first router, so its latency counts like a mesh link's.
  const auto smallest_busy = [&router, &classes, &model] {
    const Bytes unit = model.fidelity == Fidelity::flit ? flit_size(router, model) : 1;
    const Bytes packet = ceil_div(model.packet_bytes, unit) * unit;
    Bytes buffer = 0;
    for (const topology::LinkClass& link_class : classes) {
      const LinkModel link = model.link(link_class);
      buffer = std::max(buffer, default_vc_buffer(packet, link.bytes_per_cycle, model.router_cycles + model.turn_cycles,
                                                  std::max(link.cycles, model.injection_cycles), link.credit_cycles));
    }
    return buffer;
  };
  if (model.fidelity == Fidelity::flit && router.switching() == Switching::wormhole) {
    model.vc_buffer_bytes = smallest_busy();  // between network interface and router; the mesh counts in flits
    return resolve_flit_router(router, classes, model);
  }
  const std::optional<DataSize> given = packet_buffer(router, model);
  model.vc_buffer_bytes = given ? given->bytes : smallest_busy();
  if (model.vc_buffer_bytes < model.packet_bytes) {
    throw PlanError(fmt::format("router.vc_buffer: {} is smaller than one packet (network.packet_bytes: {})",
                                to_string(*given), to_string(DataSize{model.packet_bytes})));
  }
  resolve_flit_router(router, classes, model);
}

}  // namespace

const char* to_string(Fidelity fidelity) {
  switch (fidelity) {
    case Fidelity::packet:
      return "packet";
    case Fidelity::flit:
      return "flit";
    case Fidelity::ideal:
      return "ideal";
    case Fidelity::analytic:
      return "analytic";
  }
  return "?";
}

const char* to_string(CostModel model) {
  switch (model) {
    case CostModel::alpha_beta_contention:
      return "alpha_beta_contention";
    case CostModel::alpha_beta:
      return "alpha_beta";
    case CostModel::roofline:
      return "roofline";
  }
  return "?";
}

topology::Shape all_tiles(const WaferSpec& wafer) {
  const topology::Shape& one = wafer.mesh.shape;
  if (!wafer.wafers) return one;
  return {one.rows * wafer.wafers->grid.rows, one.cols * wafer.wafers->grid.cols};
}

topology::MeshSpec mesh_spec(const WaferSpec& wafer) {
  topology::MeshSpec spec = wafer.mesh;
  spec.shape = all_tiles(wafer);
  spec.wrap_layout = wafer.wrap_latency ? topology::WrapLayout::straight : topology::WrapLayout::folded;
  const auto rate = [&wafer](const std::optional<Bandwidth>& bandwidth, const char* name) {
    if (!bandwidth) return Rational(1);
    require(wafer.clock.hertz > Rational(0), "wafer.clock", to_string(wafer.clock), "above 0");
    return resolve_bandwidth(*bandwidth, wafer.clock, name) /
           resolve_bandwidth(wafer.link.bandwidth, wafer.clock, "wafer.link.bandwidth");
  };
  if (wafer.reticle) {
    spec.reticle.emplace(topology::ReticleGrid{wafer.reticle->every, rate(wafer.reticle->bandwidth, "wafer.reticle.bandwidth")});
  }
  if (wafer.wafers && wafer.wafers->grid.size() > 1) {
    spec.wafers.emplace(topology::WaferGrid{wafer.mesh.shape, rate(wafer.wafers->bandwidth, "wafer.wafers.bandwidth")});
  }
  if (wafer.express) {
    const ExpressSpec& express = *wafer.express;
    spec.express.emplace(topology::ExpressGrid{express.span, express.every, rate(express.bandwidth, "wafer.express.bandwidth")});
  }
  return spec;
}

LinkModel HardwareModel::link(const topology::LinkClass& link_class) const {
  Cycle cycles = link_cycles * static_cast<Cycle>(link_class.tiles);
  if (link_class.kind == topology::LinkKind::folded) cycles *= 2;
  if (link_class.kind == topology::LinkKind::express && express_cycles) cycles = *express_cycles;
  if (link_class.kind == topology::LinkKind::wrap) {
    require_invariant(wrap_cycles.has_value(), "a straight ring has no latency for its last link");
    cycles = *wrap_cycles;
  }
  if (link_class.kind == topology::LinkKind::wafer) {
    require_invariant(wafer_cycles.has_value(), "links between wafers have no latency");
    cycles = *wafer_cycles;
  }
  cycles += static_cast<Cycle>(link_class.borders) * border_cycles;
  const bool plain = link_class == topology::LinkClass{};
  return {link_bytes_per_cycle * link_class.rate, cycles, plain || !credits_take_link ? credit_cycles : cycles};
}

HardwareModel resolve_hardware(const WaferSpec& wafer, const RouterSpec& router, const NetworkSpec& network) {
  require(wafer.clock.hertz > Rational(0), "wafer.clock", to_string(wafer.clock), "above 0");
  require(network.packet_bytes.bytes >= 1, "network.packet_bytes", to_string(network.packet_bytes),
          "at least 1 B");
  HardwareModel model;
  model.clock = wafer.clock;
  model.fidelity = network.fidelity;
  model.cost_model = network.cost_model;
  model.packet_bytes = network.packet_bytes.bytes;
  resolve_core(wafer.core, model);
  resolve_memory(wafer, model);
  resolve_links(wafer, model);
  resolve_other_links(wafer, model);
  model.energy = wafer.energy;
  resolve_router(router, link_classes(wafer), model);
  return model;
}

Bytes default_vc_buffer(Bytes packet_bytes, const Rational& link_bytes_per_cycle, Cycle router, Cycle link,
                        Cycle credit) {
  const Rational packet_cycles = Rational(static_cast<std::int64_t>(packet_bytes)) / link_bytes_per_cycle;
  // A fractional serialization loses up to one cycle of the loop: credits return at the ceil of a tail's
  // time, while the next packet may be granted at the floor of the port's.
  const Cycle loop = router + link + credit + (packet_cycles.is_integer() ? 0 : 1);
  const Cycle others = (Rational(static_cast<std::int64_t>(loop)) / packet_cycles).ceil();
  return packet_bytes * std::max<Cycle>(2, 1 + others);
}

}  // namespace wafersim::models
