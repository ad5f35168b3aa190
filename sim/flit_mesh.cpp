#include "sim/flit_mesh.h"

#include <algorithm>
#include <fmt/format.h>

#include "base/error.h"
#include "sim/path_recorder.h"

namespace wafersim::sim {
namespace {

std::uint32_t flits_of(Bytes bytes, const models::HardwareModel& hardware) {
  return static_cast<std::uint32_t>(ceil_div(bytes, hardware.flit.flit_bytes));
}

FlitNetworkSpec spec_of(const topology::Mesh& mesh, const NetworkContext& network) {
  const models::HardwareModel& hardware = network.hardware;
  const bool whole = hardware.flit.switching == models::Switching::cut_through;
  if (whole && hardware.flit.vc_buffer_flits < flits_of(hardware.packet_bytes, hardware)) {
    throw PlanError(fmt::format("router.vc_buffer_flits: {} flits of {} B hold no packet of {} B (network.packet_bytes), which "
                                "router.switching: cut_through needs",
                                hardware.flit.vc_buffer_flits, hardware.flit.flit_bytes, hardware.packet_bytes));
  }
  FlitNetworkSpec spec{mesh, network.routes, hardware};
  spec.injection_buffer_flits =
      static_cast<unsigned>(std::min<Bytes>(hardware.vc_buffer_bytes / hardware.flit.flit_bytes, 1U << 30));
  spec.report_heads = true;
  spec.multicasts = &network.multicasts;
  return spec;
}

}  // namespace

FlitMesh::FlitMesh(sc_core::sc_module_name name, const topology::Mesh& mesh, NetworkContext& network)
    : sc_module(name),
      mesh_(mesh),
      network_(network),
      flits_(FlitNetwork::make(spec_of(mesh, network), *this)),
      lanes_per_tile_(network.layout.local),
      cut_through_(network.hardware.flit.switching == models::Switching::cut_through),
      ends_(mesh.tile_count()),
      lanes_(std::size_t{mesh.tile_count()} * lanes_per_tile_),
      ports_(mesh.link_slots()),
      injection_(network.hardware.injection_bytes_per_cycle, network.time_scale, network.hardware.flit.flit_bytes),
      ejection_(network.hardware.ejection_bytes_per_cycle, network.time_scale, network.hardware.flit.flit_bytes) {
  for (const topology::LinkClass& link_class : mesh.link_classes()) {
    const PortRate rate(network.hardware.link(link_class).bytes_per_cycle, network.time_scale, network.hardware.flit.flit_bytes);
    gapless_ = gapless_ && rate.serialization(network.hardware.flit.flit_bytes).ceil() == 1;
    links_.push_back(rate);
  }
  network.calendar.add(*this, Rank::router);
}

void FlitMesh::connect(TileId router, unsigned slot, TerminalIf* nic) {
  ends_[mesh_.member(router, slot)] = nic;
}

void FlitMesh::receive(TileId router, std::uint32_t index, Cycle head_at) {
  const Packet& packet = network_.packets[index];
  const std::uint32_t parcel_index = parcels_.take();
  Parcel& parcel = parcels_[parcel_index];
  parcel.packet = index;
  parcel.flits = flits_of(packet.bytes, network_.hardware);
  parcel.vc = packet.vc;
  parcel.axis = packet.axis;
  parcel.bytes = packet.bytes;
  parcel.head_at = head_at;
  if (packet.multicast) [[unlikely]] {
    flits_->set_multicast(parcel_index, packet.destination, parcel.flits);
  } else {
    flits_->set_packet(parcel_index, packet.destination, parcel.flits, packet.travel);
  }
  const std::size_t at = std::size_t{router} * lanes_per_tile_ + (packet.input - network_.layout.mesh);
  Lane& lane = lanes_[at];
  (lane.first == kNil ? lane.first : parcels_[lane.last].next) = parcel_index;
  lane.last = parcel_index;
  if (lane.due != kNever) return;
  start_next(lane);
  sending_.push_back(static_cast<std::uint32_t>(at));
  if (lane.due == network_.calendar.now()) {
    network_.calendar.request_evaluation(*this);
  } else {
    wake(lane.due);
  }
}

void FlitMesh::start_next(Lane& lane) {
  lane.sent = 0;
  lane.due = lane.first == kNil ? kNever : std::max(parcels_[lane.first].head_at, lane.free_at);
}

void FlitMesh::wake(Cycle at) {
  if (at >= wake_at_) return;
  wake_at_ = at;
  network_.calendar.post(*this, at, 0, 0);
}

void FlitMesh::update(unsigned /*kind*/, std::uint32_t /*payload*/) {
  if (wake_at_ != network_.calendar.current()) return;  // an earlier wake-up took its place
  wake_at_ = kNever;
  network_.calendar.request_evaluation(*this);
}

void FlitMesh::evaluate() {
  const Cycle now = network_.calendar.current();
  send_due_flits(now);
  flits_->step(now);
  Cycle next = flits_->next_work(now);
  for (const std::uint32_t lane : sending_) next = std::min(next, lanes_[lane].due);
  if (next != kNever) wake(next);
}

/// The flits of a parcel come at the rate of the injection port, from the arrival of its head on.
void FlitMesh::send_due_flits(Cycle now) {
  const Bytes flit_bytes = network_.hardware.flit.flit_bytes;
  std::size_t kept = 0;
  for (const std::uint32_t index : sending_) {
    Lane& lane = lanes_[index];
    if (lane.due == now) {
      const std::uint32_t parcel_index = lane.first;
      const Parcel& parcel = parcels_[parcel_index];
      const Flit flit(parcel_index, lane.sent == 0, lane.sent + 1 == parcel.flits);
      flits_->inject(index / lanes_per_tile_, index % lanes_per_tile_, parcel.vc, flit, now);
      ++flits_in_;
      ++lane.sent;
      lane.free_at = std::max(now + 1, parcel.head_at + injection_.serialization(lane.sent * flit_bytes).floor());
      lane.due = lane.free_at;
      if (flit.tail()) {
        lane.first = parcel.next;
        start_next(lane);
      }
    }
    if (lane.due != kNever) sending_[kept++] = index;
  }
  sending_.resize(kept);
}

/// The tile at a local port.
TileId FlitMesh::terminal(TileId router, unsigned lane) const {
  return network_.layout.locals == PortLayout::Locals::per_tile ? mesh_.member(router, lane) : router;
}

void FlitMesh::eject(TileId router, unsigned lane, Flit flit, Cycle at) {
  const TileId tile = terminal(router, lane);
  ++flits_out_;
  const std::uint32_t parcel = flit.packet();
  const std::uint32_t place = parcels_[parcel].ejected++;
  require_invariant(flit.head() == (place == 0) && flit.tail() == (place + 1 == parcels_[parcel].flits),
                    "the flits of a packet came out of order");
  // Where flits of a cut-through packet leave without a gap, its tail's time is known with the head.
  const bool known = cut_through_ && gapless_;
  if (known && flit.head()) hand_over(tile, parcel, at, at + parcels_[parcel].flits);
  if (!flit.tail()) return;
  if (!known) hand_over(tile, parcel, at, at + ejection_.serialization(network_.hardware.flit.flit_bytes).ceil());
  parcels_.give_back(parcel);
}

void FlitMesh::hand_over(TileId tile, std::uint32_t index, Cycle head_at, Cycle tail_at) {
  const Parcel& parcel = parcels_[index];
  network_.packets[parcel.packet].queued = parcel.queued;
  ends_[tile]->eject(parcel.packet, head_at, {tail_at, 0});
}

void FlitMesh::injection_credit(TileId router, unsigned lane, unsigned vc, Flit flit, Cycle at) {
  if (!flit.tail()) return;
  const unsigned its_lane = network_.layout.per_direction() ? lane : 0;
  ends_[terminal(router, lane)]->credit(its_lane, vc, network_.buffered(parcels_[flit.packet()].bytes), at);
}

void FlitMesh::head_sent(TileId tile, unsigned output, std::uint32_t index, Cycle waited) {
  Parcel& parcel = parcels_[index];
  parcel.queued += waited;
  if (network_.path != nullptr) {
    network_.path->head_sent(parcel.packet, tile, output, network_.calendar.current(), waited);
  }
  if (output >= network_.layout.mesh) return;
  PortStatistics& port = ports_[tile * topology::kDirections + output];
  port.packets += 1;
  port.queued += waited;
  port.bytes_by_axis[static_cast<std::size_t>(parcel.axis)] += parcel.bytes;
}

std::uint32_t FlitMesh::copied(std::uint32_t index) {
  const std::uint32_t original = parcels_[index].packet;
  const std::uint32_t packet = network_.packets.take();
  network_.packets[packet] = network_.packets[original];
  if (network_.path != nullptr) network_.path->copied(packet, original);
  const std::uint32_t copy = parcels_.take();
  parcels_[copy] = parcels_[index];
  parcels_[copy].packet = packet;
  flits_in_ += parcels_[copy].flits;
  return copy;
}

void FlitMesh::parted(std::uint32_t index) {
  const Parcel& parcel = parcels_[index];
  flits_in_ -= parcel.flits;
  if (network_.path != nullptr) network_.path->packet_gone(parcel.packet);
  network_.packets.give_back(parcel.packet);
  parcels_.give_back(index);
}

PortStatistics FlitMesh::statistics(topology::LinkId link) const {
  PortStatistics port = ports_[link];
  const PortRate& rate = links_[mesh_.link_class(link)];
  port.busy = cut_through_ ? flits_->held_cycles(link)
                           : rate.serialization(flits_->link_flits(link) * network_.hardware.flit.flit_bytes).ceil();
  return port;
}

void FlitMesh::check_empty() const {
  require_invariant(flits_in_ == flits_out_, "flits went into the network that did not come out");
  flits_->check_empty();
}

FlitRouter::FlitRouter(sc_core::sc_module_name name, TileId tile, FlitMesh& mesh)
    : sc_module(name), tile_(tile), mesh_(mesh) {}

void FlitRouter::receive(std::uint32_t packet, Cycle head_at, const ExactTime& /*tail_at*/) {
  mesh_.receive(tile_, packet, head_at);
}

void FlitRouter::end_of_elaboration() {
  for (int i = 0; i < terminals.size(); ++i) {
    mesh_.connect(tile_, slots[static_cast<std::size_t>(i)], terminals[i]);
  }
}

}  // namespace wafersim::sim
