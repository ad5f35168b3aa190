#pragma once

#include <string>

#include "sim/credited_ports.h"
#include "sim/interfaces.h"
#include "sim/network.h"
#include "sim/router_watch.h"

namespace wafersim::sim {

struct Train;
struct TrainPlace;
struct TrainStage;

/// A virtual cut-through router. A packet whose head reaches an input VC at t bids for its output at
/// max(t + R, the packet ahead in its VC has left); R is longer where it turns. An output grants one bidder a cycle when it is free and the downstream VC
/// has room for the whole packet; round-robin over input VCs in the order N, E, S, W, local, then VC. Granted at g, the tail
/// leaves at d = max(g + S, tail upstream + L + R); port and buffer are held until d, the credit is upstream at d + Lc.
///
/// A multicast (see Multicasts) whose ways part here bids for several outputs at once. Each grants it a copy when it can; the
/// buffer is held until the last copy has left.
///
/// The engine is the router without its module: a plain object that the calendar calls. Router binds it to its neighbours.
/// Its state lies in one piece of the network's arena.
class alignas(64) RouterEngine final : public Client {
 public:
  RouterEngine(TileId tile, NetworkContext& network);

  TileId tile() const { return tile_; }
  /// What lies behind a mesh port: a router of ours, which is called directly, or something else with the same interfaces.
  void connect(unsigned port, RouterEngine* router, RouterIf* other);
  /// The network interface of one of the tiles that share the router, by Mesh::slot(); 0 where none do.
  void connect_nic(unsigned slot, TerminalIf* nic);

  /// See PacketSink and CreditSink.
  void receive(std::uint32_t packet, Cycle head_at, const ExactTime& tail_at);
  void credit(unsigned output, unsigned vc, Bytes bytes, Cycle at);
  void update(unsigned kind, std::uint32_t payload) override;
  void evaluate() override;
  void prefetch(unsigned kind, std::uint32_t payload) const override;
  void prefetch_more(unsigned kind, std::uint32_t payload) const override;
  void prefetch_evaluation() const override;
  void prefetch_evaluation_more() const override;

  /// Hints that a packet comes to an input soon, of a router whose own data is not there yet, or wants an output.
  static void prefetch_visit(const RouterEngine* router, unsigned input, unsigned vcs);
  void prefetch_output(unsigned port) const { outputs_.prefetch(port); }

  // For trains (sim/trains.h), see router_trains.cpp.
  bool offer(Packet& packet, TrainStage& stage, TrainPlace& place);
  void hold(unsigned port, std::uint32_t train);
  void settle(const Train& train, std::size_t stage, Cycle cycle);
  /// The train that holds an output; kNil without one.
  std::uint32_t holder(topology::Direction direction) const;
  void take_over(const Train& train, std::uint64_t number, std::size_t stage, std::uint32_t packet, Cycle cycle);

  const PortStatistics& statistics(topology::Direction direction) const {
    return statistics_[static_cast<std::size_t>(direction)];
  }
  /// A packet holds the link in all cycles from its last grant until this one.
  Cycle held_until(topology::Direction direction) const {
    return outputs_[static_cast<unsigned>(direction)].clock.held_until();
  }
  /// For waveforms. Room behind outputs without a link is 0.
  void sample(Cycle at, RouterSample& sample);
  /// The first cycle after `now` in which a credit of which is known arrives; kNever when there is none.
  Cycle next_credit(Cycle now);
  /// Whether the payload of an update of that kind is a packet.
  static bool names_packet(unsigned kind) { return kind >= kArrive; }
  /// Its state, see sim/state_archive.h.
  template <class Archive>
  void visit(Archive& archive);
  /// Packets that wait in this router, one line each; empty when there is none.
  std::string describe_stall(const std::string& name) const;

 private:
  /// Kinds of events with an input port; of the last ones on it is a hint that is wrong.
  static constexpr unsigned kArrivalKinds = 12;
  /// Updates.
  enum Kind : unsigned { kHeadFree, kArbitrate, kTurned, kArrive };  ///< kArrive + input port, for hints

  struct InputVc {
    std::uint32_t head = kNil;
    std::uint32_t tail = kNil;
    Cycle free_at = 0;  ///< the packet ahead has left
  };
  /// One cache line with what follows in CreditedPorts.
  struct alignas(64) Output {
    PortClock clock;
    std::uint64_t bidders = 0;  ///< input VCs whose head wants this output, see bid_bit
    Cycle wake_at = kNever;     ///< an arbitration is posted for this cycle
    Cycle credits_full_at = 0;  ///< the last credit known of is back
    std::uint32_t uncredited = 0;  ///< packets downstream whose credit has no time yet
    std::uint8_t first_bit = 0;    ///< round-robin: where the search starts
    // The router of ours behind it: what a packet needs of it, so that it need not be touched before the packet arrives.
    std::uint8_t next_lane = 0;
    std::uint8_t timing = 0;       ///< in NetworkContext::ports
    std::uint8_t local_shift = 0;  ///< from the first local input to the one whose packets can come here, in input VCs
    ClientId next_id = 0;
    TileId next_tile = kNoTile;    ///< none of ours
    const RouterEngine* next_router = nullptr;
  };

  /// Position of an input VC in an output's bidders: mesh ports first, then the local ports that can reach it, which is one
  /// where each tile has its own router.
  unsigned bid_bit(unsigned input, unsigned vc) const {
    return std::min<unsigned>(input, last_bid_port_) * vcs_ + vc;
  }
  unsigned input_vc_of_bit(const Output& out, unsigned bit) const {
    return bit < mesh_vcs_ ? bit : bit + out.local_shift;
  }
  TerminalIf* terminal_of(unsigned port) const {
    if (locals_ != PortLayout::Locals::per_tile) [[likely]] return terminal_;
    return terminals_[port - mesh_ports_];
  }
  unsigned port_of(topology::Hop hop, const Packet& packet) const;
  unsigned first_branch(TileId tile, Packet& packet) const;
  Cycle turn_cost(unsigned input, unsigned output) const;
  Cycle known_turn(const Packet& packet) const;
  void foresee(TileId tile, Packet& packet) const;
  void choose_output(Packet& packet, Cycle now);
  void announce(ClientHandle router, TileId tile, std::uint32_t packet, Cycle head_at, const ExactTime& tail_at);
  void bid_when_free(const InputVc& in, unsigned input_vc);
  void start_bidding(std::uint32_t index, Cycle now);
  void bid(const Packet& packet, unsigned port, Cycle now);
  void bid_where_ways_part(Packet& packet, Cycle arrived, Cycle now);
  bool bid_for_branches(Packet packet, bool turning, Cycle now);
  void settle_holder(const Output& out);
  void request_arbitration(unsigned port);
  void arbitrate(unsigned port, Cycle now);
  void grant(unsigned port, unsigned bit, InputVc& in, unsigned input_vc, Cycle now);
  void grant_branch(unsigned port, unsigned bit, InputVc& in, unsigned input_vc, Cycle now);
  void send(unsigned port, std::uint32_t packet, Cycle held_from, Cycle now, const ExactTime& tail);
  void return_credit(unsigned input, unsigned vc, Bytes bytes, Cycle gone_at, Cycle now);
  void take_credit(unsigned port, Output& out, unsigned vc, Bytes bytes, Cycle at, Cycle now);
  void forward(unsigned port, Output& out, std::uint32_t index, Cycle now, const ExactTime& tail);
  void wait_for_credit(unsigned port, Output& out);
  void wake(unsigned port, Output& out, Cycle at);

  // In order of use: the first cache lines serve every packet.
  std::uint32_t pending_outputs_ = 0;  ///< outputs to arbitrate in this cycle
  TileId tile_;
  NetworkContext& network_;
  std::uint8_t vcs_;
  std::uint8_t mesh_ports_;
  PortLayout::Locals locals_;
  std::uint8_t last_bid_port_;  ///< inputs from this on have the same position for bids
  std::uint8_t mesh_vcs_;       ///< of all mesh inputs
  InputVc* inputs_;  ///< port-major, VC-minor; directly behind this object
  CreditedPorts<Output> outputs_;
  PortStatistics* statistics_;
  std::array<RouterEngine*, kMostMeshPorts> upstream_router_{};
  TerminalIf* terminal_ = nullptr;  ///< where tiles do not share the router
  TerminalIf** terminals_;          ///< by Mesh::slot(), where they do
  RouterIf** neighbours_;           ///< by mesh port; of use where they are no routers of ours
};

}  // namespace wafersim::sim
