// Synthetic traffic through a network of flits.
#include "sim/delay_line.h"
#include "sim/flit_network.h"
#include "sim/traffic_network.h"

namespace wafersim::sim {
namespace {

class FlitTraffic final : public TrafficNetwork, private FlitTerminals {
 public:
  FlitTraffic(const Spec& spec, TrafficTerminals& terminals)
      : TrafficNetwork(spec.hardware.flit.vc_buffer_flits,
                       spec.hardware.flit.switching == models::Switching::cut_through),
        routes_(spec.mesh, spec.routing, static_cast<unsigned>(spec.hardware.virtual_channels), spec.seed),
        mesh_(spec.mesh),
        layout_(spec.mesh, spec.hardware.nic_ports),
        terminals_(terminals),
        flits_(FlitNetwork::make({spec.mesh, routes_, spec.hardware, buffer_flits_, buffer_flits_}, *this)),
        late_(flits_->horizon()) {
    if (spec.shuffle) flits_->shuffle(spec.seed);
  }

  const PacketRoutes& routes() const override { return routes_; }
  Cycle horizon() const override { return flits_->horizon(); }
  void start(const TrafficPacket& packet, Cycle /*head_at*/) override {
    flits_->set_packet(packet.number, packet.destination, packet.flits, packet.travel);
    if (!whole_packets_) return;
    if (packet.number >= sizes_.size()) sizes_.resize(packet.number + packet.number / 2 + 64);
    sizes_[packet.number] = packet.flits;
  }
  void send(const TrafficPacket& packet, std::uint32_t place, Cycle at) override {
    const unsigned port = layout_.per_direction() ? packet.lane : mesh_.slot(packet.source);
    flits_->inject(mesh_.router(packet.source), port, packet.vc, {packet.number, place == 0, place + 1 == packet.flits}, at);
  }
  void step(Cycle now) override {
    now_ = now;
    flits_->step(now);
    for (const Late& late : late_.slot(now)) terminals_.eject(late.tile, late.packet, sizes_[late.packet], true, now);
    late_.slot(now).clear();
  }

  std::uint64_t link_flits(topology::LinkId link) const override { return flits_->link_flits(link); }
  std::uint64_t router_traversals() const override { return flits_->router_traversals(); }
  std::uint64_t router_cycles() const override { return flits_->router_cycles(); }
  void check_empty() const override { flits_->check_empty(); }
  void sample(TileId tile, Cycle /*at*/, RouterSample& sample) override { flits_->sample(tile, sample); }
  std::string describe_stall() const override { return flits_->describe_stall(); }

 private:
  bool shared() const { return layout_.locals == PortLayout::Locals::per_tile; }
  TileId tile_at(TileId router, unsigned lane) const { return shared() ? mesh_.member(router, lane) : router; }
  void eject(TileId router, unsigned lane, Flit flit, Cycle at) override {
    if (!whole_packets_) return terminals_.eject(tile_at(router, lane), flit.packet(), 1, flit.tail(), at);
    if (!flit.tail()) return;
    if (at == now_) [[likely]] return terminals_.eject(tile_at(router, lane), flit.packet(), sizes_[flit.packet()], true, at);
    late_.slot(at).push_back({tile_at(router, lane), flit.packet()});
  }
  void injection_credit(TileId router, unsigned lane, unsigned vc, Flit flit, Cycle at) override {
    terminals_.room(tile_at(router, lane), shared() ? 0 : lane, vc, whole_packets_ ? sizes_[flit.packet()] : 1, at);
  }

  PacketRoutes routes_;
  const topology::Mesh& mesh_;
  PortLayout layout_;
  TrafficTerminals& terminals_;
  std::unique_ptr<FlitNetwork> flits_;
  std::vector<std::uint32_t> sizes_;  ///< of whole packets, by number
  /// A whole packet whose tail is sent and not there yet: it cannot be before what a slow link behind has brought.
  struct Late {
    TileId tile;
    std::uint32_t packet;
  };
  DelayLine<Late> late_;
  Cycle now_ = 0;
};

}  // namespace

std::unique_ptr<TrafficNetwork> make_flit_traffic(const TrafficNetwork::Spec& spec, TrafficTerminals& terminals) {
  return std::make_unique<FlitTraffic>(spec, terminals);
}

}  // namespace wafersim::sim
