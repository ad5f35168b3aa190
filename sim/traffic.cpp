#include "sim/traffic.h"

#include <algorithm>
#include <bit>
#include <ctime>
#include <fmt/format.h>

#include "base/error.h"
#include "sim/delay_line.h"
#include "sim/pool.h"
#include "sim/port_clock.h"
#include "sim/port_layout.h"
#include "sim/traffic_network.h"
#include "sim/traffic_sources.h"

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

/// An injection port.
struct Lane {
  std::uint32_t first = kNil;  ///< its queue
  std::uint32_t last = kNil;
  std::uint32_t sent = 0;      ///< flits of the packet that is sent
  std::uint64_t queued = 0;    ///< flits in its queue
  TrafficPacket sending;       ///< with flits = 0, nothing; its VC is that of the last one
  PortClock clock;
};

class Traffic final : private TrafficTerminals {
 public:
  Traffic(const topology::Mesh& mesh, const topology::RoutingPolicy& routing, const models::HardwareModel& hardware,
          const workloads::TrafficSpec& spec, const TrafficOptions& options)
      : mesh_(mesh),
        hardware_(hardware),
        spec_(spec),
        options_(options),
        sources_(mesh, routing, hardware, spec, options, [this](const TrafficSources::Made& made) { enqueue(made); }),
        network_(TrafficNetwork::make({mesh, routing, hardware, options.seed, largest_packet(), options.shuffle}, *this)),
        flits_by_source_(mesh.tile_count()),
        vcs_(static_cast<unsigned>(hardware.virtual_channels)),
        layout_(mesh, hardware.nic_ports),
        lanes_per_tile_(layout_.lanes()),
        lanes_(std::size_t{mesh.tile_count()} * lanes_per_tile_),
        credits_(lanes_.size() * vcs_, network_->buffer_flits()),
        sending_(ceil_div<std::size_t>(lanes_.size(), 64)),
        returning_(network_->horizon()) {
    check_packet_sizes();
    const std::uint64_t scale = common_time_scale({hardware.injection_bytes_per_cycle, hardware.ejection_bytes_per_cycle});
    injection_ = PortRate(hardware.injection_bytes_per_cycle, scale, hardware.flit.flit_bytes);
    const PortRate ejection(hardware.ejection_bytes_per_cycle, scale, hardware.flit.flit_bytes);
    slow_injection_ = injection_.serialization(hardware.flit.flit_bytes) > ExactTime{1, 0};
    last_part_ = hardware.ejection_cycles;
    if (hardware.fidelity == models::Fidelity::flit) last_part_ += ejection.serialization(hardware.flit.flit_bytes).ceil() - 1;
    const Rational slowest = std::min({hardware.link_bytes_per_cycle, hardware.injection_bytes_per_cycle,
                                       hardware.ejection_bytes_per_cycle});
    patience_ = 2 * (network_->horizon() + cycles_at_rate(hardware.flit.flit_bytes, slowest));
    if (!options.watch.tiles.empty()) {
      watch_.emplace(options.watch, [this](TileId tile, Cycle at, RouterSample& sample) { network_->sample(tile, at, sample); });
    }
    for (Lane& lane : lanes_) lane.sending.vc = vcs_ - 1;
  }

  TrafficMeasurement run();

 private:
  static constexpr Cycle kPollInterval = 1U << 12;

  void eject(TileId tile, std::uint32_t packet, std::uint32_t flits, bool tail, Cycle last) override;
  void room(TileId tile, unsigned lane, unsigned vc, std::uint32_t flits, Cycle at) override {
    returning_.slot(at).push_back({lane_index(tile, lane) * vcs_ + vc, flits});
  }

  std::size_t lane_index(TileId tile, unsigned lane) const { return std::size_t{tile} * lanes_per_tile_ + lane; }
  std::uint32_t largest_packet() const {
    return static_cast<std::uint32_t>(std::min<std::uint64_t>(sources_.largest(), kMostFlits));
  }
  void check_packet_sizes() const;
  unsigned lane_for(std::uint32_t packet) const;
  std::uint64_t flits_before(TileId tile, unsigned lane) const;
  void enqueue(const TrafficSources::Made& made);
  void take_credits(Cycle now);
  void send_flits(Cycle now);
  bool send_flit(std::size_t index, Cycle now);
  bool start_packet(std::size_t index, Cycle now);
  void check_progress(Cycle now);
  void check_empty(Cycle now);
  void judge(TrafficMeasurement& out) const;
  double most_busy_cycles(TrafficMeasurement& out) const;
  bool finished(Cycle now) const { return now >= sources_.measure_to() && waiting_for_ == 0 && sources_.made_until(now); }
  Cycle skip_idle(Cycle now);

  static constexpr std::uint32_t kMostFlits = 1U << 30;

  const topology::Mesh& mesh_;
  const models::HardwareModel& hardware_;
  const workloads::TrafficSpec& spec_;
  const TrafficOptions& options_;
  TrafficSources sources_;
  std::unique_ptr<TrafficNetwork> network_;
  /// Of the measurement.
  struct Flits {
    std::uint64_t offered = 0;
    std::uint64_t accepted = 0;
  };
  std::vector<Flits> flits_by_source_;  ///< by tile
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
  Pool<QueuedPacket> packets_;
  std::vector<topology::Travel> travels_;  ///< by packet; empty when the routes are plain
  PortRate injection_;
  bool slow_injection_ = false;
  Cycle last_part_ = 0;       ///< from the cycle of a flit on the ejection link to its arrival
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

void Traffic::check_packet_sizes() const {
  const std::uint64_t largest = sources_.largest();
  if (!network_->whole_packets() || largest <= network_->buffer_flits()) return;
  const bool packets = hardware_.fidelity == models::Fidelity::packet;
  throw PlanError(fmt::format("{}: {} flits are more than a buffer of {} flits ({}), which {} does not allow",
                              sources_.recorded() ? "traffic.file" : "traffic.packet_flits", largest, network_->buffer_flits(),
                              packets ? "router.vc_buffer" : "router.vc_buffer_flits",
                              packets ? "network.fidelity: packet" : "router.switching: cut_through"));
}

void Traffic::enqueue(const TrafficSources::Made& made) {
  const std::uint32_t index = packets_.take();
  packets_[index] = {kNil, made.flits, made.source, made.destination, made.created, 0};
  ++alive_;
  if (sources_.measured(made.created)) {
    ++waiting_for_;
    ++out_.packets_made;
    flits_by_source_[made.source].offered += made.flits;
  }
  if (!network_->routes().plain()) {
    if (index >= travels_.size()) travels_.resize(index + index / 2 + 64);
    travels_[index] = network_->routes().depart(made.source, made.destination, made.number);
  }
  const std::size_t at = lane_index(made.source, lanes_per_tile_ > 1 ? lane_for(index) : 0);
  Lane& queue = lanes_[at];
  queue.queued += made.flits;
  (queue.first == kNil ? queue.first : packets_[queue.last].next) = index;
  queue.last = index;
  sending_[at / 64] |= std::uint64_t{1} << (at % 64);
}

/// The injection port of a packet's first hop. Of several, that with the fewest flits in its queue and in the buffers behind
/// it, the first of these in the order of directions.
unsigned Traffic::lane_for(std::uint32_t index) const {
  const QueuedPacket& packet = packets_[index];
  const PacketRoutes& routes = network_->routes();
  topology::OutputSet outputs = 0;
  if (routes.plain()) {
    const topology::Hop hop = routes.next(packet.source, packet.destination);
    if (hop != topology::Hop::unreachable) outputs = topology::output_bit(hop);
  } else {
    topology::Travel travel = travels_[index];
    outputs = routes.outputs(travel, packet.source, topology::Hop::local, packet.destination);
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

std::uint64_t Traffic::flits_before(TileId tile, unsigned lane) const {
  const std::size_t at = lane_index(tile, lane);
  std::uint64_t flits = lanes_[at].queued;
  for (unsigned vc = 0; vc < vcs_; ++vc) flits += network_->buffer_flits() - credits_[at * vcs_ + vc];
  return flits;
}

void Traffic::take_credits(Cycle now) {
  for (const Credit& credit : returning_.slot(now)) credits_[credit.lane_vc] += credit.flits;
  returning_.slot(now).clear();
}

void Traffic::send_flits(Cycle now) {
  for (std::size_t word = 0; word < sending_.size(); ++word) {
    for (std::uint64_t left = sending_[word]; left != 0; left &= left - 1) {
      const auto bit = static_cast<unsigned>(std::countr_zero(left));
      if (!send_flit(word * 64 + bit, now)) sending_[word] &= ~(std::uint64_t{1} << bit);
    }
  }
}

/// The next packet of a lane takes the first VC of its class with room behind the one of the packet before. A network of whole
/// packets has room only for these. False when there is none.
bool Traffic::start_packet(std::size_t index, Cycle now) {
  Lane& lane = lanes_[index];
  const std::uint32_t number = lane.first;
  QueuedPacket& packet = packets_[number];
  const PacketRoutes& routes = network_->routes();
  const std::uint32_t needed = network_->whole_packets() ? packet.flits : 1;
  const topology::Travel travel = routes.plain() ? topology::Travel{} : travels_[number];
  const topology::VcRange may = routes.vcs(travel.vc_class);
  for (unsigned i = 1; i <= vcs_; ++i) {
    const unsigned vc = (lane.sending.vc + i) % vcs_;
    if (vc - may.first >= may.count) continue;  // below the first, too
    if (credits_[index * vcs_ + vc] < needed) continue;
    lane.sending = {number, packet.source, packet.destination, packet.flits, static_cast<unsigned>(index % lanes_per_tile_), vc,
                    travel};
    lane.first = packet.next;
    lane.queued -= packet.flits;
    lane.sent = 0;
    packet.injected = now;
    network_->start(lane.sending, now + 1 + hardware_.injection_cycles);
    sources_.taken(lane.sending.source, now);
    return true;
  }
  return false;
}

/// False when the lane has nothing more to send.
bool Traffic::send_flit(std::size_t index, Cycle now) {
  Lane& lane = lanes_[index];
  if (slow_injection_ && lane.clock.free_at() > now) return true;
  if (lane.sending.flits == 0 && !start_packet(index, now)) return true;
  std::uint32_t& credits = credits_[index * vcs_ + lane.sending.vc];
  if (credits == 0) return true;
  --credits;
  ++flits_sent_;
  if (slow_injection_) lane.clock.occupy(now, hardware_.flit.flit_bytes, {}, injection_);
  network_->send(lane.sending, lane.sent, now + 1 + hardware_.injection_cycles);
  if (++lane.sent == lane.sending.flits) lane.sending.flits = 0;
  return lane.sending.flits != 0 || lane.first != kNil;
}

void Traffic::eject(TileId tile, std::uint32_t index, std::uint32_t flits, bool tail, Cycle last) {
  const Cycle arrived = last + last_part_;
  const QueuedPacket& packet = packets_[index];
  require_invariant(packet.destination == tile, "a flit arrived at a tile that it was not for");
  flits_arrived_ += flits;
  // Of those that arrive from `first` to `arrived`, one a cycle.
  const Cycle first = std::max(arrived + 1 - std::min<Cycle>(flits, arrived + 1), sources_.measure_from());
  const Cycle behind = std::min(arrived + 1, sources_.measure_to());
  if (behind > first) flits_by_source_[packet.source].accepted += behind - first;
  if (!tail) return;
  if (options_.on_packet) {
    options_.on_packet({packet.source, packet.destination, packet.flits, packet.created, packet.injected, arrived});
  }
  if (sources_.measured(packet.created)) {
    out_.latency.add(arrived - packet.created);
    out_.network_latency.add(arrived - packet.injected);
    --waiting_for_;
  }
  --alive_;
  packets_.give_back(index);
}

/// The cycle before the next packet of a trace when nothing is under way, credits included; otherwise `now`.
Cycle Traffic::skip_idle(Cycle now) {
  if (alive_ != 0) busy_until_ = now;
  if (now < busy_until_ + network_->horizon() || sources_.next_traced() == kNever) return now;
  return std::max(now, sources_.next_traced() - 1);
}

TrafficMeasurement Traffic::run() {
  const double before = cpu_seconds();
  Cycle now = 0;
  bool stopped = false;
  for (; now < sources_.end() && !finished(now) && !stopped; ++now) {
    take_credits(now);
    sources_.make_due(now);
    send_flits(now);
    network_->step(now);
    if (watch_) watch_->sample(now);
    if (now >= next_poll_) {
      next_poll_ = now + kPollInterval;
      check_progress(now);
      stopped = options_.interrupted && options_.interrupted();
    }
    if (sources_.recorded()) now = skip_idle(now);
  }
  if (alive_ == 0) check_empty(now);
  out_.cycles = now;
  out_.drained = finished(now) && !stopped;
  judge(out_);
  out_.cpu_seconds = cpu_seconds() - before;
  return out_;
}

/// A network that holds flits moves one in the time of its longest delay, or never.
void Traffic::check_progress(Cycle now) {
  const std::uint64_t moves = flits_sent_ + network_->router_traversals();
  if (moves != moves_ || flits_sent_ == flits_arrived_) {
    moves_ = moves;
    moved_at_ = now;
  } else if (now - moved_at_ >= patience_) {
    throw InternalError(
        fmt::format("the network stalled before cycle {}: {} flits are in it, and none has moved for {} cycles\n  {}", now,
                    flits_sent_ - flits_arrived_, now - moved_at_, network_->describe_stall()));
  }
}

/// With all packets arrived, every credit comes back to where it was.
void Traffic::check_empty(Cycle now) {
  const Cycle last = now + network_->horizon();
  for (; now < last; ++now) {
    take_credits(now);
    network_->step(now);
  }
  require_invariant(flits_sent_ == flits_arrived_, "flits went into the network that did not come out");
  const bool whole = std::all_of(credits_.begin(), credits_.end(),
                                 [this](std::uint32_t count) { return count == network_->buffer_flits(); });
  require_invariant(whole, "an injection credit was lost or made");
  network_->check_empty();
}

void Traffic::judge(TrafficMeasurement& out) const {
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
  for (const Flits& source : flits_by_source_) {
    offered += source.offered;
    accepted += source.accepted;
    if (source.offered == 0) continue;
    ++senders;
    const double made = static_cast<double>(source.offered);
    const double arrived = static_cast<double>(source.accepted);
    out.least_accepted = std::min(out.least_accepted, arrived / made);
    steady = steady && made - arrived <= 0.01 * made + slack;
  }
  const double tile_cycles = static_cast<double>(senders) * static_cast<double>(sources_.measure_to() - sources_.measure_from());
  if (tile_cycles > 0) {
    out.offered_load = static_cast<double>(offered) / tile_cycles;
    out.accepted_load = static_cast<double>(accepted) / tile_cycles;
  }
  out.stable = out.drained && (steady || sources_.recorded());
  const double busiest = most_busy_cycles(out);
  out.router_traversals = network_->router_traversals();
  out.router_cycles = network_->router_cycles();
  if (out.cycles > 0) out.max_link_utilization = busiest / static_cast<double>(out.cycles);
}

/// Of any link. Counts the hops, too.
double Traffic::most_busy_cycles(TrafficMeasurement& out) const {
  std::vector<double> cycles_of_flit;
  for (const topology::LinkClass& link_class : mesh_.link_classes()) {
    const Rational flit(static_cast<std::int64_t>(hardware_.flit.flit_bytes));
    cycles_of_flit.push_back(std::max(1.0, (flit / hardware_.link(link_class).bytes_per_cycle).to_double()));
  }
  double most = 0;
  for (topology::LinkId link = 0; link < mesh_.link_slots(); ++link) {
    const std::uint64_t flits = network_->link_flits(link);
    out.flit_hops += flits;
    most = std::max(most, static_cast<double>(flits) * cycles_of_flit[mesh_.link_class(link)]);
  }
  return most;
}

}  // namespace

std::unique_ptr<TrafficNetwork> TrafficNetwork::make(const Spec& spec, TrafficTerminals& terminals) {
  return spec.hardware.fidelity == models::Fidelity::flit ? make_flit_traffic(spec, terminals)
                                                          : make_packet_traffic(spec, terminals);
}

TrafficMeasurement run_traffic(const topology::Mesh& mesh, const topology::RoutingPolicy& routing,
                               const models::HardwareModel& hardware, const workloads::TrafficSpec& spec,
                               const TrafficOptions& options) {
  Traffic traffic(mesh, routing, hardware, spec, options);
  return traffic.run();
}

}  // namespace wafersim::sim
