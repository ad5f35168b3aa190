#include "sim/flit_traffic.h"

#include <algorithm>
#include <bit>
#include <ctime>
#include <fmt/format.h>

#include "base/error.h"
#include "base/random.h"
#include "sim/delay_line.h"
#include "sim/flit_network.h"
#include "sim/packet_process.h"
#include "sim/pool.h"
#include "topology/routing.h"

namespace wafersim::sim {
namespace {

double cpu_seconds() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

struct QueuedPacket {
  std::uint32_t next = kNil;
  std::uint32_t flits = 0;
  TileId source = kNoTile;
  TileId destination = kNoTile;
  Cycle created = 0;
  Cycle injected = 0;
};

/// A tile that makes packets.
struct Source {
  explicit Source(RandomStream stream) : random(stream) {}
  RandomStream random;
  bool on = true;
  bool full = false;           ///< makes no more before one of its packets has been taken from its queue
  std::uint32_t queued = 0;
  std::uint64_t made = 0;
  Cycle next = kNever;         ///< when its next packet is made
  // Flits of the measurement.
  std::uint64_t offered = 0;
  std::uint64_t accepted = 0;
};

/// An injection port.
struct Lane {
  std::uint32_t first = kNil;  ///< its queue
  std::uint32_t last = kNil;
  std::uint32_t sending = kNil;
  std::uint32_t sent = 0;      ///< flits of it
  std::uint64_t queued = 0;    ///< flits in its queue
  std::uint8_t vc = 0;         ///< of the packet that is sent, or was sent last
  PortClock clock;
};

class FlitTraffic final : private FlitTerminals {
 public:
  FlitTraffic(const topology::Mesh& mesh, const topology::RoutingPolicy& routing, const models::HardwareModel& hardware,
              const workloads::TrafficSpec& spec, const FlitTrafficOptions& options)
      : mesh_(mesh),
        policy_(routing),
        hardware_(hardware),
        spec_(spec),
        options_(options),
        routes_(mesh, routing, static_cast<unsigned>(hardware.virtual_channels), options.seed),
        destinations_(spec, mesh),
        recorded_(spec.pattern == workloads::SyntheticPattern::trace || options.packets != nullptr),
        process_(recorded_ ? workloads::TrafficSpec{} : spec),
        network_(FlitNetwork::make({mesh, routes_, hardware, hardware.flit.vc_buffer_flits, hardware.flit.vc_buffer_flits},
                                   *this)),
        vcs_(static_cast<unsigned>(hardware.virtual_channels)),
        layout_(mesh, hardware.nic_ports),
        lanes_per_tile_(layout_.lanes()),
        lanes_(std::size_t{mesh.tile_count()} * lanes_per_tile_),
        credits_(lanes_.size() * vcs_, hardware.flit.vc_buffer_flits),
        sending_(ceil_div<std::size_t>(lanes_.size(), 64)),
        returning_(network_->horizon()),
        whole_packets_(hardware.flit.switching == models::Switching::cut_through),
        wheel_(kWheel),
        measure_from_(spec.warmup.cycles(hardware.clock)),
        measure_to_(measure_from_ + spec.measurement.cycles(hardware.clock)),
        end_(measure_to_ + spec.drain.cycles(hardware.clock)) {
    const std::uint64_t scale = common_time_scale({hardware.injection_bytes_per_cycle, hardware.ejection_bytes_per_cycle});
    injection_ = PortRate(hardware.injection_bytes_per_cycle, scale, hardware.flit.flit_bytes);
    const PortRate ejection(hardware.ejection_bytes_per_cycle, scale, hardware.flit.flit_bytes);
    slow_injection_ = injection_.serialization(hardware.flit.flit_bytes) > ExactTime{1, 0};
    last_part_ = hardware.ejection_cycles + ejection.serialization(hardware.flit.flit_bytes).ceil() - 1;
    const Rational slowest = std::min({hardware.link_bytes_per_cycle, hardware.injection_bytes_per_cycle,
                                       hardware.ejection_bytes_per_cycle});
    patience_ = 2 * (network_->horizon() + cycles_at_rate(hardware.flit.flit_bytes, slowest));
    if (options.shuffle) network_->shuffle(options.seed);
    if (!options.watch.tiles.empty()) {
      watch_.emplace(options.watch, [this](TileId tile, Cycle, RouterSample& sample) { network_->sample(tile, sample); });
    }
    for (Lane& lane : lanes_) lane.vc = static_cast<std::uint8_t>(vcs_ - 1);
    make_sources();
    if (whole_packets_) check_packet_sizes();
  }

  TrafficMeasurement run();

 private:
  static constexpr std::size_t kWheel = 1024;
  /// Packets that a tile queues before it stops making them and catches up later. A single lane loses nothing by that: what is
  /// made later has the cycle of its making. With a lane for each direction it is far beyond saturation.
  static constexpr std::uint32_t kQueue = 512;
  static constexpr Cycle kPollInterval = 1U << 12;

  void eject(TileId tile, unsigned lane, Flit flit, Cycle at) override;
  void injection_credit(TileId tile, unsigned lane, unsigned vc, Flit flit, Cycle at) override {
    const bool shared = layout_.locals == PortLayout::Locals::per_tile;
    const std::size_t index = shared ? lane_index(mesh_.member(tile, lane), 0) : lane_index(tile, lane);
    returning_.slot(at).push_back({index * vcs_ + vc, whole_packets_ ? packets_[flit.packet()].flits : 1});
  }

  std::size_t lane_index(TileId tile, unsigned lane) const { return std::size_t{tile} * lanes_per_tile_ + lane; }
  void make_sources();
  void read_trace();
  void check_packet_sizes() const;
  void schedule(std::uint32_t tile, Cycle now);
  void make_due(Cycle now);
  void make_packets(std::uint32_t tile, Cycle now);
  unsigned lane_for(std::uint32_t packet) const;
  std::uint64_t flits_before(TileId tile, unsigned lane) const;
  void enqueue(TileId source, TileId destination, std::uint32_t flits, Cycle created);
  void send_flits(Cycle now);
  bool send_flit(std::size_t index, Cycle now);
  bool start_packet(std::size_t index, Cycle now);
  void check_progress(Cycle now);
  void check_empty(Cycle now);
  void judge(TrafficMeasurement& out) const;
  double most_busy_cycles() const;
  bool measured(Cycle created) const { return created >= measure_from_ && created < measure_to_; }
  bool finished(Cycle now) const { return now >= measure_to_ && waiting_for_ == 0 && made_until(now); }
  bool made_until(Cycle now) const;
  Cycle skip_idle(Cycle now);

  const topology::Mesh& mesh_;
  const topology::RoutingPolicy& policy_;
  const models::HardwareModel& hardware_;
  const workloads::TrafficSpec& spec_;
  const FlitTrafficOptions& options_;
  PacketRoutes routes_;
  workloads::Destinations destinations_;
  bool recorded_;  ///< packets of a trace
  PacketProcess process_;
  std::unique_ptr<FlitNetwork> network_;
  unsigned vcs_;
  PortLayout layout_;
  unsigned lanes_per_tile_;  ///< injection ports of one
  std::vector<Lane> lanes_;
  std::vector<std::uint32_t> credits_;  ///< by lane and VC
  std::vector<std::uint64_t> sending_;  ///< lanes with a packet, a bit each
  struct Credit {
    std::size_t lane_vc;
    std::uint32_t flits;
  };
  DelayLine<Credit> returning_;
  bool whole_packets_ = false;  ///< cut-through: room is taken and given back by the packet
  std::vector<std::vector<std::uint32_t>> wheel_;  ///< tiles by the cycle in which they make a packet
  std::vector<Source> sources_;         ///< by tile
  std::vector<workloads::TracedPacket> trace_;
  std::size_t next_traced_ = 0;
  Pool<QueuedPacket> packets_;
  std::vector<topology::Travel> travels_;  ///< by packet; empty when the routes are plain
  PortRate injection_;
  bool slow_injection_ = false;
  Cycle last_part_ = 0;       ///< from the cycle of a flit on the ejection link to its arrival
  Cycle measure_from_, measure_to_, end_;
  std::uint64_t waiting_for_ = 0;  ///< measured packets that have not arrived
  std::uint64_t alive_ = 0;        ///< packets made and not arrived
  Cycle busy_until_ = 0;           ///< of traces: the last cycle in which there was one
  std::uint64_t flits_sent_ = 0;
  std::uint64_t flits_arrived_ = 0;
  Cycle next_poll_ = 0;
  Cycle patience_ = 0;        ///< without any move, before the network counts as stalled
  std::uint64_t moves_ = 0;   ///< flits sent and through routers at the last poll
  Cycle moved_at_ = 0;        ///< the first poll at which there were so many
  std::optional<RouterWatch> watch_;
  TrafficMeasurement out_;
};

void FlitTraffic::make_sources() {
  sources_.reserve(mesh_.tile_count());
  for (TileId tile = 0; tile < mesh_.tile_count(); ++tile) {
    sources_.emplace_back(RandomStream(options_.seed, "traffic." + mesh_.name(tile)));
  }
  if (recorded_) return read_trace();
  for (TileId tile = 0; tile < mesh_.tile_count(); ++tile) {
    if (!destinations_.sends(tile)) continue;
    Source& source = sources_[tile];
    source.on = process_.initially_on(source.random);
    source.next = process_.next(0, end_, source.on, source.random);
    schedule(tile, 0);
  }
}

/// All packets of a trace are measured.
void FlitTraffic::read_trace() {
  trace_ = options_.packets != nullptr ? *options_.packets : workloads::read_packet_trace(spec_.file, mesh_);
  if (mesh_.has_faults()) {
    for (const workloads::TracedPacket& packet : trace_) topology::require_way(policy_, mesh_, packet.source, packet.destination);
  }
  measure_from_ = 0;
  measure_to_ = trace_.empty() ? 0 : trace_.back().cycle + 1;
  end_ = measure_to_ + spec_.drain.cycles(hardware_.clock);
}

void FlitTraffic::check_packet_sizes() const {
  std::uint64_t largest = 0;
  for (const workloads::TracedPacket& packet : trace_) {
    largest = std::max<std::uint64_t>(largest, ceil_div<Bytes>(packet.bytes, hardware_.flit.flit_bytes));
  }
  if (!recorded_) largest = *std::max_element(spec_.packet_flits.flits.begin(), spec_.packet_flits.flits.end());
  if (largest <= hardware_.flit.vc_buffer_flits) return;
  throw PlanError(fmt::format("{}: {} flits are more than a buffer of {} flits (router.vc_buffer_flits), which "
                              "router.switching: cut_through does not allow",
                              recorded_ ? "traffic.file" : "traffic.packet_flits", largest, hardware_.flit.vc_buffer_flits));
}

void FlitTraffic::schedule(std::uint32_t tile, Cycle now) {
  const Cycle next = sources_[tile].next;
  if (next >= end_) return;
  wheel_[std::min(next, now + kWheel - 1) % kWheel].push_back(tile);
}

void FlitTraffic::make_due(Cycle now) {
  while (next_traced_ < trace_.size() && trace_[next_traced_].cycle == now) {
    const workloads::TracedPacket& packet = trace_[next_traced_++];
    const auto flits = ceil_div<Bytes>(packet.bytes, hardware_.flit.flit_bytes);
    enqueue(packet.source, packet.destination, static_cast<std::uint32_t>(flits), now);
  }
  std::vector<std::uint32_t>& due = wheel_[now % kWheel];
  for (const std::uint32_t tile : due) {
    if (sources_[tile].next > now) {
      schedule(tile, now);  // at least one cycle on: another slot
    } else {
      make_packets(tile, now);
    }
  }
  due.clear();
}

/// All packets of a tile up to now, as far as its queue takes them.
void FlitTraffic::make_packets(std::uint32_t tile, Cycle now) {
  Source& source = sources_[tile];
  source.full = false;
  while (source.next <= now) {
    if (source.queued == kQueue) {
      source.full = true;
      return;
    }
    const std::vector<std::uint32_t>& sizes = spec_.packet_flits.flits;
    const TileId destination = destinations_.draw(tile, source.random);
    const std::uint32_t flits = sizes.size() == 1 ? sizes.front() : sizes[source.random.below(sizes.size())];
    enqueue(tile, destination, flits, source.next);
    source.next = process_.next(source.next + 1, end_, source.on, source.random);
  }
  schedule(tile, now);
}

void FlitTraffic::enqueue(TileId tile, TileId destination, std::uint32_t flits, Cycle created) {
  const std::uint32_t index = packets_.take();
  require_invariant(index <= Flit::kMaxPacket, "too many packets in flight");
  packets_[index] = {kNil, flits, tile, destination, created, 0};
  Source& source = sources_[tile];
  const std::uint64_t number = source.made++;
  ++source.queued;
  ++alive_;
  if (measured(created)) {
    ++waiting_for_;
    ++out_.packets_made;
    source.offered += flits;
  }
  if (!routes_.plain()) {
    if (index >= travels_.size()) travels_.resize(index + index / 2 + 64);
    travels_[index] = routes_.depart(tile, destination, number);
  }
  const std::size_t at = lane_index(tile, lanes_per_tile_ > 1 ? lane_for(index) : 0);
  Lane& queue = lanes_[at];
  queue.queued += flits;
  (queue.first == kNil ? queue.first : packets_[queue.last].next) = index;
  queue.last = index;
  sending_[at / 64] |= std::uint64_t{1} << (at % 64);
}

/// The injection port of a packet's first hop. Of several, that with the fewest flits in its queue and in the buffers behind
/// it, the first of these in the order of directions.
unsigned FlitTraffic::lane_for(std::uint32_t index) const {
  const QueuedPacket& packet = packets_[index];
  topology::OutputSet outputs = 0;
  if (routes_.plain()) {
    const topology::Hop hop = routes_.next(packet.source, packet.destination);
    if (hop != topology::Hop::unreachable) outputs = topology::output_bit(hop);
  } else {
    topology::Travel travel = travels_[index];
    outputs = routes_.outputs(travel, packet.source, topology::Hop::local, packet.destination);
  }
  if (outputs == 0) {
    throw PlanError(fmt::format("{}: the routing has no live way to {}", mesh_.name(packet.source),
                                mesh_.name(packet.destination)));
  }
  const std::uint16_t lanes = layout_.lanes_to(outputs);
  auto best = static_cast<unsigned>(std::countr_zero(lanes));
  if (std::has_single_bit(lanes)) return best;
  std::uint64_t fewest = flits_before(packet.source, best);
  for (unsigned left = lanes & (lanes - 1U); left != 0; left &= left - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(left));
    const std::uint64_t before = flits_before(packet.source, lane);
    if (before >= fewest) continue;
    fewest = before;
    best = lane;
  }
  return best;
}

std::uint64_t FlitTraffic::flits_before(TileId tile, unsigned lane) const {
  const std::size_t at = lane_index(tile, lane);
  std::uint64_t flits = lanes_[at].queued;
  for (unsigned vc = 0; vc < vcs_; ++vc) flits += hardware_.flit.vc_buffer_flits - credits_[at * vcs_ + vc];
  return flits;
}

void FlitTraffic::send_flits(Cycle now) {
  for (std::size_t word = 0; word < sending_.size(); ++word) {
    for (std::uint64_t left = sending_[word]; left != 0; left &= left - 1) {
      const auto bit = static_cast<unsigned>(std::countr_zero(left));
      if (!send_flit(word * 64 + bit, now)) sending_[word] &= ~(std::uint64_t{1} << bit);
    }
  }
}

/// The next packet of a lane takes the first VC of its class with room behind the one of the packet before. A cut-through network has room
/// only for whole packets. False when there is none.
bool FlitTraffic::start_packet(std::size_t index, Cycle now) {
  Lane& lane = lanes_[index];
  const QueuedPacket& packet = packets_[lane.first];
  const std::uint32_t needed = whole_packets_ ? packet.flits : 1;
  const topology::Travel travel = routes_.plain() ? topology::Travel{} : travels_[lane.first];
  const topology::VcRange may = routes_.vcs(travel.vc_class);
  for (unsigned i = 1; i <= vcs_; ++i) {
    const unsigned vc = (lane.vc + i) % vcs_;
    if (vc - may.first >= may.count) continue;  // below the first, too
    if (credits_[index * vcs_ + vc] < needed) continue;
    lane.vc = static_cast<std::uint8_t>(vc);
    lane.sending = lane.first;
    lane.first = packet.next;
    lane.queued -= packet.flits;
    lane.sent = 0;
    packets_[lane.sending].injected = now;
    network_->set_packet(lane.sending, packet.destination, packet.flits, travel);
    Source& source = sources_[packet.source];
    --source.queued;
    if (source.full) make_packets(packet.source, now);
    return true;
  }
  return false;
}

/// False when the lane has nothing more to send.
bool FlitTraffic::send_flit(std::size_t index, Cycle now) {
  Lane& lane = lanes_[index];
  if (slow_injection_ && lane.clock.free_at() > now) return true;
  if (lane.sending == kNil && !start_packet(index, now)) return true;
  std::uint32_t& credits = credits_[index * vcs_ + lane.vc];
  if (credits == 0) return true;
  --credits;
  ++flits_sent_;
  const std::uint32_t flits = packets_[lane.sending].flits;
  const Flit flit(lane.sending, lane.sent == 0, lane.sent + 1 == flits);
  const auto tile = static_cast<TileId>(index / lanes_per_tile_);
  if (slow_injection_) lane.clock.occupy(now, hardware_.flit.flit_bytes, {}, injection_);
  const unsigned port = layout_.per_direction() ? static_cast<unsigned>(index % lanes_per_tile_) : mesh_.slot(tile);
  network_->inject(mesh_.router(tile), port, lane.vc, flit,
                   now + 1 + hardware_.injection_cycles);
  if (++lane.sent == flits) lane.sending = kNil;
  return lane.sending != kNil || lane.first != kNil;
}

void FlitTraffic::eject(TileId tile, unsigned lane, Flit flit, Cycle at) {
  const Cycle arrived = at + last_part_;
  const std::uint32_t index = flit.packet();
  const QueuedPacket& packet = packets_[index];
  const bool shared = layout_.locals == PortLayout::Locals::per_tile;
  const TileId at_tile = shared ? mesh_.member(tile, lane) : tile;
  require_invariant(packet.destination == at_tile, "a flit arrived at a tile that it was not for");
  Source& source = sources_[packet.source];
  ++flits_arrived_;
  if (measured(arrived)) ++source.accepted;
  if (!flit.tail()) return;
  if (options_.on_packet) {
    options_.on_packet({packet.source, packet.destination, packet.flits, packet.created, packet.injected, arrived});
  }
  if (measured(packet.created)) {
    out_.latency.add(arrived - packet.created);
    out_.network_latency.add(arrived - packet.injected);
    --waiting_for_;
  }
  --alive_;
  packets_.give_back(index);
}

/// No source still has to make a packet of the measurement.
bool FlitTraffic::made_until(Cycle now) const {
  return now > measure_to_ && std::none_of(sources_.begin(), sources_.end(), [this](const Source& source) {
           return source.full && source.next < measure_to_;
         });
}

/// The cycle before the next packet of a trace when nothing is under way, credits included; otherwise `now`.
Cycle FlitTraffic::skip_idle(Cycle now) {
  if (alive_ != 0) busy_until_ = now;
  if (now < busy_until_ + network_->horizon() || next_traced_ == trace_.size()) return now;
  return std::max(now, trace_[next_traced_].cycle - 1);
}

TrafficMeasurement FlitTraffic::run() {
  const double before = cpu_seconds();
  Cycle now = 0;
  bool stopped = false;
  for (; now < end_ && !finished(now) && !stopped; ++now) {
    for (const Credit& credit : returning_.slot(now)) credits_[credit.lane_vc] += credit.flits;
    returning_.slot(now).clear();
    make_due(now);
    send_flits(now);
    network_->step(now);
    if (watch_) watch_->sample(now);
    if (now >= next_poll_) {
      next_poll_ = now + kPollInterval;
      check_progress(now);
      stopped = options_.interrupted && options_.interrupted();
    }
    if (recorded_) now = skip_idle(now);
  }
  if (alive_ == 0) check_empty(now);
  out_.cycles = now;
  out_.drained = finished(now) && !stopped;
  judge(out_);
  out_.cpu_seconds = cpu_seconds() - before;
  return out_;
}

/// A network that holds flits moves one in the time of its longest delay, or never.
void FlitTraffic::check_progress(Cycle now) {
  const std::uint64_t moves = flits_sent_ + network_->router_traversals();
  if (moves != moves_ || flits_sent_ == flits_arrived_) {
    moves_ = moves;
    moved_at_ = now;
  } else if (now - moved_at_ >= patience_) {
    throw InternalError(fmt::format("the network stalled before cycle {}: {} flits are in it, and none has moved for {} cycles\n  {}",
                                    now, flits_sent_ - flits_arrived_, now - moved_at_, network_->describe_stall()));
  }
}

/// With all packets arrived, every credit comes back to where it was.
void FlitTraffic::check_empty(Cycle now) {
  const Cycle last = now + network_->horizon();
  for (; now < last; ++now) {
    for (const Credit& credit : returning_.slot(now)) credits_[credit.lane_vc] += credit.flits;
    returning_.slot(now).clear();
    network_->step(now);
  }
  require_invariant(flits_sent_ == flits_arrived_, "flits went into the network that did not come out");
  const bool whole = std::all_of(credits_.begin(), credits_.end(),
                                 [this](std::uint32_t count) { return count == hardware_.flit.vc_buffer_flits; });
  require_invariant(whole, "an injection credit was lost or made");
  network_->check_empty();
}

void FlitTraffic::judge(TrafficMeasurement& out) const {
  std::uint64_t offered = 0;
  std::uint64_t accepted = 0;
  std::uint64_t senders = 0;
  bool steady = true;
  // What a source may have under way in the end and not in the beginning: a few packets, and what it sends in the time of the
  // longest way through an empty network, four times.
  const auto way = static_cast<Cycle>(mesh_.rows() + mesh_.cols());
  Cycle slowest_link = 0;
  for (const topology::LinkClass& link_class : mesh_.link_classes()) {
    slowest_link = std::max(slowest_link, hardware_.link(link_class).cycles);
  }
  const Cycle longest = way * (static_cast<Cycle>(hardware_.flit.stages.cycles()) + slowest_link + 1);
  const double slack = 4 * (spec_.packet_flits.mean().to_double() + spec_.load.to_double() * static_cast<double>(longest));
  for (const Source& source : sources_) {
    offered += source.offered;
    accepted += source.accepted;
    if (source.offered == 0) continue;
    ++senders;
    const double made = static_cast<double>(source.offered);
    const double arrived = static_cast<double>(source.accepted);
    out.least_accepted = std::min(out.least_accepted, arrived / made);
    steady = steady && made - arrived <= 0.01 * made + slack;
  }
  const double tile_cycles = static_cast<double>(senders) * static_cast<double>(measure_to_ - measure_from_);
  if (tile_cycles > 0) {
    out.offered_load = static_cast<double>(offered) / tile_cycles;
    out.accepted_load = static_cast<double>(accepted) / tile_cycles;
  }
  out.stable = out.drained && (steady || recorded_);
  out.flit_hops = network_->flit_hops();
  out.router_traversals = network_->router_traversals();
  out.router_cycles = network_->router_cycles();
  if (out.cycles > 0) out.max_link_utilization = most_busy_cycles() / static_cast<double>(out.cycles);
}

/// Of any link.
double FlitTraffic::most_busy_cycles() const {
  std::vector<double> cycles_of_flit;
  for (const topology::LinkClass& link_class : mesh_.link_classes()) {
    const Rational flit(static_cast<std::int64_t>(hardware_.flit.flit_bytes));
    cycles_of_flit.push_back(std::max(1.0, (flit / hardware_.link(link_class).bytes_per_cycle).to_double()));
  }
  double most = 0;
  for (topology::LinkId link = 0; link < mesh_.link_slots(); ++link) {
    most = std::max(most, static_cast<double>(network_->link_flits(link)) * cycles_of_flit[mesh_.link_class(link)]);
  }
  return most;
}

}  // namespace

TrafficMeasurement run_flit_traffic(const topology::Mesh& mesh, const topology::RoutingPolicy& routing,
                                    const models::HardwareModel& hardware, const workloads::TrafficSpec& spec,
                                    const FlitTrafficOptions& options) {
  FlitTraffic traffic(mesh, routing, hardware, spec, options);
  return traffic.run();
}

}  // namespace wafersim::sim
