#include "sim/flit_engine.h"

#include <algorithm>
#include <fmt/format.h>

#include "base/error.h"

namespace wafersim::sim {
namespace {

constexpr std::uint32_t kUnlimited = std::uint32_t{1} << 30;
constexpr std::size_t kAhead = 6;  ///< arrivals whose data is asked for in advance

/// Cycles that a flit takes on the slowest link.
Cycle slowest_flit(const topology::Mesh& mesh, const models::HardwareModel& hardware) {
  Rational rate = hardware.link_bytes_per_cycle;
  for (const topology::LinkClass& link_class : mesh.link_classes()) rate = std::min(rate, hardware.link(link_class).bytes_per_cycle);
  return cycles_at_rate(hardware.flit.flit_bytes, rate);
}

Cycle longest_delay(const topology::Mesh& mesh, const models::HardwareModel& hardware) {
  const models::PipelineStages& stages = hardware.flit.stages;
  const auto stage = static_cast<Cycle>(std::max({stages.routing, stages.vc_allocation, stages.switch_allocation}));
  const auto fixed = static_cast<Cycle>(stages.traversal + stages.credit);
  Cycle link = hardware.injection_cycles + 1, credit = hardware.credit_cycles;
  for (const topology::LinkClass& link_class : mesh.link_classes()) {
    link = std::max(link, hardware.link(link_class).cycles);
    credit = std::max(credit, hardware.link(link_class).credit_cycles);
  }
  return 8 + stage + fixed + link + hardware.ejection_cycles + credit + hardware.router_cycles + hardware.turn_cycles +
         slowest_flit(mesh, hardware);
}

}  // namespace

std::unique_ptr<FlitNetwork> FlitNetwork::make(const FlitNetworkSpec& spec, FlitTerminals& terminals) {
  const models::HardwareModel& hardware = spec.hardware;
  if (hardware.virtual_channels > models::kMaxFlitVcs) {
    throw PlanError(fmt::format("router.virtual_channels: {} is out of range; a flit router has at most {}",
                                hardware.virtual_channels, models::kMaxFlitVcs));
  }
  constexpr std::uint32_t kMaxBuffer = 0xffff;
  const std::uint32_t largest = std::max(hardware.flit.vc_buffer_flits, spec.injection_buffer_flits);
  if (largest > kMaxBuffer) {
    throw PlanError(fmt::format("a buffer of {} flits of {} B is too large; valid: at most {} flits (router.flit_bytes, "
                                "router.vc_buffer, network.packet_bytes)",
                                largest, hardware.flit.flit_bytes, kMaxBuffer));
  }
  const PortLayout layout(spec.mesh, hardware.nic_ports);
  if (spec.mesh.simple()) {
    if (layout.per_direction()) return std::make_unique<FlitEngine<kPortPerDirection>>(spec, terminals);
    return std::make_unique<FlitEngine<kSinglePort>>(spec, terminals);
  }
  return std::make_unique<FlitEngine<kManyPorts>>(spec, terminals);
}

std::uint32_t FlitTerminals::copied(std::uint32_t /*packet*/) {
  throw InternalError("a packet was copied for terminals that know of no multicasts");
}

std::uint64_t FlitNetwork::flit_hops() const {
  std::uint64_t hops = 0;
  for (const std::uint64_t flits : link_flits_) hops += flits;
  return hops;
}

template <unsigned kPorts>
FlitEngine<kPorts>::FlitEngine(const FlitNetworkSpec& spec, FlitTerminals& terminals)
    : FlitNetwork(spec.routes),
      terminals_(terminals),
      mesh_(spec.mesh),
      layout_(spec.mesh, spec.hardware.nic_ports),
      routes_(spec.routes),
      multicasts_(spec.multicasts),
      stages_(spec.hardware.flit.stages),
      allocator_(spec.hardware.flit.allocator),
      cut_through_(spec.hardware.flit.switching == models::Switching::cut_through),
      report_heads_(spec.report_heads),
      limited_ejection_(spec.ejection_buffer_flits != 0),
      vcs_(static_cast<unsigned>(spec.hardware.virtual_channels)),
      vc_bits_(static_cast<unsigned>(std::bit_width(vcs_ - 1U))),
      mesh_buffer_(spec.hardware.flit.vc_buffer_flits),
      turn_cycles_(spec.hardware.turn_cycles),
      flit_bytes_(spec.hardware.flit.flit_bytes),
      arrivals_(longest_delay(spec.mesh, spec.hardware)),
      credits_(arrivals_.horizon()),
      sink_credits_(arrivals_.horizon()),
      packet_credits_(arrivals_.horizon()),
      stage_ends_(arrivals_.horizon()),
      turning_(arrivals_.horizon()) {
  for (unsigned c = 0; c < routes_.classes(); ++c) {
    const topology::VcRange range = routes_.vcs(c);
    const auto vcs = static_cast<VcSet>(((1U << range.count) - 1) << range.first);
    vcs_of_class_.push_back(vcs);
    if (vc_groups_.empty() || vc_groups_.back() != vcs) vc_groups_.push_back(vcs);
  }
  build(spec);
}

template <unsigned kPorts>
void FlitEngine<kPorts>::build(const FlitNetworkSpec& spec) {
  const models::HardwareModel& hardware = spec.hardware;
  const Cycle credit_handling = 1 + static_cast<Cycle>(stages_.credit);
  // Routers handle credits, terminals know them at once.
  credit_delay_ = 1 + hardware.credit_cycles;
  if (cut_through_) {
    injection_extra_ = hardware.router_cycles;
  } else {
    to_link_ = 1 + static_cast<Cycle>(stages_.traversal);
    sink_delay_ = to_link_ + hardware.ejection_cycles + credit_handling + hardware.credit_cycles;
  }
  const Cycle in_router = cut_through_ ? hardware.router_cycles : to_link_;
  const std::uint64_t scale = common_time_scale(port_rates(spec.mesh, hardware));
  ejection_rate_ = PortRate(hardware.ejection_bytes_per_cycle, scale, flit_bytes_);
  const ExactTime one{1, 0};
  slow_ports_ = ejection_rate_.serialization(flit_bytes_) > one;
  for (const topology::LinkClass& link_class : spec.mesh.link_classes()) {
    const models::LinkModel link = hardware.link(link_class);
    link_rates_.emplace_back(link.bytes_per_cycle, scale, flit_bytes_);
    link_delays_.push_back({in_router + link.cycles, credit_handling + link.credit_cycles,
                            link_rates_.back().serialization(flit_bytes_).ceil()});
    slow_ports_ = slow_ports_ || link_rates_.back().serialization(flit_bytes_) > one;
  }
  arrivals_out_.resize(link_delays_.size());
  credits_out_.resize(link_delays_.size());

  const TileId tiles = spec.mesh.tile_count();
  const std::size_t slots = std::size_t{tiles} << (kPortBits + vc_bits_);
  require_invariant(slots < (std::size_t{1} << 32), "too many virtual channels for one flit network");
  routers_.resize(tiles);
  inputs_.resize(slots);
  outputs_.resize(slots);
  link_flits_.resize(spec.mesh.link_slots());
  if (cut_through_) held_cycles_.resize(spec.mesh.link_slots());
  ejected_.resize(std::size_t{tiles} * (kPorts - kMesh));
  paced_ = cut_through_ && slow_ports_;
  active_.resize(ceil_div<std::size_t>(tiles, 64));
  if (cut_through_) held_.resize(std::size_t{tiles} * kPorts);
  if (slow_ports_) clocks_.resize(std::size_t{tiles} * kPorts);
  if (report_heads_) ready_at_.resize(slots);
  for (TileId tile = 0; tile < tiles; ++tile) {
    if (!spec.mesh.has_router(tile)) continue;
    State& state = routers_[tile];
    for (const topology::Direction direction : topology::kAllDirections) {
      if (!spec.mesh.link_alive(topology::Mesh::link(tile, direction))) continue;
      const auto port = static_cast<unsigned>(direction);
      const TileId neighbour = spec.mesh.neighbour(tile, direction);
      state.next[port] = input_vc(neighbour, opposite_port(port), 0);
      state.upstream[port] = input_vc(neighbour, opposite_port(port), 0);
      state.link_class[port] = spec.mesh.link_class(topology::Mesh::link(tile, direction));
    }
    give_buffers(tile, spec);
  }
}

template <unsigned kPorts>
void FlitEngine<kPorts>::give_buffers(std::uint32_t router, const FlitNetworkSpec& spec) {
  State& state = routers_[router];
  for (unsigned port = 0; port < kPorts; ++port) {
    const bool mesh = port < kMesh;
    if (mesh && !spec.mesh.link_alive(topology::Mesh::link(router, static_cast<topology::Direction>(port)))) continue;
    if (!mesh && port - kMesh >= layout_.local) continue;
    state.credit_vcs[port] = static_cast<VcSet>((1U << vcs_) - 1);
    for (unsigned vc = 0; vc < vcs_; ++vc) state.free_vc(port, vc);
    const std::uint32_t size = mesh ? mesh_buffer_ : spec.injection_buffer_flits;
    const std::uint32_t ring = std::bit_ceil(size);
    for (unsigned vc = 0; vc < vcs_; ++vc) {
      InputVc& in = inputs_of(router)[local(port, vc)];
      in.base = static_cast<std::uint32_t>(buffers_.size());
      in.mask = static_cast<std::uint16_t>(ring - 1);
      require_invariant(buffers_.size() + ring < (std::size_t{1} << 32), "too many buffers for one flit network");
      buffers_.resize(buffers_.size() + ring);
      const std::uint32_t sink = limited_ejection_ ? spec.ejection_buffer_flits : kUnlimited;
      outputs_of(router)[local(port, vc)].credits = mesh ? mesh_buffer_ : sink;
    }
  }
}

template <unsigned kPorts>
void FlitEngine<kPorts>::step(Cycle now) {
  for (std::size_t link_class = 0; link_class < link_delays_.size(); ++link_class) {
    arrivals_out_[link_class] = &arrivals_.slot(now + link_delays_[link_class].arrival);
    credits_out_[link_class] = &credits_.slot(now + link_delays_[link_class].credit);
  }
  deliver(now);
  const bool long_stages = !stage_ends_.slot(now).empty();
  if (long_stages) check_stage_ends(now);
  if (shuffle_) [[unlikely]] {
    evaluate_shuffled(now);
  } else {
    for (std::size_t word = 0; word < active_.size(); ++word) {
      for (std::uint64_t left = active_[word]; left != 0; left &= left - 1) {
        evaluate(static_cast<std::uint32_t>(word * 64 + static_cast<unsigned>(std::countr_zero(left))), now);
      }
    }
  }
  if (long_stages) apply_stage_ends(now);
}

template <unsigned kPorts>
void FlitEngine<kPorts>::evaluate(std::uint32_t router, Cycle now) {
  ++router_cycles_;
  if (cut_through_) {
    evaluate_cut_through(router, now);
  } else {
    evaluate_wormhole(router, now);
  }
}

template <unsigned kPorts>
void FlitEngine<kPorts>::evaluate_shuffled(Cycle now) {
  std::vector<std::uint32_t> routers;
  for (std::uint32_t router = 0; router < routers_.size(); ++router) {
    if ((active_[router / 64] >> (router % 64) & 1U) != 0) routers.push_back(router);
  }
  for (std::size_t i = routers.size(); i > 1; --i) std::swap(routers[i - 1], routers[shuffle_->below(i)]);
  for (const std::uint32_t router : routers) evaluate(router, now);
}

template <unsigned kPorts>
void FlitEngine<kPorts>::deliver(Cycle now) {
  if (cut_through_) {
    for (const PacketCredit& credit : packet_credits_.slot(now)) take_packet_credit(credit, now);
    packet_credits_.slot(now).clear();
    for (const Turning& turned : turning_.slot(now)) {
      activate(turned.router);
      bid(turned.router, routers_[turned.router], turned.input, turned.output, now);
    }
    turning_.slot(now).clear();
  }
  for (const std::uint32_t output_vc : credits_.slot(now)) take_credit(output_vc);
  credits_.slot(now).clear();
  for (const std::uint32_t output_vc : sink_credits_.slot(now)) take_credit(output_vc);
  sink_credits_.slot(now).clear();
  std::vector<Arrival>& arrivals = arrivals_.slot(now);
  for (std::size_t i = 0; i < arrivals.size(); ++i) {
    const std::uint32_t coming = arrivals[std::min<std::size_t>(i + kAhead, arrivals.size() - 1)].input_vc;
    __builtin_prefetch(&inputs_[coming]);
    __builtin_prefetch(&routers_[coming >> (kPortBits + vc_bits_)]);
    receive(arrivals[i], now);
  }
  arrivals.clear();
}

template <unsigned kPorts>
void FlitEngine<kPorts>::receive(const Arrival& arrival, Cycle now) {
  const std::uint32_t router = arrival.input_vc >> (kPortBits + vc_bits_);
  InputVc& in = inputs_[arrival.input_vc];
  buffers_[in.base + ((in.first + in.count) & in.mask)] = arrival.flit;
  ++in.count;
  if (turn_cycles_ != 0 && cut_through_ && arrival.flit.head()) [[unlikely]] {
    if (arrival.flit.packet() >= arrived_.size()) arrived_.resize(packets_.size());
    arrived_[arrival.flit.packet()] = now;
  }
  activate(router);
  if (in.count != 1 && in.state != VcState::forked) return;
  State& state = routers_[router];
  const unsigned in_router = arrival.input_vc & ((1U << (kPortBits + vc_bits_)) - 1);
  const PortVc at{static_cast<std::uint8_t>(in_router >> vc_bits_),
                  static_cast<std::uint8_t>(in_router & ((1U << vc_bits_) - 1))};
  if (in.state == VcState::idle) {
    if (cut_through_) {
      start_bidding(router, state, at, now);
    } else {
      start_packet(router, state, in, at, now);
    }
  } else if (!cut_through_ && in.state == VcState::active) {
    if ((state.credit_vcs[in.output] >> in.output_vc & 1U) != 0) state.request_switch(in.output, at.port, at.vc);
  } else if (!cut_through_ && in.state == VcState::forked) {
    feed_branches(router, state, at);
  }
}

template <unsigned kPorts>
void FlitEngine<kPorts>::take_credit(std::uint32_t output_vc) {
  OutputVc& out = outputs_[output_vc];
  if (++out.credits != 1) return;
  const std::uint32_t router = output_vc >> (kPortBits + vc_bits_);
  State& state = routers_[router];
  const unsigned in_router = output_vc & ((1U << (kPortBits + vc_bits_)) - 1);
  const unsigned output = in_router >> vc_bits_;
  const unsigned vc = in_router & ((1U << vc_bits_) - 1);
  state.credit_vcs[output] = static_cast<VcSet>(state.credit_vcs[output] | 1U << vc);
  if ((state.free_vcs[output] >> vc & 1U) != 0) return;
  if (!has_flit(router, out.owner, output)) return;
  state.request_switch(output, out.owner.port, out.owner.vc);
  activate(router);
}

template <unsigned kPorts>
void FlitEngine<kPorts>::occupy_port(std::uint32_t router, unsigned output, Cycle now) {
  const PortRate& rate = output < kMesh ? link_rates_[routers_[router].link_class[output]] : ejection_rate_;
  clocks_[std::size_t{router} * kPorts + output].occupy(now, flit_bytes_, {}, rate);
}

template <unsigned kPorts>
Cycle FlitEngine<kPorts>::next_work(Cycle now) const {
  if (std::any_of(active_.begin(), active_.end(), [](std::uint64_t word) { return word != 0; })) return now + 1;
  for (Cycle at = now + 1; at <= now + arrivals_.horizon(); ++at) {
    const bool work = !arrivals_.slot(at).empty() || !credits_.slot(at).empty() || !packet_credits_.slot(at).empty() ||
                      !sink_credits_.slot(at).empty() || !stage_ends_.slot(at).empty() || !turning_.slot(at).empty();
    if (work) return at;
  }
  return kNever;
}

template <unsigned kPorts>
void FlitEngine<kPorts>::check_empty() const {
  for (std::size_t router = 0; router < routers_.size(); ++router) {
    const State& state = routers_[router];
    require_invariant(state.wants_vc == 0 && state.wants_switch == 0 && state.routing == 0,
                      "a flit router has work left in an empty network");
    for (unsigned port = 0; port < kPorts; ++port) {
      for (unsigned vc = 0; vc < vcs_; ++vc) {
        const std::size_t slot = (router << (kPortBits + vc_bits_)) + local(port, vc);
        const InputVc& in = inputs_[slot];
        require_invariant(in.count == 0 && in.state == VcState::idle, "a flit was left in a buffer");
        const std::uint32_t credits = outputs_[slot].credits;
        const bool exists = state.credit_vcs[port] != 0 || state.free_vcs[port] != 0;
        if (port >= kMesh || !exists) continue;
        require_invariant(credits == mesh_buffer_, "a credit was lost or made");
        require_invariant((state.free_vcs[port] >> vc & 1U) != 0, "a virtual channel was not given back");
      }
    }
  }
}

template <unsigned kPorts>
void FlitEngine<kPorts>::sample(TileId tile, RouterSample& sample) const {
  for (unsigned port = 0; port < kPorts; ++port) {
    const bool mesh = port < kMesh;
    if (mesh ? port >= layout_.mesh : port - kMesh >= layout_.local) continue;
    for (unsigned vc = 0; vc < vcs_; ++vc) {
      sample.held.push_back(inputs_[input_vc(tile, port, vc)].count);
      if (mesh) sample.room.push_back(outputs_[input_vc(tile, port, vc)].credits);
    }
    sample.grants.push_back(mesh ? link_flits_[tile * topology::kDirections + port]
                                 : ejected_[std::size_t{tile} * (kPorts - kMesh) + (port - kMesh)]);
  }
}

template class FlitEngine<kSinglePort>;
template class FlitEngine<kPortPerDirection>;
template class FlitEngine<kManyPorts>;

}  // namespace wafersim::sim
