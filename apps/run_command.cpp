#include <algorithm>
#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "analysis/summary.h"
#include "apps/commands.h"
#include "apps/console.h"
#include "apps/directory_name.h"
#include "apps/interrupt.h"
#include "apps/prediction.h"
#include "apps/prepared_run.h"
#include "apps/progress_bar.h"
#include "apps/refuse.h"
#include "apps/warnings.h"
#include "base/error.h"
#include "base/text.h"
#include "report/checkpoint_file.h"
#include "report/message_log.h"
#include "report/page.h"
#include "report/run_directory.h"
#include "report/timeline_file.h"
#include "report/waveform.h"
#include "sim/simulation.h"
#include "workloads/fingerprint.h"

namespace wafersim::apps {
namespace {

namespace fs = std::filesystem;

fs::path directory_of(const RunArguments& arguments, const config::Scenario& scenario) {
  if (!arguments.directory.empty()) return arguments.directory;
  return fs::path("runs") / directory_name(scenario.name);
}

[[noreturn]] void refuse_tile(const char* option, const std::string& name, const char* what, const PreparedRun& run) {
  const std::vector<workloads::TileBinding>& used = run.plan.trace.tiles;
  throw Error(ExitStatus::scenario, std::string(option) + ": '" + name + "' " + what + "; " + std::to_string(used.size()) +
                                        " are used, the first is " + run.mesh.name(used.front().tile) + " and the last " +
                                        run.mesh.name(used.back().tile));
}

/// The tiles of an option that names some that the plan uses.
std::vector<TileId> named_tiles(const char* option, const std::vector<std::string>& names, const PreparedRun& run) {
  const std::vector<workloads::TileBinding>& used = run.plan.trace.tiles;
  std::vector<TileId> result;
  for (const std::string& name : names) {
    const auto found = std::find_if(used.begin(), used.end(), [&](const workloads::TileBinding& binding) {
      return run.mesh.name(binding.tile) == name;
    });
    if (found == used.end()) refuse_tile(option, name, "is not a tile that the plan uses", run);
    result.push_back(found->tile);
  }
  return result;
}

bool wants_report(const RunArguments& arguments) { return arguments.report || !arguments.report_tiles.empty(); }

/// The first tile of each of the first stages of a replica.
std::vector<TileId> first_tiles(const PreparedRun& run) {
  constexpr int kMostStages = 8;
  std::vector<TileId> result;
  workloads::Ranks ranks;
  for (ranks.pp = 0; ranks.pp < std::min(run.scenario.plan.pp, kMostStages); ++ranks.pp) {
    result.push_back(run.plan.mapping.tile(ranks));
  }
  return result;
}

/// Whose spans are kept.
std::vector<TileId> report_tiles(const RunArguments& arguments, const PreparedRun& run) {
  if (!arguments.report_tiles.empty()) return named_tiles("--report-tiles", arguments.report_tiles, run);
  return first_tiles(run);
}

/// Tiles that the plan uses and that fit the patterns, ascending.
std::vector<TileId> timeline_tiles(const TimelineArguments& arguments, const PreparedRun& run) {
  constexpr const char* kOption = "--timeline-tiles";
  if (arguments.tiles.empty()) return first_tiles(run);
  std::set<TileId> result;
  for (const std::string& pattern : arguments.tiles) {
    const std::vector<TileId> fitting = report::tiles_named(kOption, {pattern}, run.mesh);
    std::size_t used = 0;
    for (const workloads::TileBinding& binding : run.plan.trace.tiles) {
      if (!std::binary_search(fitting.begin(), fitting.end(), binding.tile)) continue;
      result.insert(binding.tile);
      ++used;
    }
    if (used == 0) refuse_tile(kOption, pattern, "names no tile that the plan uses", run);
  }
  return {result.begin(), result.end()};
}

report::CheckpointOwner owner_of(const RunArguments& arguments, const PreparedRun& run) {
  return {config::to_json(run.scenario), workloads::fingerprint(run.plan.trace),
          arguments.memory || !arguments.memory_tiles.empty()};
}

/// Throws Error where the run could not keep its state.
void check_checkpoints(const RunArguments& arguments, const PreparedRun& run) {
  if (arguments.checkpoint_seconds == 0 && !arguments.resume) return;
  const char* const option = arguments.resume ? "--resume" : "--checkpoint-every";
  const auto refuse_option = [&](const std::string& why) {
    throw Error(ExitStatus::scenario, std::string(option) + ": " + why);
  };
  if (arguments.messages) refuse_option("a run with --messages cannot be taken up again: its log is not kept");
  if (arguments.timeline.wanted) refuse_option("a run with --timeline cannot be taken up again: its timeline is not kept");
  if (wants_report(arguments)) refuse_option("a run with --report cannot be taken up again: its loads over time are not kept");
  if (arguments.critical_path) refuse_option("a run with --critical-path cannot be taken up again: its causes are not kept");
  if (run.hardware.fidelity == models::Fidelity::flit) {
    refuse_option("the state of the flit engine cannot be kept (network.fidelity: flit); take packet or ideal");
  }
}

/// What is written while the simulation runs.
struct Streams {
  std::optional<report::MessageLog> messages;
  std::optional<report::Waveform> wave;
  std::vector<TileId> wave_tiles;
  std::optional<report::TimelineFile> timeline;
  std::vector<TileId> timeline_tiles;
};

void connect(Streams& streams, sim::SimulationOptions& options) {
  if (streams.messages) {
    options.on_message = [&messages = *streams.messages](const sim::MessageRecord& message) { messages.add(message); };
  }
  if (streams.wave) {
    options.watch = {streams.wave_tiles, [&wave = *streams.wave](Cycle at, TileId tile, const sim::RouterSample& sample) {
                       wave.add(at, tile, sample);
                     }};
  }
  if (streams.timeline) {
    report::TimelineFile& timeline = *streams.timeline;
    options.observer = {streams.timeline_tiles, [&timeline](const sim::OperationRecord& operation) { timeline.add(operation); },
                        [&timeline](TileId tile, Cycle cycle, const sim::MemoryLevels& levels) {
                          timeline.add(tile, cycle, levels);
                        },
                        [&timeline](const sim::MessageRecord& message) { timeline.add(message); }};
    options.record_links = true;
  }
}

sim::Measurements simulate(const RunArguments& arguments, const PreparedRun& run, const fs::path& directory, Streams& streams) {
  ProgressBar progress(!arguments.quiet);
  sim::SimulationOptions options;
  options.seed = run.scenario.seed;
  options.record_memory = arguments.memory || !arguments.memory_tiles.empty();
  options.memory_tiles = named_tiles("--memory-tiles", arguments.memory_tiles, run);
  if (wants_report(arguments)) {
    // The page has no room for what --memory keeps.
    if (!options.record_memory) options.memory_rows = std::size_t{1} << 18;
    options.record_activity = options.record_memory = true;
    options.activity_tiles = report_tiles(arguments, run);
    options.memory_tiles.insert(options.memory_tiles.end(), options.activity_tiles.begin(), options.activity_tiles.end());
  }
  options.record_path = arguments.critical_path;
  options.max_cycles = arguments.max_cycles;
  options.max_wall_seconds = arguments.max_wall_seconds;
  options.interrupted = InterruptGuard::interrupted;
  options.fold = arguments.fold;
  options.fold_stages = arguments.fold_stages;
  options.trains = arguments.trains;
  const fs::path checkpoint = directory / report::kCheckpointFile;
  report::CheckpointOwner owner;
  if (arguments.resume || arguments.checkpoint_seconds > 0) owner = owner_of(arguments, run);
  std::vector<char> kept;
  if (arguments.resume) kept = report::read_checkpoint(checkpoint, owner);
  options.resume = kept;
  if (arguments.checkpoint_seconds > 0) {
    options.checkpoint_seconds = arguments.checkpoint_seconds;
    options.on_checkpoint = [&](std::span<const char> bytes) { report::write_checkpoint(checkpoint, owner, bytes); };
  }
  connect(streams, options);
  if (progress.shown()) {
    options.on_progress = [&progress](const sim::Progress& state) { progress.update(state); };
  }
  sim::Simulation simulation(run.mesh, run.routing(), run.hardware, run.plan.trace, std::move(options));
  return simulation.run();
}

/// What crosses the hottest links, where routes are known before the run.
std::vector<analysis::LinkFlows> hot_flows(const PreparedRun& run, const analysis::RunSummary& summary) {
  constexpr std::size_t kNamed = 12;
  const topology::Routing* const routes = run.routing().draws() ? nullptr : run.routing().fixed(0);
  if (routes == nullptr) return {};
  std::vector<topology::LinkId> links;
  for (const analysis::Hotspot& hotspot : summary.network.hotspots) links.push_back(hotspot.link);
  return analysis::flows_across(run.plan.trace, *routes, run.mesh, links, kNamed);
}

std::string timeline_text(const report::TimelineFile& timeline, const fs::path& directory) {
  std::string text = "Timeline in " + (directory / report::kTimelineFile).string() + ", to open in https://ui.perfetto.dev";
  if (const auto cycle = timeline.recorded_before()) {
    text += "; it has reached its size (--timeline-bytes), from cycle " + human_count(*cycle) + " on nothing is recorded";
  }
  return text + "\n";
}

void show(const RunArguments& arguments, const report::RunContext& context, const fs::path& directory, const Streams& streams) {
  if (arguments.json) {
    print(report::summary_text(context));
  } else if (!arguments.quiet) {
    const std::string page = wants_report(arguments) ? ", to look at: " + (directory / report::kReportFile).string() : "";
    print(report::terminal_summary(context, terminal_style()) + "Results in " + directory.string() + page + "\n" +
          (streams.timeline ? timeline_text(*streams.timeline, directory) : ""));
  }
}

}  // namespace

ExitStatus run_command(const RunArguments& arguments) {
  if (wants_report(arguments)) report::require_page();
  const PreparedRun run(arguments.scenario);
  if (wants_report(arguments)) report::require_page_for(run.plan.trace.tiles.size());
  check_checkpoints(arguments, run);
  if (!arguments.quiet) {
    for (const std::string& warning : warnings_of(run)) print_warning(warning);
  }
  if (run.hardware.fidelity == models::Fidelity::analytic) {
    return run_prediction(arguments, run, directory_of(arguments, run.scenario).string());
  }
  Streams streams;
  streams.wave_tiles = report::tiles_named("--vcd-routers", arguments.wave.routers, run.mesh);
  if (arguments.timeline.wanted) streams.timeline_tiles = timeline_tiles(arguments.timeline, run);
  if (!streams.wave_tiles.empty() && run.hardware.fidelity == models::Fidelity::ideal)
    refuse(arguments.scenario.path, "network.fidelity", "--vcd needs routers; valid: packet, flit");
  const fs::path directory = directory_of(arguments, run.scenario);
  const InterruptGuard
      guard;  // from here to the end, so that an interrupt cannot cut the writing of results short
  report::prepare_directory(directory, arguments.force);
  const config::Scenario& scenario = run.scenario;
  if (arguments.messages) streams.messages.emplace(directory / report::kMessagesFile, run.mesh, run.plan.trace.tensors);
  if (!streams.wave_tiles.empty()) streams.wave.emplace(arguments.wave.path, run.mesh, streams.wave_tiles, run.hardware);
  if (arguments.timeline.wanted) {
    streams.timeline.emplace(directory / report::kTimelineFile,
                             report::TimelineFile::Run{scenario.name, run.hardware, run.mesh, run.plan.trace},
                             streams.timeline_tiles, arguments.timeline.most_bytes.value_or(report::kTimelineBytes));
  }

  const sim::Measurements measurements = simulate(arguments, run, directory, streams);
  const analysis::RunSummary summary = analysis::summarize(
      {scenario.model, scenario.training, run.hardware, run.mesh, run.plan.memory, measurements});
  report::RunContext context{scenario.name,    config::to_json(scenario),
                             scenario.plan,    scenario.training,
                             run.plan.mapping, run.hardware,
                             run.mesh,         measurements,
                             summary,          run.loads()};
  if (measurements.activity) context.flows = hot_flows(run, summary);
  if (measurements.critical_path && !measurements.critical_path->complete) {
    print_warning("--critical-path: the chains that may become the critical path were too many to be kept, or a message or a stalled "
                  "operation took 2^32 cycles or more; there is no critical_path.json");
  } else if (measurements.critical_path) {
    context.path = analysis::summarize(*measurements.critical_path, run.plan.trace);
    context.trace = &run.plan.trace;
  }
  if (streams.messages) streams.messages->commit();
  if (streams.wave) streams.wave->commit();
  if (streams.timeline) streams.timeline->commit(measurements);
  report::write_run(directory, context, {arguments.messages, arguments.timeline.wanted});
  if (wants_report(arguments)) report::write_page(directory);
  if (!measurements.partial) report::remove_checkpoint(directory);
  show(arguments, context, directory, streams);
  const bool interrupted = measurements.partial && measurements.stopped_by == "interrupt";
  return interrupted ? ExitStatus::interrupted : ExitStatus::done;
}

}  // namespace wafersim::apps
