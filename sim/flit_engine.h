#pragma once

#include <algorithm>
#include <array>
#include <memory>

#include "base/error.h"
#include "sim/delay_line.h"
#include "sim/flit_network.h"
#include "sim/flit_router_state.h"
#include "sim/port_clock.h"

namespace wafersim::sim {

/// The FlitNetwork of routers with kPorts ports: the mesh directions, then the local ports. Private to sim/; one class in
/// seven sources: links and buffers (flit_engine.cpp), routes and classes of VCs (flit_routes.cpp), wormhole routers
/// (flit_wormhole.cpp, flit_long_stages.cpp) and cut-through routers (flit_cut_through.cpp), multicasts where their ways part
/// (flit_branches.cpp), who waits for whom (flit_stall.cpp).
template <unsigned kPorts>
class FlitEngine final : public FlitNetwork {
 public:
  FlitEngine(const FlitNetworkSpec& spec, FlitTerminals& terminals);

  void inject(TileId tile, unsigned lane, unsigned vc, Flit flit, Cycle at) override {
    arrivals_.slot(at + injection_extra_).push_back({input_vc(tile, kMesh + lane, vc), flit});
  }
  void step(Cycle now) override;
  Cycle next_work(Cycle now) const override;
  Cycle horizon() const override { return arrivals_.horizon() - injection_extra_; }
  void check_empty() const override;
  void sample(TileId tile, RouterSample& sample) const override;
  std::string describe_stall() const override;

 private:
  using State = RouterState<kPorts>;
  using PortSet = PortSetOf<kPorts>;
  static constexpr unsigned kMesh = kMeshPortsOf<kPorts>;
  static constexpr unsigned kPortBits = kPorts <= 8 ? 3 : kPorts <= 16 ? 4 : 5;

  struct Arrival {
    std::uint32_t input_vc;
    Flit flit;
  };
  /// The room of a whole packet, in cut-through.
  struct PacketCredit {
    std::uint32_t output_vc;
    std::uint32_t flits;
  };
  /// The end of a stage that takes more than one cycle.
  struct StageEnd {
    enum class Stage : std::uint8_t { routing, vc, switching };
    std::uint32_t router;
    Stage stage;
    bool granted;
    PortVc input;
    PortVc output;
  };
  struct VcGrant {
    PortVc input;
    PortVc output;
  };
  struct SwitchGrant {
    PortVc input;
    std::uint8_t output;
    bool speculative;
  };
  template <class Grant>
  struct Grants {
    std::array<Grant, std::size_t{kPorts} * models::kMaxFlitVcs> items;
    unsigned count = 0;
    void add(const Grant& grant) { items[count++] = grant; }
    const Grant* begin() const { return items.data(); }
    const Grant* end() const { return items.data() + count; }
  };
  /// A multicast at the front of an input VC, where its ways part.
  struct Branch {
    std::uint32_t packet = kNil;  ///< the copy that leaves by this output
    std::uint32_t sent = 0;       ///< wormhole: flits of it
    std::uint8_t output_vc = 0;
    Cycle ready_at = 0;           ///< with reports of heads, as ready_at_
  };
  struct Fork {
    std::uint32_t next = kNil;
    std::uint32_t packet = kNil;  ///< what is copied
    std::uint32_t freed = 0;      ///< wormhole: flits that all copies have, whose places are given back
    PortSet outputs = 0;
    PortSet left = 0;             ///< ... whose copy has not sent its tail
    PortSet granted = 0;          ///< wormhole: ... that have a VC. Cut-through: ... that hold their output, or will
    Cycle gone = 0;               ///< cut-through: when the latest tail so far has left
    std::array<Branch, kPorts> branches{};
  };
  /// A cut-through output.
  struct Held {
    bool held = false;
    PortVc by{};
    PortVc first{};                 ///< round-robin: where the search starts
    Cycle since = 0;                ///< grant of the packet that holds it
    std::uint32_t sent = 0;         ///< flits of that packet
    Cycle until = kNever;           ///< the link has taken all of it; known when its tail is sent
    std::uint32_t uncredited = 0;   ///< packets behind whose room has not come back
    Cycle last_credit = 0;
  };

  std::uint32_t input_vc(TileId tile, unsigned port, unsigned vc) const {
    return ((tile << kPortBits | port) << vc_bits_) | vc;
  }
  InputVc* inputs_of(std::uint32_t router) { return &inputs_[std::size_t{router} << (kPortBits + vc_bits_)]; }
  OutputVc* outputs_of(std::uint32_t router) { return &outputs_[std::size_t{router} << (kPortBits + vc_bits_)]; }
  std::size_t local(unsigned port, unsigned vc) const { return std::size_t{port} << vc_bits_ | vc; }
  std::size_t local(PortVc at) const { return local(at.port, at.vc); }
  void activate(std::uint32_t router) { active_[router / 64] |= std::uint64_t{1} << (router % 64); }

  // flit_engine.cpp
  void build(const FlitNetworkSpec& spec);
  void give_buffers(std::uint32_t router, const FlitNetworkSpec& spec);
  void evaluate(std::uint32_t router, Cycle now);
  void evaluate_shuffled(Cycle now);
  void deliver(Cycle now);
  void receive(const Arrival& arrival, Cycle now);
  void take_credit(std::uint32_t output_vc);
  Flit pop(InputVc& from) {
    const Flit flit = buffers_[from.base + from.first];
    from.first = (from.first + 1) & from.mask;
    --from.count;
    return flit;
  }
  /// A flit leaves the router by `output`.
  void forward(std::uint32_t router, const State& state, PortVc output, Flit flit, Cycle now) {
    ++router_traversals_;
    if (slow_ports_ && !cut_through_) occupy_port(router, output.port, now);
    if (output.port < kMesh) [[likely]] {
      arrivals_out_[state.link_class[output.port]]->push_back({state.next[output.port] + output.vc, flit});
      ++link_flits_[router * topology::kDirections + output.port];
    } else {
      ++ejected_[std::size_t{router} * (kPorts - kMesh) + (output.port - kMesh)];
      terminals_.eject(router, output.port - kMesh, flit, now + to_link_);
    }
  }
  bool port_free(std::uint32_t router, unsigned output, Cycle now) const {
    return !slow_ports_ || clocks_[std::size_t{router} * kPorts + output].free_at() <= now;
  }
  void occupy_port(std::uint32_t router, unsigned output, Cycle now);
  /// What route computation takes longer by.
  Cycle turn_cost(unsigned input, unsigned output) const {
    return turn_cycles_ != 0 && turns(input, output, kMesh) ? turn_cycles_ : 0;
  }

  // flit_routes.cpp
  unsigned port_of(topology::Hop hop, unsigned input, TileId destination) const {
    require_invariant(hop != topology::Hop::unreachable, "a packet reached a router without a way on");
    if constexpr (kPorts == kSinglePort) return std::min(static_cast<unsigned>(hop), kMesh);
    if (hop != topology::Hop::local) [[likely]] return static_cast<unsigned>(hop);
    if (!layout_.per_direction()) return kMesh + mesh_.slot(destination);
    return kMesh + std::min(input, kMesh);
  }
  /// The output of the packet at the front of an input VC, and the class or, in cut-through, the VC behind it.
  void find_output(std::uint32_t router, InputVc& from, PortVc at, std::uint32_t packet) {
    from.output_vc = at.vc;
    if (packets_[packet].multicast != 0) [[unlikely]] {
      from.output = static_cast<std::uint8_t>(first_of(branches_of(router, at.port, packet)));
      return;
    }
    if (!plain_) [[unlikely]] return choose_output(router, from, at, packet);
    from.output = static_cast<std::uint8_t>(port_of(routes_.next(router, packets_[packet].destination), at.port,
                                                     packets_[packet].destination));
  }
  void choose_output(std::uint32_t router, InputVc& from, PortVc at, std::uint32_t packet);
  VcRequests<kPorts> requests_with_any(const VcRequests<kPorts>& requests, const InputVc* in, VcSet vcs) const;
  void find_speculators(const State& state, const InputVc* in);
  bool waits_for_free_vc(const State& state, const InputVc* in) const;

  // flit_wormhole.cpp
  void evaluate_wormhole(std::uint32_t router, Cycle now);
  void start_packet(std::uint32_t router, State& state, InputVc& from, PortVc at, Cycle front_since);
  void wait_for_vc(State& state, InputVc& from, PortVc at);
  template <class Granted>
  void allocate_vcs(State& state, InputVc* in, OutputVc* out, const Granted& granted);
  template <class Granted>
  void allocate_by_group(const State& state, unsigned output, InputVc* in, OutputVc* out, const Granted& granted);
  template <class Granted>
  void allocate_output(const VcRequests<kPorts>& requests, VcSet free, unsigned output, InputVc* in, OutputVc* out,
                       const Granted& granted);
  template <class Granted>
  void grant_first(const VcRequests<kPorts>& requests, VcSet free, unsigned output, InputVc* in, OutputVc* out,
                   const Granted& granted);
  template <class Granted>
  void choose_first(const VcRequests<kPorts>& requests, VcSet free, unsigned output, InputVc* in, OutputVc* out,
                    const Granted& granted);
  /// By output: heads that bid for the switch before they have a VC.
  using Speculators = std::array<VcRequests<kPorts>, kPorts>;
  PortSet speculative_outputs(const State& state, const Speculators& speculators) const;
  /// What the switch allocator may grant in a cycle.
  struct SwitchOffers {
    PortSet inputs = 0;                    ///< with an offer
    PortSet speculative = 0;               ///< outputs that are offered to heads without a VC
    std::array<PortSet, kPorts> outputs{};  ///< by input: offered to it
    std::array<VcSet, kPorts> vcs;          ///< by offered output: of the input, those that it is offered to
    void add(const State& state, const Speculators& speculators, unsigned port, unsigned output);
  };
  SwitchOffers offer_switch(std::uint32_t router, const State& state, const InputVc* in, Cycle now);
  template <class Granted>
  void accept_switch(State& state, const SwitchOffers& offers, const Granted& granted);
  void choose_switch(const State& state, const Speculators& speculators, PortSet outputs, PortSet speculative,
                     SwitchOffers& offers);
  void take_vc(std::uint32_t router, State& state, InputVc* in, OutputVc* out, PortVc input, PortVc output);
  void use_switch(std::uint32_t router, State& state, PortVc input, unsigned output, bool speculative, Cycle now);
  bool take_room(std::uint32_t router, State& state, PortVc output, Cycle now);
  void give_back_place(std::uint32_t router, const State& state, PortVc input, Flit flit, Cycle now);
  void send(std::uint32_t router, State& state, PortVc input, Cycle now);
  void begin_long_vc_stage(std::uint32_t router, State& state, const InputVc* in, const Grants<VcGrant>& grants,
                           PortSet outputs, Cycle now);
  void begin_long_switch_stage(std::uint32_t router, State& state, const Grants<SwitchGrant>& grants, Cycle now);
  void check_stage_ends(Cycle now);
  void apply_stage_ends(Cycle now);
  bool can_act(const State& state, const InputVc* in) const;

  // flit_branches.cpp
  PortSet branches_of(std::uint32_t router, unsigned input, std::uint32_t packet) const;
  bool fork(std::uint32_t router, InputVc& from, PortVc at, std::uint32_t packet);
  void end_fork(std::uint32_t router, InputVc& from, PortVc at);
  Fork& fork_at(std::uint32_t router, PortVc at) { return forks_[fork_of_[input_vc(router, at.port, at.vc)]]; }
  const Fork& fork_at(std::uint32_t router, PortVc at) const { return forks_[fork_of_[input_vc(router, at.port, at.vc)]]; }
  void start_branches(std::uint32_t router, State& state, PortVc at, Cycle front_since);
  void take_branch_vc(std::uint32_t router, PortVc input, PortVc output);
  /// Whether the packet at the front of an input VC, which has a VC of `output`, has a flit there for it.
  bool has_flit(std::uint32_t router, PortVc at, unsigned output) const {
    const InputVc& from = inputs_[input_vc(router, at.port, at.vc)];
    if (from.state != VcState::forked) [[likely]] return from.count != 0;
    const Fork& fork = fork_at(router, at);
    return fork.branches[output].sent - fork.freed < from.count;
  }
  /// Whether it has its VC, a flit, and room for it.
  bool may_send(std::uint32_t router, const State& state, PortVc at, unsigned output) const {
    const InputVc& from = inputs_[input_vc(router, at.port, at.vc)];
    if (from.state == VcState::forked) [[unlikely]] return branch_may_send(router, state, at, output);
    return from.state == VcState::active && from.output == output && from.count != 0 &&
           (state.credit_vcs[output] >> from.output_vc & 1U) != 0;
  }
  bool branch_may_send(std::uint32_t router, const State& state, PortVc at, unsigned output) const;
  void feed_branches(std::uint32_t router, State& state, PortVc at);
  void fan_out(std::uint32_t router, State& state, const InputVc* in, Grants<SwitchGrant>& grants, Cycle now);
  void send_branch(std::uint32_t router, State& state, PortVc input, unsigned output, Cycle now);
  void bid_for_branches(std::uint32_t router, State& state, PortVc at, Cycle now);
  Flit flit_of_branch(const InputVc& from, const Branch& branch, std::uint32_t place) const {
    const Flit kept = buffers_[from.base + ((from.first + place) & from.mask)];
    return {branch.packet, kept.head(), kept.tail()};
  }
  bool end_branch(std::uint32_t router, InputVc& from, PortVc at, unsigned output);

  // flit_stall.cpp
  /// What keeps the packet at the front of an input VC.
  struct Wait {
    std::string what;
    std::optional<std::uint32_t> behind;  ///< the input VC that has to move first
  };
  Wait wait_of(std::uint32_t input_vc) const;
  Wait wait_of_head(std::uint32_t input_vc, unsigned output, bool active, unsigned output_vc) const;
  Wait wait_for_room(std::uint32_t router, const InputVc& from, unsigned output, unsigned output_vc) const;
  Wait wait_for_flits(std::uint32_t input_vc) const;
  std::string describe_wait(std::uint32_t input_vc) const;
  std::uint32_t router_of(std::uint32_t vc) const { return vc >> (kPortBits + vc_bits_); }
  unsigned port_of_vc(std::uint32_t vc) const { return vc >> vc_bits_ & ((1U << kPortBits) - 1); }
  unsigned vc_of(std::uint32_t vc) const { return vc & ((1U << vc_bits_) - 1); }

  // flit_cut_through.cpp
  void evaluate_cut_through(std::uint32_t router, Cycle now);
  void start_bidding(std::uint32_t router, State& state, PortVc at, Cycle now);
  void bid(std::uint32_t router, State& state, PortVc at, unsigned output, Cycle now);
  void arbitrate(std::uint32_t router, State& state, unsigned output, Cycle now);
  bool stream(std::uint32_t router, State& state, unsigned output, Cycle now);
  void end_packets(std::uint32_t router, State& state, Cycle now);
  Cycle tail_gone(std::uint32_t packet, const Held& out, Cycle pace, Cycle now);
  void give_back_packet(std::uint32_t router, const State& state, PortVc input, Flit flit, Cycle gone);
  void take_packet_credit(const PacketCredit& credit, Cycle now);

  FlitTerminals& terminals_;
  const topology::Mesh& mesh_;
  PortLayout layout_;
  const PacketRoutes& routes_;
  const Multicasts* multicasts_;
  models::PipelineStages stages_;
  models::Allocator allocator_;
  bool cut_through_;
  bool report_heads_;
  bool slow_ports_ = false;      ///< some port takes more than one cycle for a flit
  bool limited_ejection_ = false;
  unsigned vcs_;
  unsigned vc_bits_;
  std::vector<VcSet> vcs_of_class_;  ///< wormhole: what packets of a class may take
  std::vector<VcSet> vc_groups_;     ///< the different ones among these; one in the usual case
  std::uint32_t mesh_buffer_;
  Cycle to_link_ = 0;            ///< from the cycle of a grant to that on the link
  Cycle credit_delay_ = 0;       ///< ... until the place that was left in a local input is known to the terminal
  Cycle sink_delay_ = 0;         ///< ... until a terminal's place is known
  Cycle injection_extra_ = 0;
  Cycle turn_cycles_;

  HugeVector<State> routers_;
  HugeVector<InputVc> inputs_;
  HugeVector<OutputVc> outputs_;
  HugeVector<Flit> buffers_;
  HugeVector<std::uint64_t> ejected_;  ///< flits, by router and local port
  HugeVector<Held> held_;        ///< cut-through: by router and output
  /// Cut-through over links of different pace: by packet, the first cycle in which the router where its tail is, or is on
  /// its way to, can know all of it to be gone. 0 at its source.
  std::vector<Cycle> tail_at_;
  bool paced_ = false;           ///< cut-through: some link takes more than one cycle for a flit
  HugeVector<PortClock> clocks_; ///< with slow ports: by router and output
  HugeVector<Cycle> ready_at_;   ///< with reports of heads: by input VC, when its head could first be granted the switch
  std::vector<PortRate> link_rates_;  ///< by class
  PortRate ejection_rate_;
  Bytes flit_bytes_;
  std::vector<std::uint64_t> active_;  ///< routers to visit, a bit each

  DelayLine<Arrival> arrivals_;
  DelayLine<std::uint32_t> credits_;        ///< output VCs
  DelayLine<std::uint32_t> sink_credits_;   ///< output VCs to terminals
  DelayLine<PacketCredit> packet_credits_;
  DelayLine<StageEnd> stage_ends_;
  struct Turning {
    std::uint32_t router;
    PortVc input;
    std::uint8_t output;
  };
  DelayLine<Turning> turning_;              ///< cut-through: heads that bid when they have turned
  std::vector<Cycle> arrived_;              ///< of these, by packet
  Pool<Fork> forks_;
  std::size_t open_forks_ = 0;
  HugeVector<std::uint32_t> fork_of_;       ///< by input VC, of those that are forked; empty until there is one
  /// Of a class of links, in cycles from that of a grant.
  struct LinkDelay {
    Cycle arrival = 0;  ///< to the arrival behind the link
    Cycle credit = 0;   ///< until the place that was left is known upstream
    Cycle flit = 1;     ///< that a flit takes; in cut-through, where they are whole
  };
  std::vector<LinkDelay> link_delays_;
  // Of the current cycle, by class of links.
  std::vector<std::vector<Arrival>*> arrivals_out_;
  std::vector<std::vector<std::uint32_t>*> credits_out_;
  std::array<VcSet, std::size_t{kPorts} * models::kMaxFlitVcs> offered_{};  ///< scratch, zero between uses
  Speculators speculators_{};  ///< of the router that is evaluated, with several groups of VCs
};

}  // namespace wafersim::sim
