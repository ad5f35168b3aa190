#include "apps/command_line.h"

#include <CLI/CLI.hpp>

#include <map>
#include <string_view>

#include "base/csv.h"
#include "base/error.h"
#include "base/quantity.h"
#include "report/timeline_file.h"

namespace wafersim::apps {
namespace {

/// CLI::PositiveNumber with a message that people can read.
CLI::Validator positive_number() {
  const auto check = [](const std::string& text) {
    double value = 0;
    return CLI::detail::lexical_cast(text, value) && value > 0 ? std::string{} : "'" + text + "' is not a number above 0";
  };
  return {check, "POSITIVE", "positive_number"};
}

void add_scenario(CLI::App& command, ScenarioArguments& arguments) {
  command.add_option("scenario", arguments.path, "Scenario file (YAML)")->required()->type_name("SCENARIO");
  command
      .add_option(
          "--set", arguments.overrides,
          "Override a key of the scenario, e.g. --set plan.tp=16 --set wafer.link.bandwidth=\"2 TB/s\"")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
}

void add_wave(CLI::App& command, WaveArguments& arguments) {
  CLI::Option* const file = command.add_option("--vcd", arguments.path, "Write a waveform of the routers of --vcd-routers")
                                ->type_name("FILE");
  CLI::Option* const routers = command.add_option("--vcd-routers", arguments.routers,
                                                  "Tiles, e.g. tile_0_0,tile_2-5_3,tile_*_1")
                                   ->type_name("TILES")
                                   ->delimiter(',')
                                   ->allow_extra_args(false);
  file->needs(routers);
  routers->needs(file);
}

Bytes timeline_bytes_of(const std::string& text) {
  DataSize size;
  std::string error;
  if (!parse_quantity(text, size, error)) throw CLI::ValidationError("--timeline-bytes", error);
  if (size.bytes < report::kLeastTimelineBytes) {
    throw CLI::ValidationError("--timeline-bytes", "'" + text + "' is too small; valid: " +
                                                       to_string(DataSize{report::kLeastTimelineBytes}) + " and more");
  }
  return size.bytes;
}

void add_timeline(CLI::App& command, TimelineArguments& arguments) {
  CLI::Option* const timeline = command.add_flag(
      "--timeline", arguments.wanted, "Write what tiles do, event by event, into timeline.json.gz, for ui.perfetto.dev");
  command
      .add_option("--timeline-tiles", arguments.tiles,
                  "Tiles of the timeline, e.g. tile_0_0,tile_2-5_3,tile_*_1, instead of one of each of the first stages")
      ->type_name("TILES")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->needs(timeline);
  command
      .add_option_function<std::string>(
          "--timeline-bytes", [&arguments](const std::string& text) { arguments.most_bytes = timeline_bytes_of(text); },
          "Stop recording when the timeline has this size before compression [200 MB]")
      ->type_name("SIZE")
      ->needs(timeline);
}

double seconds_of(const std::string& text) {
  Duration duration;
  std::string error;
  if (!parse_quantity(text, duration, error)) throw CLI::ValidationError("--checkpoint-every", error);
  if (duration.in_cycles || duration.value <= Rational(0)) {
    throw CLI::ValidationError("--checkpoint-every", "'" + text + "' is not a time above 0, such as 60s");
  }
  return duration.value.to_double();
}

CLI::App* add_run(CLI::App& app, RunArguments& arguments) {
  CLI::App* run = app.add_subcommand("run", "Simulate a scenario and write its results");
  add_scenario(*run, arguments.scenario);
  run->add_option("-o,--output", arguments.directory, "Directory of the results [runs/NAME]")
      ->type_name("DIR");
  run->add_flag("--json", arguments.json, "Print summary.json instead of the summary for people");
  run->add_flag("--quiet", arguments.quiet, "Print nothing but errors");
  run->add_flag("--messages", arguments.messages, "Log every message into messages.csv");
  run->add_flag("--memory", arguments.memory,
                "Write what the fullest and the emptiest tile hold over time into memory.csv");
  run->add_option("--memory-tiles", arguments.memory_tiles, "The same of these tiles as well, e.g. tile_0_0,tile_3_1")
      ->type_name("TILES")
      ->delimiter(',')
      ->allow_extra_args(false);
  run->add_flag("--critical-path", arguments.critical_path,
                "Record the chain of last arrivals that decides when the run ends, and write it into critical_path.json");
  run->add_flag("--report", arguments.report,
                "Record loads over time, messages, operations and memory, and write them as tables and as report.html");
  run->add_option("--report-tiles", arguments.report_tiles,
                  "The same, and show what these tiles did span by span, instead of one of each of the first stages")
      ->type_name("TILES")
      ->delimiter(',')
      ->allow_extra_args(false);
  add_timeline(*run, arguments.timeline);
  add_wave(*run, arguments.wave);
  run->add_option("--max-cycles", arguments.max_cycles,
                  "Stop after N cycles; the results are marked as partial")
      ->type_name("N")
      ->check(positive_number());
  run->add_option("--max-wall", arguments.max_wall_seconds,
                  "Stop after this many seconds of wall time; the results are marked as partial")
      ->type_name("SECONDS")
      ->check(positive_number());
  run->add_option_function<std::string>(
         "--fold",
         [&arguments](const std::string& word) {
           arguments.fold = word != "off";
           arguments.fold_stages = word == "stages";
         },
         "auto: simulate what repeats once, the results are the same; stages: also what single pipeline stages do again, with up to "
         "1 GiB more; off: simulate everything [auto]")
      ->type_name("auto|stages|off")
      ->check(CLI::IsMember({"auto", "stages", "off"}));
  run->add_option_function<std::string>(
         "--trains", [&arguments](const std::string& word) { arguments.trains = word == "auto"; },
         "auto: simulate the packets of a message that meets no other as one, the results are the same; off: each [auto]")
      ->type_name("auto|off")
      ->check(CLI::IsMember({"auto", "off"}));
  run->add_option_function<std::string>(
         "--checkpoint-every",
         [&arguments](const std::string& text) { arguments.checkpoint_seconds = seconds_of(text); },
         "Keep the state of the run in DIR/checkpoint.bin, this often and when the run is stopped")
      ->type_name("TIME");
  run->add_flag("--resume", arguments.resume, "Go on from DIR/checkpoint.bin");
  run->add_flag("--force", arguments.force, "Write into a directory that holds other files, too");
  return run;
}

CLI::App* add_report(CLI::App& app, ReportArguments& arguments) {
  CLI::App* report = app.add_subcommand("report", "Write report.html into the directory of a run, from its tables");
  report->add_option("directory", arguments.directory, "Directory of a run")->required()->type_name("RUN_DIR");
  return report;
}

CLI::App* add_plot(CLI::App& app, PlotArguments& arguments) {
  static const std::map<std::string, report::PictureKind> kinds = {{"heatmap", report::PictureKind::heatmap},
                                                                   {"breakdown", report::PictureKind::breakdown},
                                                                   {"memory", report::PictureKind::memory},
                                                                   {"timeline", report::PictureKind::timeline}};
  CLI::App* plot = app.add_subcommand("plot", "Draw a picture of a finished run, as wide as a column of a paper");
  plot->add_option("directory", arguments.directory, "Directory of a run")->required()->type_name("RUN_DIR");
  plot->add_option_function<std::string>(
          "--what", [&arguments](const std::string& word) { arguments.picture.kind = kinds.at(word); },
          "heatmap of the tiles, breakdown of the cycles, memory or pipeline stages over time")
      ->required()
      ->type_name("heatmap|breakdown|memory|timeline")
      ->check(CLI::IsMember({"heatmap", "breakdown", "memory", "timeline"}));
  plot->add_option("-o,--output", arguments.output, "The picture; its name ends with .svg, .pdf or .png")
      ->required()
      ->type_name("FILE");
  CLI::Option* const measure =
      plot->add_option("--measure", arguments.picture.measure, "What a heat map shows of the tiles [compute]")
          ->type_name("MEASURE")
          ->check(CLI::IsMember(report::heatmap_measures()));
  CLI::Option* const links = plot->add_option("--links", arguments.picture.links, "What a heat map shows of the links [nothing]")
                                 ->type_name("MEASURE")
                                 ->check(CLI::IsMember(report::link_measures()));
  CLI::Option* const replica =
      plot->add_option("--replica", arguments.picture.replica, "Replica of a timeline [0]")->type_name("N");
  plot->callback([&arguments, measure, links, replica] {
    const bool heatmap = arguments.picture.kind == report::PictureKind::heatmap;
    for (const CLI::Option* option : {measure, links}) {
      if (option->count() > 0 && !heatmap) throw CLI::ValidationError(option->get_name(), "is for --what heatmap");
    }
    if (replica->count() > 0 && arguments.picture.kind != report::PictureKind::timeline) {
      throw CLI::ValidationError(replica->get_name(), "is for --what timeline");
    }
  });
  return plot;
}

CLI::App* add_check(CLI::App& app, CheckArguments& arguments) {
  CLI::App* check = app.add_subcommand(
      "check", "Print the resolved scenario, its size and whether it fits, without simulating");
  add_scenario(*check, arguments.scenario);
  check->add_flag("--json", arguments.json, "Print one JSON object");
  check->add_flag("--verify", arguments.verify,
                  "Also prove that the trace computes the model: messages, operands, sums, final state");
  return check;
}

CLI::App* add_topology(CLI::App& app, TopologyArguments& arguments) {
  CLI::App* topology = app.add_subcommand(
      "topology", "Print the mesh, its routing, whether it can deadlock, and the link loads of the traffic");
  add_scenario(*topology, arguments.scenario);
  topology->add_flag("--json", arguments.json, "Print one JSON object");
  return topology;
}

CLI::App* add_traffic(CLI::App& app, TrafficArguments& arguments) {
  CLI::App* traffic = app.add_subcommand("traffic", "Simulate the network alone under the scenario's synthetic traffic");
  add_scenario(*traffic, arguments.scenario);
  traffic
      ->add_option("-o,--output", arguments.directory,
                   "Directory for traffic.json, traffic.csv and, with --sweep, latency.svg")
      ->type_name("DIR");
  traffic->add_flag("--force", arguments.force, "Write into a directory that holds other files, too");
  traffic->add_flag("--json", arguments.json, "Print one JSON object");
  add_wave(*traffic, arguments.wave);
  traffic->add_flag("--sweep", arguments.sweep, "Search for saturation and measure loads below it");
  return traffic;
}

/// "i/n" with 1 <= i <= n.
bool parse_shard(const std::string& text, Shard& shard) {
  const std::string_view view = text;
  const std::size_t slash = view.find('/');
  if (slash == std::string_view::npos) return false;
  const auto index = whole_number(view.substr(0, slash));
  const auto count = whole_number(view.substr(slash + 1));
  if (!index || !count || *index < 1 || *index > *count) return false;
  shard = {*index, *count};
  return true;
}

/// `jobs` says what is done at a time.
void add_study(CLI::App& command, StudyArguments& arguments, const std::string& jobs) {
  command.add_option("study", arguments.study, "Study file (YAML)")->required()->type_name("STUDY");
  command
      .add_option("-o,--output", arguments.directory,
                  "Directory of the results [runs/NAME]; points that it has are not run again")
      ->type_name("DIR");
  command.add_option("-j,--jobs", arguments.jobs, jobs + " at a time [one for each processor; under mpirun one of each rank]")
      ->type_name("N")
      ->check(CLI::Range(1, 4096));
  command.add_flag("--retry-failed", arguments.retry_failed, "Run failed points again, too");
  command.add_flag("--quiet", arguments.quiet, "Print nothing but errors");
  command.add_flag("--force", arguments.force, "Write into a directory that holds other files, too");
}

CLI::App* add_sweep(CLI::App& app, SweepArguments& arguments) {
  CLI::App* sweep = app.add_subcommand("sweep", "Run all points of a study and collect their results in one SQLite file");
  add_study(*sweep, arguments, "Points");
  sweep
      ->add_option_function<std::string>(
          "--shard",
          [&arguments](const std::string& text) {
            if (!parse_shard(text, arguments.shard)) {
              throw CLI::ValidationError("--shard", "'" + text + "' is no shard; valid: I/N with 1 <= I <= N, as in 2/8");
            }
          },
          "Run only part I of N, for job arrays")
      ->type_name("I/N");
  sweep->add_option("--merge", arguments.merge, "Run nothing; take over the results of these directories")
      ->type_name("DIRS");
  sweep->add_flag("--keep-runs", arguments.keep_runs, "Keep the result directory of every point in DIR/runs");
  return sweep;
}

CLI::App* add_validate(CLI::App& app, ValidateArguments& arguments) {
  CLI::App* validate = app.add_subcommand("validate", "Simulate all points of a study and put cost models on trial against them");
  add_study(*validate, arguments, "Simulations");
  validate->add_flag("--json", arguments.json, "Print validation.json instead of the summary for people");
  return validate;
}

/// "90s", "10m", "2h".
double budget_of(const std::string& text) {
  static const std::map<std::string, double> units = {{"s", 1}, {"m", 60}, {"min", 60}, {"h", 3600}};
  std::size_t end = 0;
  double value = 0;
  try {
    value = std::stod(text, &end);
  } catch (const std::exception&) {
    end = 0;
  }
  std::string unit = text.substr(end);
  unit.erase(0, unit.find_first_not_of(' '));
  const auto found = units.find(unit);
  if (end == 0 || found == units.end() || !(value > 0)) {
    throw CLI::ValidationError("--budget",
                               "'" + text + "' is not a time above 0; valid: a number with s, m (min) or h, as in 10m");
  }
  return value * found->second;
}

void add_search_options(CLI::App& command, PlanSearchOptions& options, const std::string& usual, const std::string& budget) {
  command.add_option("--max-plans", options.most_plans, "Plans that are predicted [" + usual + "]")
      ->type_name("N")
      ->check(positive_number());
  command
      .add_option_function<std::string>(
          "--budget", [&options](const std::string& text) { options.budget_seconds = budget_of(text); }, budget)
      ->type_name("TIME");
  command.add_option("--seed", options.seed, "Seed of what is drawn [that of the scenario]")->type_name("S");
  command.add_option("-j,--jobs", options.jobs, "Predictions and simulations at a time [one for each processor]")
      ->type_name("N")
      ->check(CLI::Range(1, 4096));
}

CLI::App* add_search(CLI::App& app, SearchArguments& arguments) {
  CLI::App* search =
      app.add_subcommand("search", "Search for the fastest plan: predictions rank, simulations confirm");
  add_scenario(*search, arguments.scenario);
  search->add_option("-o,--output", arguments.directory, "Directory of the results [runs/NAME-search]")->type_name("DIR");
  add_search_options(*search, arguments.options, "2000",
                     "End after this time, with the best plan found by then, e.g. 10m");
  search->add_option("--top", arguments.options.top, "Plans that are simulated [5]")->type_name("K")->check(CLI::Range(1, 1000));
  search
      ->add_option("--baselines", arguments.options.baselines,
                   "Search these kinds of plans in the same way, too: megatron, megatron_sp, fsdp")
      ->type_name("NAMES")
      ->delimiter(',')
      ->allow_extra_args(false);
  search->add_flag("--operators", arguments.options.operators,
                   "Let attention and MLP of the best plans divide the tiles of a model group each in its own way");
  search->add_option("--keep", arguments.options.kept, "Keys of the scenario that stay as they are, e.g. plan.mapping,plan.zero")
      ->type_name("KEYS")
      ->delimiter(',')
      ->allow_extra_args(false);
  search->add_flag("--quiet", arguments.quiet, "Print nothing but errors");
  search->add_flag("--force", arguments.force, "Write into a directory that holds other files, too");
  return search;
}

CLI::App* add_advise(CLI::App& app, AdviseArguments& arguments) {
  CLI::App* advise =
      app.add_subcommand("advise", "Search the best plan for models of several sizes and sequence lengths on a wafer");
  arguments.options.most_plans = 300;
  arguments.options.top = 3;
  advise->add_option("--wafer", arguments.wafer, "Hardware preset [temp-wafer]")->type_name("PRESET");
  advise->add_option("--models", arguments.models, "Model presets [gpt3-6.7b,gpt3-13b,llama2-70b,gpt3-76b,gpt3-175b]")
      ->type_name("PRESETS")
      ->delimiter(',')
      ->allow_extra_args(false);
  advise->add_option("--sequences", arguments.sequences, "Lengths of a sequence in tokens [2048,16384]")
      ->type_name("TOKENS")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(positive_number());
  advise->add_option("--tokens", arguments.tokens, "Tokens of an iteration: the batch is that divided by the sequence [262144]")
      ->type_name("N")
      ->check(positive_number());
  advise->add_option("--set", arguments.overrides, "Set a key of all scenarios, e.g. --set wafer.mesh=6x8")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
  advise->add_option("-o,--output", arguments.directory, "Directory of the results [runs/advice-PRESET]")->type_name("DIR");
  add_search_options(*advise, arguments.options, "300", "End the search of a cell after this time, e.g. 1m");
  advise->add_flag("--confirm", arguments.confirm, "Simulate the best three plans of each cell");
  advise->add_flag("--json", arguments.json, "Print one JSON object");
  advise->add_flag("--quiet", arguments.quiet, "Print nothing but errors");
  advise->add_flag("--force", arguments.force, "Write into a directory that holds other files, too");
  return advise;
}

CLI::App* add_compare(CLI::App& app, CompareArguments& arguments) {
  CLI::App* compare = app.add_subcommand("compare", "Put finished runs side by side: measures, and keys that differ");
  compare->add_option("runs", arguments.runs, "Result directories of runs; the others are compared with the first")
      ->required()
      ->expected(2, 100)
      ->type_name("RUN");
  compare->add_flag("--json", arguments.json, "Print one JSON object");
  compare->add_option("--html", arguments.html, "Write them into one page to look at, with the map of the difference, too")
      ->type_name("FILE");
  return compare;
}

CLI::App* add_whatif(CLI::App& app, WhatIfArguments& arguments) {
  CLI::App* whatif = app.add_subcommand(
      "whatif", "Bound what a change of the machine could gain by the critical path, and simulate it");
  add_scenario(*whatif, arguments.scenario);
  whatif->get_option("scenario")->description("Scenario file (YAML), or the directory of a run with --critical-path");
  whatif->add_option("--change", arguments.changes,
                     "'links 2x', 'compute 2x', 'memory 2x' with any factor, 'routers instant' or 'network ideal'; repeatable")
      ->required()
      ->type_name("CHANGE")
      ->allow_extra_args(false);
  whatif->add_option("-o,--output", arguments.directory, "Directory of the runs [RUN_DIR/whatif or runs/NAME-whatif]")
      ->type_name("DIR");
  whatif->add_flag("--json", arguments.json, "Print one JSON object");
  return whatif;
}

CLI::App* add_collective(CLI::App& app, CollectiveArguments& arguments) {
  CLI::App* collective = app.add_subcommand(
      "collective", "Simulate the scenario's collective by cores that add or store what arrives as it arrives");
  add_scenario(*collective, arguments.scenario);
  collective->add_flag("--json", arguments.json, "Print one JSON object");
  return collective;
}

CLI::App* add_kernel(CLI::App& app, KernelArguments& arguments) {
  CLI::App* kernel = app.add_subcommand("kernel", "Simulate the scenario's stencil, matrix-vector or matrix product on the mesh");
  add_scenario(*kernel, arguments.scenario);
  kernel->add_flag("--json", arguments.json, "Print one JSON object");
  return kernel;
}

}  // namespace

Command parse_command_line(int argc, char** argv) {
  CLI::App app("Cycle-level simulator of wafer-scale chips that train large language models", "wafersim");
  app.set_version_flag("--version", "wafersim " WAFERSIM_VERSION);
  app.require_subcommand(1);
  RunArguments run_arguments;
  ReportArguments report_arguments;
  const CLI::App* report = add_report(app, report_arguments);
  PlotArguments plot_arguments;
  const CLI::App* plot = add_plot(app, plot_arguments);
  CheckArguments check_arguments;
  const CLI::App* run = add_run(app, run_arguments);
  const CLI::App* check = add_check(app, check_arguments);
  TopologyArguments topology_arguments;
  const CLI::App* topology = add_topology(app, topology_arguments);
  TrafficArguments traffic_arguments;
  const CLI::App* traffic = add_traffic(app, traffic_arguments);
  SweepArguments sweep_arguments;
  const CLI::App* sweep = add_sweep(app, sweep_arguments);
  ValidateArguments validate_arguments;
  const CLI::App* validate = add_validate(app, validate_arguments);
  SearchArguments search_arguments;
  const CLI::App* search = add_search(app, search_arguments);
  AdviseArguments advise_arguments;
  const CLI::App* advise = add_advise(app, advise_arguments);
  CompareArguments compare_arguments;
  const CLI::App* compare = add_compare(app, compare_arguments);
  WhatIfArguments whatif_arguments;
  const CLI::App* whatif = add_whatif(app, whatif_arguments);
  CollectiveArguments collective_arguments;
  const CLI::App* collective = add_collective(app, collective_arguments);
  KernelArguments kernel_arguments;
  const CLI::App* kernel = add_kernel(app, kernel_arguments);
  app.add_subcommand("presets", "List the hardware and model presets");
  app.footer(
      "Exit status: 0 done, 2 the scenario or the command line is wrong, 3 the plan does not fit or cannot "
      "run,\n"
      "4 a bug of wafersim, 5 a file cannot be read or written, 130 interrupted.");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    const int status = app.exit(error);
    return Answered{status == 0 ? 0 : static_cast<int>(ExitStatus::scenario)};
  }
  if (run->parsed()) return run_arguments;
  if (report->parsed()) return report_arguments;
  if (plot->parsed()) return plot_arguments;
  if (check->parsed()) return check_arguments;
  if (topology->parsed()) return topology_arguments;
  if (traffic->parsed()) return traffic_arguments;
  if (sweep->parsed()) return sweep_arguments;
  if (validate->parsed()) return validate_arguments;
  if (search->parsed()) return search_arguments;
  if (advise->parsed()) return advise_arguments;
  if (compare->parsed()) return compare_arguments;
  if (whatif->parsed()) return whatif_arguments;
  if (collective->parsed()) return collective_arguments;
  if (kernel->parsed()) return kernel_arguments;
  return PresetsArguments{};
}

}  // namespace wafersim::apps
