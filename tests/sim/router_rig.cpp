#include "tests/sim/router_rig.h"

namespace wafersim::test {

/// Calls what was scheduled, in the update phase.
class RouterRig::Script : public sim::Client {
 public:
  explicit Script(sim::Calendar& calendar) : calendar_(calendar) { calendar.add(*this, sim::Rank::core); }

  void at(Cycle cycle, std::function<void()> action) {
    calendar_.post(*this, cycle, 0, static_cast<std::uint32_t>(actions_.size()));
    actions_.push_back(std::move(action));
  }
  void update(unsigned /*kind*/, std::uint32_t payload) override { actions_[payload](); }
  void evaluate() override {}

 private:
  sim::Calendar& calendar_;
  std::deque<std::function<void()>> actions_;
};

class RouterRig::Neighbour : public sc_core::sc_module, public sim::RouterIf {
 public:
  Neighbour(sc_core::sc_module_name name, RouterRig& rig, unsigned port)
      : sc_module(name), rig_(rig), port_(port) {}

  void receive(std::uint32_t packet, Cycle head_at, const sim::ExactTime& tail_at) override {
    rig_.sent_.push_back({packet, port_, rig_.calendar_->now(), head_at, tail_at});
  }
  void credit(unsigned output, unsigned vc, Bytes bytes, Cycle at) override {
    // The neighbour's output towards this router is the one opposite.
    require_invariant(output == (port_ + 2) % 4, "a credit went to the wrong output");
    rig_.credits_.push_back({port_, vc, bytes, rig_.calendar_->now(), at});
  }

 private:
  RouterRig& rig_;
  unsigned port_;
};

class RouterRig::LocalNic : public sc_core::sc_module, public sim::TerminalIf {
 public:
  LocalNic(sc_core::sc_module_name name, RouterRig& rig) : sc_module(name), rig_(rig) {}

  void eject(std::uint32_t packet, Cycle /*head_at*/, const sim::ExactTime& tail_at) override {
    rig_.sent_.push_back({packet, Port::local, rig_.calendar_->now(), 0, tail_at});
  }
  void credit(unsigned lane, unsigned vc, Bytes bytes, Cycle at) override {
    rig_.credits_.push_back({Port::local + lane, vc, bytes, rig_.calendar_->now(), at});
  }

 private:
  RouterRig& rig_;
};

RouterRig::RouterRig(models::HardwareModel hardware)
    : hardware_(std::move(hardware)),
      mesh_({{3, 3}, {}, {}}),
      routing_(topology::make_routing("xy", mesh_)),
      calendar_(std::make_unique<sim::Calendar>("calendar", hardware_.clock)),
      network_(std::make_unique<sim::NetworkContext>(*calendar_, mesh_, *routing_, hardware_, 1)),
      router_(std::make_unique<sim::Router>("router", kHere, *network_)),
      script_(std::make_unique<Script>(*calendar_)),
      nic_(std::make_unique<LocalNic>("nic", *this)) {
  for (unsigned port = 0; port < network_->layout.mesh; ++port) {
    const std::string name = std::string("neighbour_") + topology::to_string(topology::kAllDirections[port]);
    neighbours_.push_back(std::make_unique<Neighbour>(name.c_str(), *this, port));
    router_->links[port]->bind(*neighbours_.back());
  }
  router_->terminals.bind(*nic_);
}

RouterRig::~RouterRig() = default;

void RouterRig::arrive(Cycle head_at, Cycle tail_at, unsigned input, unsigned vc, TileId destination,
                       Bytes bytes) {
  const std::uint32_t index = network_->packets.take();
  sim::Packet& packet = network_->packets[index];
  packet.destination = destination;
  packet.input = static_cast<std::uint8_t>(input);
  packet.vc = static_cast<std::uint8_t>(vc);
  packet.bytes = static_cast<std::uint32_t>(bytes);
  packet.message = 0;
  // A neighbour tells at its grant, one link before.
  const Cycle told_at = head_at - std::min(head_at, hardware_.link_cycles);
  script_->at(told_at, [this, index, head_at, tail_at] {
    router_->receive(index, head_at, {tail_at, 0});
  });
}

void RouterRig::credit(Cycle told_at, unsigned output, unsigned vc, Bytes bytes, Cycle at) {
  script_->at(told_at, [this, output, vc, bytes, at] { router_->credit(output, vc, bytes, at); });
}

void RouterRig::run() {
  network_->messages.take();  // the one to which all packets belong
  sc_core::sc_start();
  calendar_->rethrow();
}

std::vector<std::uint32_t> RouterRig::order() const {
  std::vector<std::uint32_t> packets;
  for (const Sent& sent : sent_) packets.push_back(sent.packet);
  return packets;
}

std::vector<Cycle> RouterRig::grants() const {
  std::vector<Cycle> cycles;
  for (const Sent& sent : sent_) cycles.push_back(sent.at);
  return cycles;
}

}  // namespace wafersim::test
