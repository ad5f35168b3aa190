#include "sim/traffic_sources.h"

#include <algorithm>

#include "base/units.h"
#include "topology/routing.h"

namespace wafersim::sim {

TrafficSources::TrafficSources(const topology::Mesh& mesh, const topology::RoutingPolicy& routing,
                               const models::HardwareModel& hardware, const workloads::TrafficSpec& spec,
                               const TrafficOptions& options, std::function<void(const Made&)> made)
    : mesh_(mesh),
      hardware_(hardware),
      spec_(spec),
      made_(std::move(made)),
      destinations_(spec, mesh),
      recorded_(spec.pattern == workloads::SyntheticPattern::trace || options.packets != nullptr),
      process_(recorded_ ? workloads::TrafficSpec{} : spec),
      wheel_(kWheel),
      measure_from_(spec.warmup.cycles(hardware.clock)),
      measure_to_(measure_from_ + spec.measurement.cycles(hardware.clock)),
      end_(measure_to_ + spec.drain.cycles(hardware.clock)) {
  sources_.reserve(mesh_.tile_count());
  for (TileId tile = 0; tile < mesh_.tile_count(); ++tile) {
    sources_.emplace_back(RandomStream(options.seed, "traffic." + mesh_.name(tile)));
  }
  if (recorded_) {
    read_trace(routing, options);
    return;
  }
  for (TileId tile = 0; tile < mesh_.tile_count(); ++tile) {
    if (!destinations_.sends(tile)) continue;
    Source& source = sources_[tile];
    source.on = process_.initially_on(source.random);
    source.next = process_.next(0, end_, source.on, source.random);
    schedule(tile, 0);
  }
}

/// All packets of a trace are measured.
void TrafficSources::read_trace(const topology::RoutingPolicy& routing, const TrafficOptions& options) {
  trace_ = options.packets != nullptr ? *options.packets : workloads::read_packet_trace(spec_.file, mesh_);
  if (mesh_.has_faults()) {
    for (const workloads::TracedPacket& packet : trace_) topology::require_way(routing, mesh_, packet.source, packet.destination);
  }
  measure_from_ = 0;
  measure_to_ = trace_.empty() ? 0 : trace_.back().cycle + 1;
  end_ = measure_to_ + spec_.drain.cycles(hardware_.clock);
}

std::uint32_t TrafficSources::flits_of(Bytes bytes) const {
  return static_cast<std::uint32_t>(ceil_div<Bytes>(bytes, hardware_.flit.flit_bytes));
}

std::uint64_t TrafficSources::largest() const {
  if (!recorded_) return *std::max_element(spec_.packet_flits.flits.begin(), spec_.packet_flits.flits.end());
  std::uint64_t most = 1;
  for (const workloads::TracedPacket& packet : trace_) most = std::max<std::uint64_t>(most, flits_of(packet.bytes));
  return most;
}

void TrafficSources::schedule(std::uint32_t tile, Cycle now) {
  const Cycle next = sources_[tile].next;
  if (next >= end_) return;
  wheel_[std::min(next, now + kWheel - 1) % kWheel].push_back(tile);
}

void TrafficSources::make_due(Cycle now) {
  while (next_traced_ < trace_.size() && trace_[next_traced_].cycle == now) {
    const workloads::TracedPacket& packet = trace_[next_traced_++];
    make(packet.source, packet.destination, flits_of(packet.bytes), now);
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
void TrafficSources::make_packets(std::uint32_t tile, Cycle now) {
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
    make(tile, destination, flits, source.next);
    source.next = process_.next(source.next + 1, end_, source.on, source.random);
  }
  schedule(tile, now);
}

void TrafficSources::make(TileId tile, TileId destination, std::uint32_t flits, Cycle created) {
  Source& source = sources_[tile];
  ++source.queued;
  made_({tile, destination, flits, created, source.made++});
}

void TrafficSources::taken(TileId tile, Cycle now) {
  Source& source = sources_[tile];
  --source.queued;
  if (source.full) make_packets(tile, now);
}

bool TrafficSources::made_until(Cycle now) const {
  return now > measure_to_ && std::none_of(sources_.begin(), sources_.end(), [this](const Source& source) {
           return source.full && source.next < measure_to_;
         });
}

}  // namespace wafersim::sim
