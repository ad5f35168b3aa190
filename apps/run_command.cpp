#include <algorithm>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "analysis/summary.h"
#include "apps/commands.h"
#include "apps/console.h"
#include "apps/directory_name.h"
#include "apps/interrupt.h"
#include "apps/prepared_run.h"
#include "apps/progress_bar.h"
#include "apps/refuse.h"
#include "apps/warnings.h"
#include "base/error.h"
#include "report/checkpoint_file.h"
#include "report/message_log.h"
#include "report/page.h"
#include "report/run_directory.h"
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

/// The tiles of an option that names some that the plan uses.
std::vector<TileId> named_tiles(const char* option, const std::vector<std::string>& names, const PreparedRun& run) {
  const std::vector<workloads::TileBinding>& used = run.plan.trace.tiles;
  std::vector<TileId> result;
  for (const std::string& name : names) {
    const auto found = std::find_if(used.begin(), used.end(), [&](const workloads::TileBinding& binding) {
      return run.mesh.name(binding.tile) == name;
    });
    if (found == used.end()) {
      throw Error(ExitStatus::scenario, std::string(option) + ": '" + name + "' is not a tile that the plan uses; " +
                                            std::to_string(used.size()) + " are used, the first is " +
                                            run.mesh.name(used.front().tile) + " and the last " +
                                            run.mesh.name(used.back().tile));
    }
    result.push_back(found->tile);
  }
  return result;
}

bool wants_report(const RunArguments& arguments) { return arguments.report || !arguments.report_tiles.empty(); }

/// Whose spans are kept: the tiles that were named, or the first tile of each of the first stages of a replica.
std::vector<TileId> report_tiles(const RunArguments& arguments, const PreparedRun& run) {
  constexpr int kMostStages = 8;
  if (!arguments.report_tiles.empty()) return named_tiles("--report-tiles", arguments.report_tiles, run);
  std::vector<TileId> result;
  workloads::Ranks ranks;
  for (ranks.pp = 0; ranks.pp < std::min(run.scenario.plan.pp, kMostStages); ++ranks.pp) {
    result.push_back(run.plan.mapping.tile(ranks));
  }
  return result;
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
  if (run.hardware.fidelity == models::Fidelity::flit) {
    refuse_option("the state of the flit engine cannot be kept (network.fidelity: flit); take packet or ideal");
  }
}

sim::Measurements simulate(const RunArguments& arguments, const PreparedRun& run, const fs::path& directory,
                           report::MessageLog* messages, const std::vector<TileId>& watched, report::Waveform* wave) {
  ProgressBar progress(!arguments.quiet);
  sim::SimulationOptions options;
  options.seed = run.scenario.seed;
  options.record_memory = arguments.memory || !arguments.memory_tiles.empty();
  options.memory_tiles = named_tiles("--memory-tiles", arguments.memory_tiles, run);
  if (wants_report(arguments)) {
    // The page has no room for what --memory keeps.
    if (!options.record_memory) {
      options.memory_rows = std::size_t{1} << 18;
      options.memory_in_windows = true;
    }
    options.record_activity = options.record_memory = true;
    options.activity_tiles = report_tiles(arguments, run);
    options.memory_tiles.insert(options.memory_tiles.end(), options.activity_tiles.begin(), options.activity_tiles.end());
  }
  options.max_cycles = arguments.max_cycles;
  options.max_wall_seconds = arguments.max_wall_seconds;
  options.interrupted = InterruptGuard::interrupted;
  options.fold = arguments.fold;
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
  if (messages != nullptr) {
    options.on_message = [messages](const sim::MessageRecord& message) { messages->add(message); };
  }
  if (wave != nullptr) {
    options.watch = {watched, [wave](Cycle at, TileId tile, const sim::RouterSample& sample) { wave->add(at, tile, sample); }};
  }
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

void show(const RunArguments& arguments, const report::RunContext& context, const fs::path& directory) {
  if (arguments.json) {
    print(report::summary_text(context));
  } else if (!arguments.quiet) {
    const std::string page = wants_report(arguments) ? ", to look at: " + (directory / report::kReportFile).string() : "";
    print(report::terminal_summary(context, terminal_style()) + "Results in " + directory.string() + page + "\n");
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
  const std::vector<TileId> watched = report::tiles_named("--vcd-routers", arguments.wave.routers, run.mesh);
  if (!watched.empty() && run.hardware.fidelity == models::Fidelity::ideal)
    refuse(arguments.scenario.path, "network.fidelity", "--vcd needs routers; valid: packet, flit");
  const fs::path directory = directory_of(arguments, run.scenario);
  const InterruptGuard
      guard;  // from here to the end, so that an interrupt cannot cut the writing of results short
  report::prepare_directory(directory, arguments.force);
  std::optional<report::MessageLog> messages;
  if (arguments.messages)
    messages.emplace(directory / report::kMessagesFile, run.mesh, run.plan.trace.tensors);

  std::optional<report::Waveform> wave;
  if (!watched.empty()) wave.emplace(arguments.wave.path, run.mesh, watched, run.hardware);

  const sim::Measurements measurements =
      simulate(arguments, run, directory, messages ? &*messages : nullptr, watched, wave ? &*wave : nullptr);
  const config::Scenario& scenario = run.scenario;
  const analysis::RunSummary summary = analysis::summarize(
      {scenario.model, scenario.training, run.hardware, run.mesh, run.plan.memory, measurements});
  const report::RunContext context{scenario.name,    config::to_json(scenario),
                                   scenario.plan,    scenario.training,
                                   run.plan.mapping, run.hardware,
                                   run.mesh,         measurements,
                                   summary,          run.loads(),
                                   measurements.activity ? hot_flows(run, summary) : std::vector<analysis::LinkFlows>{}};
  if (messages) messages->commit();
  if (wave) wave->commit();
  report::write_run(directory, context, arguments.messages);
  if (wants_report(arguments)) report::write_page(directory);
  if (!measurements.partial) report::remove_checkpoint(directory);
  show(arguments, context, directory);
  const bool interrupted = measurements.partial && measurements.stopped_by == "interrupt";
  return interrupted ? ExitStatus::interrupted : ExitStatus::done;
}

}  // namespace wafersim::apps
