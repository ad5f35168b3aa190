#include <algorithm>
#include <cctype>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "analysis/summary.h"
#include "apps/commands.h"
#include "apps/console.h"
#include "apps/interrupt.h"
#include "apps/prepared_run.h"
#include "apps/progress_bar.h"
#include "apps/warnings.h"
#include "base/error.h"
#include "report/checkpoint_file.h"
#include "report/message_log.h"
#include "report/run_directory.h"
#include "sim/simulation.h"
#include "workloads/fingerprint.h"

namespace wafersim::apps {
namespace {

namespace fs = std::filesystem;

/// A scenario's name as the name of a directory.
std::string directory_name(const std::string& name) {
  std::string result;
  for (const char c : name) {
    const bool plain = std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_' || c == '.';
    result += plain ? c : '_';
  }
  const bool special = result.empty() || result == "." || result == "..";
  return special ? "scenario" : result;
}

fs::path directory_of(const RunArguments& arguments, const config::Scenario& scenario) {
  if (!arguments.directory.empty()) return arguments.directory;
  return fs::path("runs") / directory_name(scenario.name);
}

/// The tiles of --memory-tiles.
std::vector<TileId> memory_tiles(const RunArguments& arguments, const PreparedRun& run) {
  const std::vector<workloads::TileBinding>& used = run.plan.trace.tiles;
  std::vector<TileId> result;
  for (const std::string& name : arguments.memory_tiles) {
    const auto found = std::find_if(used.begin(), used.end(), [&](const workloads::TileBinding& binding) {
      return run.mesh.name(binding.tile) == name;
    });
    if (found == used.end()) {
      throw Error(ExitStatus::scenario, "--memory-tiles: '" + name + "' is not a tile that the plan uses; " +
                                            std::to_string(used.size()) + " are used, the first is " +
                                            run.mesh.name(used.front().tile) + " and the last " +
                                            run.mesh.name(used.back().tile));
    }
    result.push_back(found->tile);
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
                           report::MessageLog* messages) {
  ProgressBar progress(!arguments.quiet);
  sim::SimulationOptions options;
  options.seed = run.scenario.seed;
  options.record_memory = arguments.memory || !arguments.memory_tiles.empty();
  options.memory_tiles = memory_tiles(arguments, run);
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
  if (progress.shown()) {
    options.on_progress = [&progress](const sim::Progress& state) { progress.update(state); };
  }
  sim::Simulation simulation(run.mesh, run.routing(), run.hardware, run.plan.trace, std::move(options));
  return simulation.run();
}

void show(const RunArguments& arguments, const report::RunContext& context, const fs::path& directory) {
  if (arguments.json) {
    print(report::summary_text(context));
  } else if (!arguments.quiet) {
    print(report::terminal_summary(context, terminal_style()) + "Results in " + directory.string() + "\n");
  }
}

}  // namespace

ExitStatus run_command(const RunArguments& arguments) {
  const PreparedRun run(arguments.scenario);
  check_checkpoints(arguments, run);
  if (!arguments.quiet) {
    for (const std::string& warning : warnings_of(run)) print_warning(warning);
  }
  const fs::path directory = directory_of(arguments, run.scenario);
  const InterruptGuard
      guard;  // from here to the end, so that an interrupt cannot cut the writing of results short
  report::prepare_directory(directory, arguments.force);
  std::optional<report::MessageLog> messages;
  if (arguments.messages)
    messages.emplace(directory / report::kMessagesFile, run.mesh, run.plan.trace.tensors);

  const sim::Measurements measurements = simulate(arguments, run, directory, messages ? &*messages : nullptr);
  const config::Scenario& scenario = run.scenario;
  const analysis::RunSummary summary = analysis::summarize(
      {scenario.model, scenario.training, run.hardware, run.mesh, run.plan.memory, measurements});
  const report::RunContext context{scenario.name,    config::to_json(scenario),
                                   scenario.plan,    scenario.training,
                                   run.plan.mapping, run.hardware,
                                   run.mesh,         measurements,
                                   summary,          run.loads()};
  if (messages) messages->commit();
  report::write_run(directory, context, arguments.messages);
  if (!measurements.partial) report::remove_checkpoint(directory);
  show(arguments, context, directory);
  const bool interrupted = measurements.partial && measurements.stopped_by == "interrupt";
  return interrupted ? ExitStatus::interrupted : ExitStatus::done;
}

}  // namespace wafersim::apps
