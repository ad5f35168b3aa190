// Synthetic traffic through a network of packets.
#include <algorithm>
#include <deque>
#include <fmt/format.h>

#include "base/error.h"
#include "sim/router_engine.h"
#include "sim/traffic_network.h"

namespace wafersim::sim {
namespace {

std::uint32_t buffer_flits_of(const models::HardwareModel& hardware) {
  return static_cast<std::uint32_t>(std::min<Bytes>(hardware.vc_buffer_bytes / hardware.flit.flit_bytes, 1U << 31));
}

/// The routers of a wafer with terminals for its tiles, on a calendar that is driven by hand.
class PacketTraffic final : public TrafficNetwork, public Client {
 public:
  PacketTraffic(const Spec& spec, TrafficTerminals& terminals);

  const PacketRoutes& routes() const override { return network_.routes; }
  Cycle horizon() const override { return horizon_; }
  void start(const TrafficPacket& packet, Cycle head_at) override;
  void send(const TrafficPacket& /*packet*/, std::uint32_t /*place*/, Cycle /*at*/) override {}
  void step(Cycle now) override { calendar_.run_to(now); }

  std::uint64_t link_flits(topology::LinkId link) const override;
  std::uint64_t router_traversals() const override;
  std::uint64_t router_cycles() const override { return calendar_.events(); }
  void check_empty() const override;
  void sample(TileId tile, Cycle at, RouterSample& sample) override { routers_[tile]->sample(at, sample); }
  std::string describe_stall() const override;

  /// A packet, by its number in the network, has left it.
  void update(unsigned kind, std::uint32_t packet) override;
  void evaluate() override {}

 private:
  class Terminal final : public TerminalIf {
   public:
    Terminal(PacketTraffic& all, TileId tile) : all_(all), tile_(tile) {}
    void eject(std::uint32_t packet, Cycle /*head_at*/, const ExactTime& tail_at) override {
      all_.sent_[packet].at = tile_;
      all_.calendar_.post(all_, tail_at.ceil() - 1, 0, packet);
    }
    void credit(unsigned lane, unsigned vc, Bytes bytes, Cycle at) override {
      all_.terminals_.room(tile_, lane, vc, static_cast<std::uint32_t>(bytes / all_.flit_bytes_), at);
    }

   private:
    PacketTraffic& all_;
    TileId tile_;
  };
  struct Sent {
    std::uint32_t number = 0;  ///< that of the TrafficPacket
    std::uint32_t flits = 0;
    TileId at = kNoTile;       ///< where it came out
  };

  void connect(TileId tile);

  TrafficTerminals& terminals_;
  Bytes flit_bytes_;
  Calendar calendar_;
  NetworkContext network_;
  PortRate injection_;
  std::vector<Arena::Owned<RouterEngine>> routers_;  ///< by tile
  std::deque<Terminal> ends_;  ///< they stay in their places
  std::vector<Sent> sent_;     ///< by number in the network
  std::uint32_t message_;      ///< of all packets
  std::uint64_t ejected_ = 0;  ///< flits
  Cycle horizon_ = 0;
};

PacketTraffic::PacketTraffic(const Spec& spec, TrafficTerminals& terminals)
    : TrafficNetwork(buffer_flits_of(spec.hardware), true),
      terminals_(terminals),
      flit_bytes_(spec.hardware.flit.flit_bytes),
      calendar_(sc_core::sc_gen_unique_name("traffic"), spec.hardware.clock),
      network_(calendar_, spec.mesh, spec.routing, spec.hardware, spec.seed),
      injection_(spec.hardware.injection_bytes_per_cycle, network_.time_scale, flit_bytes_),
      routers_(spec.mesh.tile_count()),
      message_(network_.messages.take()) {
  calendar_.drive_by_hand();
  if (spec.shuffle) calendar_.shuffle(spec.seed);
  calendar_.add(*this, Rank::nic);
  for (TileId tile = 0; tile < spec.mesh.tile_count(); ++tile) {
    if (spec.mesh.has_router(tile)) routers_[tile] = network_.arena.make<RouterEngine>(tile, network_);
  }
  for (TileId tile = 0; tile < spec.mesh.tile_count(); ++tile) connect(tile);
  // A packet that is granted an output has left by it in the time that it takes over the slowest link.
  const models::HardwareModel& hardware = spec.hardware;
  const Bytes largest = flit_bytes_ * spec.largest_packet;
  for (const Rational& rate : port_rates(spec.mesh, hardware)) horizon_ = std::max(horizon_, cycles_at_rate(largest, rate));
  Cycle link = hardware.injection_cycles + 1, credit = hardware.credit_cycles;
  for (const topology::LinkClass& link_class : spec.mesh.link_classes()) {
    link = std::max(link, hardware.link(link_class).cycles);
    credit = std::max(credit, hardware.link(link_class).credit_cycles);
  }
  horizon_ += hardware.router_cycles + hardware.turn_cycles + hardware.ejection_cycles + link + credit + 8;
}

void PacketTraffic::connect(TileId tile) {
  const topology::Mesh& mesh = network_.mesh;
  if (mesh.alive(tile)) {
    ends_.emplace_back(*this, tile);
    routers_[mesh.router(tile)]->connect_nic(mesh.slot(tile), &ends_.back());
  }
  if (!mesh.has_router(tile)) return;
  for (const topology::Direction direction : topology::kAllDirections) {
    if (!mesh.link_alive(topology::Mesh::link(tile, direction))) continue;
    routers_[tile]->connect(static_cast<unsigned>(direction), routers_[mesh.neighbour(tile, direction)].get(), nullptr);
  }
}

void PacketTraffic::start(const TrafficPacket& made, Cycle head_at) {
  const std::uint32_t index = network_.packets.take();
  Packet& packet = network_.packets[index];
  packet.message = message_;
  packet.destination = made.destination;
  packet.vc = static_cast<std::uint8_t>(made.vc);
  const unsigned port = network_.layout.per_direction() ? made.lane : network_.mesh.slot(made.source);
  packet.input = static_cast<std::uint8_t>(network_.layout.mesh + port);
  packet.bytes = static_cast<std::uint32_t>(flit_bytes_ * made.flits);
  if (!network_.routes.plain()) packet.travel = made.travel;
  if (index >= sent_.size()) sent_.resize(index + index / 2 + 64);
  sent_[index] = {made.number, made.flits, kNoTile};
  const ExactTime takes = ExactTime::later({made.flits, 0}, injection_.serialization(packet.bytes));
  routers_[network_.mesh.router(made.source)]->receive(index, head_at, takes.after(head_at));
}

void PacketTraffic::update(unsigned /*kind*/, std::uint32_t packet) {
  const Sent sent = sent_[packet];
  network_.packets.give_back(packet);
  ejected_ += sent.flits;
  terminals_.eject(sent.at, sent.number, sent.flits, true, calendar_.current());
}

std::uint64_t PacketTraffic::link_flits(topology::LinkId link) const {
  const TileId tile = topology::Mesh::link_source(link);
  if (!network_.mesh.link_alive(link)) return 0;
  const PortStatistics& port = routers_[tile]->statistics(topology::Mesh::link_direction(link));
  return port.bytes_by_axis[static_cast<std::size_t>(workloads::Axis::none)] / flit_bytes_;
}

std::uint64_t PacketTraffic::router_traversals() const {
  std::uint64_t flits = ejected_;
  for (topology::LinkId link = 0; link < network_.mesh.link_slots(); ++link) flits += link_flits(link);
  return flits;
}

void PacketTraffic::check_empty() const {
  for (TileId tile = 0; tile < network_.mesh.tile_count(); ++tile) {
    if (!network_.mesh.has_router(tile)) continue;
    RouterSample sample;
    routers_[tile]->sample(calendar_.last_busy(), sample);
    for (const std::uint32_t packets : sample.held) require_invariant(packets == 0, "a packet was left in a router");
    const auto vcs = static_cast<std::size_t>(network_.hardware.virtual_channels);
    for (std::size_t i = 0; i < sample.room.size(); ++i) {
      const auto direction = static_cast<topology::Direction>(i / vcs);
      if (!network_.mesh.link_alive(topology::Mesh::link(tile, direction))) continue;
      require_invariant(sample.room[i] == network_.hardware.vc_buffer_bytes, "a credit was lost or made");
    }
  }
}

std::string PacketTraffic::describe_stall() const {
  std::string text = "packets wait in routers:";
  const auto vcs = static_cast<std::size_t>(network_.hardware.virtual_channels);
  for (TileId tile = 0; tile < network_.mesh.tile_count(); ++tile) {
    if (!network_.mesh.has_router(tile)) continue;
    RouterSample sample;
    routers_[tile]->sample(calendar_.last_busy(), sample);
    for (std::size_t i = 0; i < sample.held.size(); ++i) {
      if (sample.held[i] == 0) continue;
      text += fmt::format("\n  {}: input port {} VC {} holds {} packets", network_.mesh.name(tile), i / vcs, i % vcs,
                          sample.held[i]);
    }
  }
  return text;
}

}  // namespace

std::unique_ptr<TrafficNetwork> make_packet_traffic(const TrafficNetwork::Spec& spec, TrafficTerminals& terminals) {
  return std::make_unique<PacketTraffic>(spec, terminals);
}

}  // namespace wafersim::sim
