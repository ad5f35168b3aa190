#include <algorithm>
#include <filesystem>
#include <fmt/format.h>

#include "analysis/ideal_saturation.h"
#include "analysis/load_sweep.h"
#include "apps/commands.h"
#include "apps/console.h"
#include "apps/interrupt.h"
#include "apps/refuse.h"
#include "apps/routes.h"
#include "config/scenario.h"
#include "report/atomic_file.h"
#include "report/latency_chart.h"
#include "report/run_directory.h"
#include "report/traffic_report.h"
#include "report/waveform.h"
#include "sim/traffic.h"

namespace wafersim::apps {
namespace {

namespace fs = std::filesystem;

/// A scenario taken to where its traffic can be simulated.
struct TrafficSetup {
  explicit TrafficSetup(const ScenarioArguments& arguments)
      : scenario(load(arguments)),
        hardware(resolve(arguments.path, scenario)),
        mesh(models::mesh_spec(scenario.wafer)),
        spec(*scenario.traffic),
        destinations(spec, mesh),
        routing(make_safe_routing(hardware, mesh)) {}

  /// Buffers are for the packets of the traffic, whatever network.packet_bytes says of a plan's. Those of a trace are not
  /// known yet.
  static models::HardwareModel resolve(const std::string& file, const config::Scenario& scenario) {
    models::NetworkSpec network = scenario.network;
    if (scenario.traffic->pattern != workloads::SyntheticPattern::trace) {
      const std::vector<std::uint32_t>& sizes = scenario.traffic->packet_flits.flits;
      const std::uint32_t largest = *std::max_element(sizes.begin(), sizes.end());
      network.packet_bytes = {1};
      const models::HardwareModel smallest = models::resolve_hardware(scenario.wafer, scenario.router, network);
      const models::FlitModel& flits = smallest.flit;
      const bool given = scenario.router.vc_buffer || scenario.router.flit.vc_buffer_flits;
      const bool packets = network.fidelity == models::Fidelity::packet;
      const Bytes held = packets ? smallest.vc_buffer_bytes / flits.flit_bytes : flits.vc_buffer_flits;
      if ((packets || flits.switching == models::Switching::cut_through) && given && held < largest) {
        refuse(file, "traffic.packet_flits",
               fmt::format("{} is more than a buffer of {} flits (router.vc_buffer_flits, router.vc_buffer), which "
                           "{} does not allow",
                           largest, held, packets ? "network.fidelity: packet" : "router.switching: cut_through"));
      }
      network.packet_bytes = {flits.flit_bytes * largest};
    } else if (scenario.router.vc_buffer || scenario.router.flit.vc_buffer_flits) {
      network.packet_bytes = {1};
    }
    return models::resolve_hardware(scenario.wafer, scenario.router, network);
  }

  static config::Scenario load(const ScenarioArguments& arguments) {
    config::Scenario scenario = config::load_scenario(arguments.path, {arguments.overrides, {}});
    if (!scenario.traffic) {
      refuse(arguments.path, "traffic", "missing; `wafersim traffic` needs this section");
    }
    if (scenario.network.fidelity != models::Fidelity::flit && scenario.network.fidelity != models::Fidelity::packet) {
      refuse(arguments.path, "network.fidelity", "`wafersim traffic` needs routers; valid: flit, packet");
    }
    if (scenario.router.routing == "balanced") {
      refuse(arguments.path, "router.routing", "'balanced' is made for the traffic of a plan");
    }
    return scenario;
  }

  sim::TrafficMeasurement run(const Rational& load, std::uint64_t seed, sim::WatchOptions watch) const {
    workloads::TrafficSpec loaded = spec;
    loaded.load = load;
    sim::TrafficOptions options;
    options.seed = seed;
    options.watch = std::move(watch);
    options.interrupted = InterruptGuard::interrupted;
    return sim::run_traffic(mesh, *routing, hardware, loaded, options);
  }

  const config::Scenario scenario;
  const models::HardwareModel hardware;
  const topology::Mesh mesh;
  const workloads::TrafficSpec& spec;
  const workloads::Destinations destinations;
  const std::unique_ptr<topology::RoutingPolicy> routing;
};

void write_results(const fs::path& directory, const report::TrafficReport& report) {
  report::write_file(directory / "traffic.csv", report::traffic_csv(report));
  if (report.sweep) report::write_file(directory / "latency.svg", report::latency_chart(report));
  report::write_file(directory / report::kTrafficFile, report::traffic_json(report));
}

}  // namespace

ExitStatus traffic_command(const TrafficArguments& arguments) {
  const TrafficSetup setup(arguments.scenario);
  const InterruptGuard guard;
  report::TrafficReport report;
  report.name = setup.scenario.name;
  report.scenario_json = config::traffic_json(setup.scenario);
  report.pattern = config::pattern_name(setup.spec.pattern);
  report.mesh = topology::to_string(setup.mesh.shape());
  const bool recorded = setup.spec.pattern == workloads::SyntheticPattern::trace;
  if (arguments.sweep && recorded) {
    refuse(arguments.scenario.path, "traffic.pattern", "a recorded trace has no load to sweep");
  }
  const std::vector<TileId> watched = report::tiles_named("--vcd-routers", arguments.wave.routers, setup.mesh);
  if (arguments.sweep && !watched.empty())
    throw Error(ExitStatus::scenario, "--vcd: a waveform is of one load; valid: without --sweep");
  if (!recorded) {
    report.ideal = analysis::ideal_saturation(setup.destinations, *setup.routing, setup.mesh, setup.hardware);
  }
  if (!arguments.directory.empty()) report::prepare_directory(arguments.directory, arguments.force);
  std::optional<report::Waveform> wave;
  if (!watched.empty()) wave.emplace(arguments.wave.path, setup.mesh, watched, setup.hardware);
  const auto run = [&](const Rational& load, std::uint64_t seed) {
    sim::WatchOptions watch;
    if (wave && seed == setup.scenario.seed) {
      watch = {watched, [&](Cycle at, TileId tile, const sim::RouterSample& sample) { wave->add(at, tile, sample); }};
    }
    return setup.run(load, seed, std::move(watch));
  };
  const int runs = recorded ? 1 : setup.spec.seeds;
  if (arguments.sweep) {
    report.sweep = analysis::sweep_loads(setup.spec.sweep, report.ideal->load, runs, setup.scenario.seed, run);
  } else {
    report.point = analysis::measure_load(setup.spec.load, runs, setup.scenario.seed, run);
  }
  if (wave) wave->commit();
  if (InterruptGuard::interrupted()) return ExitStatus::interrupted;
  if (!arguments.directory.empty()) write_results(arguments.directory, report);
  print(arguments.json ? report::traffic_json(report) : report::traffic_text(report));
  return ExitStatus::done;
}

}  // namespace wafersim::apps
