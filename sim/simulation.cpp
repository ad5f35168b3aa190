#include "sim/simulation.h"

#include <sys/resource.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <fmt/format.h>
#include <numeric>
#include <set>

#include "base/error.h"
#include "sim/folding.h"
#include "sim/recorders.h"
#include "sim/stall_report.h"
#include "sim/trains.h"
#include "workloads/check_routes.h"

namespace wafersim::sim {
namespace {

using WallClock = std::chrono::steady_clock;

double cpu_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& t) { return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec); };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

std::uint64_t peak_rss_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<std::uint64_t>(usage.ru_maxrss) * 1024;
}

double seconds_since(WallClock::time_point start) { return std::chrono::duration<double>(WallClock::now() - start).count(); }

/// Throws PlanError when a message of the trace has no live way.
const topology::RoutingPolicy& checked(const topology::RoutingPolicy& routing, const topology::Mesh& mesh,
                                       const workloads::Trace& trace) {
  workloads::check_routes(trace, mesh, routing);
  return routing;
}

}  // namespace

struct Simulation::Parts {
  Parts(const topology::Mesh& mesh_in, const topology::RoutingPolicy& routing, const models::HardwareModel& hardware_in,
        const workloads::Trace& trace_in, SimulationOptions options_in)
      : mesh(mesh_in),
        options(std::move(options_in)),
        hardware(hardware_in),
        trace(trace_in, hardware),
        recorder(trace_in, options.record_steps),
        calendar("calendar", hardware.clock),
        network(calendar, mesh, checked(routing, mesh, trace_in), hardware, options.seed),
        flits(hardware.fidelity == models::Fidelity::flit ? std::make_unique<FlitMesh>("flits", mesh, network) : nullptr),
        wafer("wafer0", WaferParts{mesh, network, flits.get(), trace, recorder, shared_by_cores, options.core_factory}) {
    prepare_forwarding();
    if (trace_in.replicas > 1) place_flows();
    if (may_form_trains()) network.trains = &trains;
    make_folding(routing.draws());
  }

  void prepare_forwarding();
  void prepare_forwarding(const workloads::TileBinding& binding, const workloads::StepTemplate& step_template);
  void attach_watch();
  void watch_credits(Cycle until);
  void place_flows();
  bool may_form_trains() const;
  std::string unfolded_for() const;
  void make_folding(bool draws);
  void checkpoint();
  void set_hooks();
  FoldMeasurement folded() const;
  bool poll();
  bool all_finished() const;
  Cycle length() const;
  void measure_tiles(Measurements& out) const;
  void measure_links(Measurements& out) const;
  void check(const Measurements& out) const;

  const topology::Mesh& mesh;
  SimulationOptions options;
  models::HardwareModel hardware;
  CompiledTrace trace;
  StepRecorder recorder;
  Calendar calendar;
  NetworkContext network;
  Trains trains{network};
  SharedByCores shared_by_cores;
  std::unique_ptr<FlitMesh> flits;  ///< of the fidelity `flit`
  Wafer wafer;
  LinkLoads loads{mesh, wafer, trains, flits.get()};
  Recorders recorders{{trace, wafer, calendar, network, loads, options}};
  std::unique_ptr<RouterWatch> watch;
  Cycle watched_at = 0;
  std::unique_ptr<Folding> folding;
  std::string unfoldable;  ///< why there is none
  bool forwards = false;   ///< some message is streamed, or a multicast
  WallClock::time_point last_checkpoint;
  WallClock::time_point started;
  WallClock::time_point last_progress;
  std::string stopped_by;
};

/// So that what routers cannot copy, or what cannot be passed on as it comes in, is refused before the run.
void Simulation::Parts::prepare_forwarding() {
  for (const workloads::TileBinding& binding : trace.trace().tiles) {
    std::set<std::uint32_t> templates;
    for (const workloads::Step& step : trace.trace().programs[binding.program].steps) templates.insert(step.step_template);
    for (const std::uint32_t index : templates) prepare_forwarding(binding, trace.trace().templates[index]);
  }
}

void Simulation::Parts::prepare_forwarding(const workloads::TileBinding& binding, const workloads::StepTemplate& step_template) {
  for (const workloads::Op& op : step_template.ops) {
    forwards = forwards || op.streamed || op.kind == workloads::OpKind::multicast;
    if (op.follows && !network.routes.plain()) {
      throw PlanError(fmt::format("router.routing: packets of '{}' may overtake each other, so messages cannot be passed on as they "
                                  "come in; valid for that: xy, yx, table", hardware.routing));
    }
    if (op.kind != workloads::OpKind::multicast || op.peer_count == 1) continue;
    if (!mesh.simple()) {
      throw PlanError(fmt::format("plan.collectives: routers copy packets on meshes and rings, where each tile has its own; "
                                  "not on a {}", mesh.topology_name()));
    }
    std::vector<TileId> receivers;
    for (const std::uint32_t peer : workloads::peers_of(step_template, op)) {
      receivers.push_back(trace.trace().peer(binding, peer));
    }
    network.multicasts.tree_to(binding.tile, receivers);
  }
}

/// A tile's position is its rank in its replica.
void Simulation::Parts::place_flows() {
  std::vector<std::uint32_t> sizes(static_cast<std::size_t>(trace.trace().replicas));
  network.flow_places.resize(mesh.tile_count());
  for (const workloads::TileBinding& binding : trace.trace().tiles) {
    const auto replica = static_cast<std::uint32_t>(binding.group / trace.trace().pipeline_stages);
    network.flow_places[binding.tile] = {sizes.at(replica)++, replica};
  }
}

/// What looks at packets on their way wants to see all of them.
bool Simulation::Parts::may_form_trains() const {
  return options.trains && hardware.fidelity == models::Fidelity::packet && !options.core_factory &&
         options.watch.tiles.empty();
}

/// Whose state cannot be saved and taken up again, so that nothing is folded; empty when all of it can.
std::string Simulation::Parts::unfolded_for() const {
  if (flits) return "flit fidelity";
  if (options.core_factory) return "cores of the user's own";
  if (forwards) return "messages that are used as they come in, or that routers copy";
  if (options.on_message) return "messages are recorded";
  return options.watch.tiles.empty() ? "" : "routers are watched";
}

void Simulation::Parts::make_folding(bool draws) {
  unfoldable = unfolded_for();
  const bool keeps = options.on_checkpoint || !options.resume.empty();
  const std::string unkept = unfoldable.empty() && !recorders.may_be_kept() ? "what happens when is recorded" : unfoldable;
  if (keeps && !unkept.empty()) throw PlanError("this run cannot be kept in checkpoints: " + unkept);
  if (!unfoldable.empty() || (!options.fold && !keeps)) return;
  const FoldingParts parts{wafer,           network,   calendar, trace, recorder,
                           shared_by_cores, recorders, mesh,     draws, options.fold_eagerly, options.fold_periods,
                           options.fold_stages};
  folding = std::make_unique<Folding>(parts, options.fold);
}

void Simulation::Parts::checkpoint() {
  options.on_checkpoint(folding->save());
  last_checkpoint = WallClock::now();
}

void Simulation::Parts::set_hooks() {
  calendar.set_limit(options.max_cycles);
  calendar.on_poll([this] { return poll(); });
  if (!options.core_factory) calendar.run_ahead();
  if (!folding) return;
  calendar.on_start([this] {
    if (options.resume.empty()) {
      folding->start();
    } else {
      folding->resume(options.resume);
    }
  });
}

FoldMeasurement Simulation::Parts::folded() const {
  if (folding) return folding->measurement();
  FoldMeasurement none;
  if (options.fold) none.stopped_by.push_back(unfoldable);
  return none;
}

void Simulation::Parts::attach_watch() {
  watch = std::make_unique<RouterWatch>(options.watch, [this](TileId tile, Cycle at, RouterSample& sample) {
    if (flits) return flits->sample(tile, sample);
    wafer.tile(tile).router->engine().sample(at, sample);
  });
  calendar.watch([this](Cycle now, bool over) {
    if (!over) return watch_credits(now);
    watch->sample(now);
    watched_at = now;
  });
}

/// Credits of packets arrive without an event. Between the last busy cycle and this one nothing else has changed.
void Simulation::Parts::watch_credits(Cycle until) {
  if (flits) return;
  while (true) {
    Cycle next = kNever;
    for (const TileId tile : options.watch.tiles) {
      next = std::min(next, wafer.tile(tile).router->engine().next_credit(watched_at));
    }
    if (next >= until) return;
    watch->sample(next);
    watched_at = next;
  }
}

/// Called every few thousand busy cycles; false stops the run.
bool Simulation::Parts::poll() {
  if (options.interrupted && options.interrupted()) {
    stopped_by = "interrupt";
    return false;
  }
  if (options.max_wall_seconds > 0 && seconds_since(started) > options.max_wall_seconds) {
    stopped_by = "max-wall";
    return false;
  }
  if (options.on_checkpoint && seconds_since(last_checkpoint) > options.checkpoint_seconds) checkpoint();
  if (options.on_progress && seconds_since(last_progress) > 0.2) {
    last_progress = WallClock::now();
    const auto total = static_cast<double>(std::max<std::uint64_t>(trace.total_operations(), 1));
    options.on_progress({calendar.now(), static_cast<double>(shared_by_cores.operations_done) / total});
  }
  return true;
}

bool Simulation::Parts::all_finished() const {
  return std::all_of(wafer.used_tiles().begin(), wafer.used_tiles().end(),
                     [](const Tile* tile) { return tile->core->finished(); });
}

/// The run ends with its last step; cores of a user's own may go on longer, and a stopped run ends where it was stopped.
Cycle Simulation::Parts::length() const {
  if (stopped_by == "max-cycles") return options.max_cycles;
  const bool only_trace = !options.core_factory;
  if (!stopped_by.empty() || !only_trace) return calendar.last_busy();
  return recorder.last_end();
}

void Simulation::Parts::measure_tiles(Measurements& out) const {
  out.tiles.reserve(wafer.used_tiles().size());
  for (Tile* tile : wafer.used_tiles()) {
    TileMeasurement measurement;
    measurement.tile = tile->id();
    tile->core->measure(out.cycles, measurement);
    tile->nic->measure(out.cycles, measurement);
    tile->sram->measure(measurement);
    out.packets += tile->nic->packets_injected();
    out.messages += measurement.messages_sent;
    out.matrix_flops += measurement.matrix_flops;
    out.tiles.push_back(measurement);
  }
  for (const workloads::TileBinding& binding : trace.trace().tiles) {
    const auto at = std::lower_bound(out.tiles.begin(), out.tiles.end(), binding.tile,
                                     [](const TileMeasurement& m, TileId id) { return m.tile < id; });
    at->stage = binding.stage;
    at->group = binding.group;
  }
}

void Simulation::Parts::measure_links(Measurements& out) const {
  out.links.reserve(loads.links().size());
  for (const topology::LinkId link : loads.links()) {
    const PortStatistics port = loads.statistics(link);
    const Bytes bytes = std::accumulate(port.bytes_by_axis.begin(), port.bytes_by_axis.end(), Bytes{0});
    const LinkLoad load = loads.before(link, out.cycles);
    out.links.push_back({link, bytes, port.bytes_by_axis, port.packets, std::min(load.busy, out.cycles), load.queued});
    out.packet_hops += port.packets;
  }
}

/// What must hold after every complete run.
void Simulation::Parts::check(const Measurements& out) const {
  Bytes sent = 0;
  Bytes copied = 0;
  Bytes received = 0;
  for (const TileMeasurement& tile : out.tiles) {
    sent += tile.bytes_sent;
    copied += tile.bytes_copied;
    received += tile.bytes_received;
    if (tile.cycles.total() != out.cycles) {
      throw InternalError(fmt::format("{}: {} cycles are accounted for in a run of {}", mesh.name(tile.tile),
                                      tile.cycles.total(), out.cycles));
    }
    if (!out.partial && tile.final_bytes != tile.static_bytes) {
      throw InternalError(fmt::format("{}: holds {} B at the end of the run, {} B at its start", mesh.name(tile.tile),
                                      tile.final_bytes, tile.static_bytes));
    }
  }
  if (!out.partial && flits && !options.core_factory) flits->check_empty();
  if (!out.partial && sent + copied != received) {
    throw InternalError(fmt::format("{} B were sent, {} B copied on their way, and {} B received", sent, copied, received));
  }
}

Simulation::Simulation(const topology::Mesh& mesh, const topology::RoutingPolicy& routing, const models::HardwareModel& hardware,
                       const workloads::Trace& trace, SimulationOptions options)
    : parts_(std::make_unique<Parts>(mesh, routing, hardware, trace, std::move(options))) {}

Simulation::~Simulation() = default;

Measurements Simulation::run() {
  Parts& parts = *parts_;
  Calendar& calendar = parts.calendar;
  const double cpu_before = cpu_seconds();
  parts.started = parts.last_progress = parts.last_checkpoint = WallClock::now();
  if (parts.options.shuffle) {
    calendar.shuffle(parts.options.seed);
    if (parts.flits) parts.flits->shuffle(parts.options.seed);
  }
  parts.set_hooks();
  if (!parts.options.watch.tiles.empty()) parts.attach_watch();
  sc_core::sc_start();
  calendar.rethrow();
  if (parts.watch) parts.watch_credits(kNever);
  if (calendar.stopped_by_limit()) parts.stopped_by = "max-cycles";
  const Cycle last = calendar.stopped_by_limit() ? calendar.limit() : calendar.last_busy();
  if (parts.folding) parts.folding->stop(last);
  parts.trains.settle_all(last + 1);
  if (!parts.stopped_by.empty() && parts.options.on_checkpoint) parts.checkpoint();
  if (parts.folding) parts.folding->unfold();
  if (parts.stopped_by.empty() && !parts.all_finished()) {
    throw PlanError(describe_stall(parts.wafer, parts.mesh, parts.network, parts.flits.get(), calendar.last_busy()));
  }

  Measurements out;
  out.partial = !parts.stopped_by.empty();
  out.stopped_by = parts.stopped_by;
  out.cycles = parts.length();
  out.iteration_ends = parts.recorder.iteration_ends();
  parts.measure_tiles(out);
  parts.measure_links(out);
  parts.recorders.measure(out);
  out.steps = parts.recorder.take_steps();
  parts.check(out);
  out.engine.wall_seconds = seconds_since(parts.started);
  out.engine.cpu_seconds = cpu_seconds() - cpu_before;
  out.engine.peak_rss_bytes = peak_rss_bytes();
  out.engine.events = calendar.events();
  out.engine.fold = parts.folded();
  out.engine.trains = parts.trains.measurement();
  if (out.engine.cpu_seconds > 0) {
    out.engine.packet_hops_per_cpu_second = static_cast<double>(out.packet_hops) / out.engine.cpu_seconds;
  }
  return out;
}

}  // namespace wafersim::sim
