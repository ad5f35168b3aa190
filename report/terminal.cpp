#include "report/terminal.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "analysis/plan_space.h"
#include "base/text.h"
#include "report/heatmap.h"
#include "report/terminal_canvas.h"
#include "report/terminal_path.h"

namespace wafersim::report {
namespace {

constexpr std::size_t kLinksShown = 5;
constexpr const char* kUnknown = "-";

std::string axis_name(std::size_t axis) { return workloads::to_string(static_cast<workloads::Axis>(axis)); }

std::string percent_or_unknown(const std::optional<double>& fraction) {
  return fraction ? percent(*fraction) : kUnknown;
}

void draw_title(Canvas& canvas, const RunContext& run) {
  const analysis::RunSummary& summary = run.summary;
  std::string machine =
      fmt::format("{} of {} tiles ({} mesh), dp {} x pp {} x tp {}", summary.tiles_used, summary.tiles_total,
                  topology::to_string(run.mesh.shape()), run.plan.dp, run.plan.pp, run.plan.tp);
  if (run.plan.tatp > 1) machine += fmt::format(" x tatp {}", run.plan.tatp);
  if (run.plan.sp_degree > 1) machine += fmt::format(" x sp {}", run.plan.sp_degree);
  if (run.plan.ep > 1) machine += fmt::format(", ep {}", run.plan.ep);
  if (const std::string operators = analysis::operators_text(run.plan); !operators.empty()) machine += ", " + operators;
  canvas.line(canvas.paint(Ink::title, run.name));
  canvas.line(canvas.paint(Ink::dim, machine));
  if (!run.measurements.partial) return;
  canvas.line(
      canvas.paint(Ink::warning, fmt::format("PARTIAL RESULTS: stopped by {} at cycle {}",
                                             run.measurements.stopped_by, human_count(summary.cycles))));
  canvas.line(
      canvas.paint(Ink::warning, fmt::format("{} of {} iterations completed", summary.iterations.completed,
                                             summary.iterations.planned)));
}

std::string tokens_text(const std::optional<double>& tokens_per_second) {
  if (!tokens_per_second) return kUnknown;
  if (*tokens_per_second < 1000) return with_prefix(*tokens_per_second);
  return human_count(static_cast<std::uint64_t>(std::llround(*tokens_per_second)));
}

void draw_headline(Canvas& canvas, const RunContext& run) {
  const analysis::RunSummary& summary = run.summary;
  const std::optional<double>& cycles = summary.iterations.mean_cycles;
  const double clock = run.hardware.clock.hertz.to_double();
  const std::vector<std::pair<std::string, std::string>> figures = {
      {"Iteration", cycles ? human_seconds(*cycles / clock) : kUnknown},
      {"Cycles", cycles ? human_count(static_cast<std::uint64_t>(std::llround(*cycles))) : kUnknown},
      {"Tokens/s", tokens_text(summary.tokens_per_second)},
      {"MFU", percent_or_unknown(summary.mfu)},
      {"HFU", percent(summary.hfu)}};
  std::string labels;
  std::string values;
  std::size_t columns = 0;  // of the figure before
  for (const auto& [label, value] : figures) {
    labels.resize(columns, ' ');
    values.resize(columns, ' ');
    labels += "  " + label;
    values += "  " + value;
    columns = std::max(labels.size(), values.size()) + 2;
  }
  canvas.line();
  canvas.line(canvas.paint(Ink::dim, labels));
  canvas.line(canvas.paint(Ink::title, values));
  if (const auto& steady = summary.iterations.steady_state_cycles) {
    canvas.line(fmt::format("  {} iterations; steady state {} ({} cycles) from start to start",
                            summary.iterations.completed, human_seconds(static_cast<double>(*steady) / clock),
                            human_count(*steady)));
  }
}

void draw_time(Canvas& canvas, const analysis::RunSummary& summary) {
  const analysis::Breakdown& breakdown = summary.breakdown;
  canvas.section(fmt::format("Where the time goes, mean of {} tiles", summary.tiles_used));
  canvas.stacked_bar(
      {{Ink::compute, canvas.glyph("█", "#"), "compute", breakdown.compute},
       {Ink::communication, canvas.glyph("▓", "="), "exposed communication", breakdown.exposed_total()},
       {Ink::bubble, canvas.glyph("▒", "o"), "bubble", breakdown.bubble},
       {Ink::memory, canvas.glyph("░", "m"), "memory stall", breakdown.memory_stall},
       {Ink::idle, canvas.glyph("·", "."), "idle", breakdown.idle}});
}

void draw_communication(Canvas& canvas, const analysis::RunSummary& summary) {
  const auto& exposed = summary.breakdown.exposed;
  canvas.section("Exposed communication by axis");
  const double largest = *std::max_element(exposed.begin(), exposed.end());
  for (std::size_t i = 0; i < exposed.size(); ++i) {
    if (exposed[i] <= 0) continue;
    canvas.line(fmt::format("  {:<5}{:>8}  {}", axis_name(i), percent(exposed[i]),
                            canvas.bar(Ink::communication, exposed[i] / largest, 40)));
  }
  if (!summary.hidden_communication) {
    canvas.line("  no messages");
  } else {
    canvas.line(fmt::format("  {} of the time with messages in flight is hidden behind other work",
                            percent(*summary.hidden_communication)));
  }
}

void draw_memory(Canvas& canvas, const RunContext& run) {
  const analysis::MemorySummary& memory = run.summary.memory;
  const double capacity = static_cast<double>(std::max<Bytes>(memory.capacity_bytes, 1));
  const std::string tile = memory.peak_tile == kNoTile ? kUnknown : run.mesh.name(memory.peak_tile);
  canvas.section(fmt::format("Memory: {} of {} ({}) in the fullest tile, {}", human_bytes(memory.peak_bytes),
                             human_bytes(memory.capacity_bytes),
                             percent(static_cast<double>(memory.peak_bytes) / capacity), tile));
  for (std::size_t i = 0; i < memory.peak_by_class.size(); ++i) {
    const Bytes bytes = memory.peak_by_class[i];
    if (bytes == 0) continue;
    canvas.line(fmt::format("  {:<22}{:>10}  {}",
                            workloads::to_string(static_cast<workloads::MemoryClass>(i)), human_bytes(bytes),
                            canvas.bar(Ink::memory, static_cast<double>(bytes) / capacity, 40)));
  }
  canvas.line(
      canvas.paint(Ink::dim, "  largest of any tile, class by class; a full bar is the capacity of a tile"));
}

void draw_energy(Canvas& canvas, const std::optional<analysis::EnergySummary>& energy) {
  if (!energy) return;
  std::string title = "Energy: " + human_unit(energy->joules, "J");
  if (energy->watts) title += ", " + human_unit(*energy->watts, "W") + " in the mean";
  if (energy->joules_per_token) title += ", " + human_unit(*energy->joules_per_token, "J") + " a token";
  canvas.section(title);
  for (const analysis::EnergySummary::Part& part : energy->parts) {
    const double share = energy->joules > 0 ? part.joules / energy->joules : 0;
    canvas.line(fmt::format("  {:<8}{:>10}{:>9}  {}", models::to_string(part.part), human_unit(part.joules, "J"), percent(share),
                            canvas.bar(Ink::memory, share, 40)));
  }
  if (energy->not_modelled.empty()) return;
  std::vector<std::string> missing;
  for (const models::EnergyPart part : energy->not_modelled) missing.emplace_back(models::to_string(part));
  canvas.line(canvas.paint(Ink::dim, "  not modelled, and not in the sum: " + join(missing)));
}

/// "tp 80 %, dp 20 %": whose bytes a link carried, largest first.
std::string axes_text(const analysis::Hotspot& hotspot) {
  std::vector<std::pair<Bytes, std::size_t>> shares;
  for (std::size_t i = 0; i < hotspot.bytes_by_axis.size(); ++i) {
    if (hotspot.bytes_by_axis[i] > 0) shares.emplace_back(hotspot.bytes_by_axis[i], i);
  }
  std::stable_sort(shares.begin(), shares.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  if (shares.size() > 2) shares.resize(2);
  std::vector<std::string> words;
  for (const auto& [bytes, axis] : shares) {
    const double share = 100 * static_cast<double>(bytes) / static_cast<double>(hotspot.bytes);
    if (share >= 0.5) words.push_back(fmt::format("{} {:.0f} %", axis_name(axis), share));
  }
  return join(words);
}

/// All digits, while they are few enough to be read.
std::string count_text(std::uint64_t count) {
  constexpr std::uint64_t kLargestWritten = 999'999'999;
  return count <= kLargestWritten ? human_count(count) : with_prefix(static_cast<double>(count));
}

void draw_links(Canvas& canvas, const analysis::NetworkSummary& network) {
  canvas.section(fmt::format("Hottest links (mean of all links {})", percent(network.mean_link_utilization)));
  if (network.hotspots.empty()) {
    canvas.line("  no link carried a packet");
    return;
  }
  canvas.line(canvas.paint(Ink::dim, fmt::format("  {:<25}{:>8}{:>10}{:>15}  {}", "link", "busy", "bytes",
                                                 "queued cycles", "traffic")));
  for (std::size_t i = 0; i < std::min(kLinksShown, network.hotspots.size()); ++i) {
    const analysis::Hotspot& hotspot = network.hotspots[i];
    canvas.line(fmt::format("  {:<25}{:>8}{:>10}{:>15}  {}", hotspot.name, percent(hotspot.utilization),
                            human_bytes(hotspot.bytes), count_text(hotspot.queue_cycles),
                            axes_text(hotspot)));
  }
}

void draw_loads(Canvas& canvas, const LoadReports& loads) {
  const std::vector<ReportLine> lines = report_lines(loads);
  if (lines.empty()) return;
  canvas.section("Link loads, bytes of an iteration");
  for (const auto& [label, value] : lines) canvas.line(fmt::format("  {:<22}{}", label, value));
}

/// What was simulated once for all times that it happens.
std::string folded_text(const sim::FoldMeasurement& fold) {
  std::vector<std::string> ways;
  if (fold.replicas_folded > 1) ways.push_back(fmt::format("{} replicas as one", fold.replicas_folded));
  if (fold.skipped_periods > 0) ways.push_back(fmt::format("{} periods skipped", fold.skipped_periods));
  return fmt::format("Folded: {} of the operations ({})", percent(fold.fraction), join(ways));
}

void draw_engine(Canvas& canvas, const sim::EngineMeasurement& engine) {
  canvas.line();
  if (engine.trains.messages > 0) {
    canvas.line(canvas.paint(Ink::dim, fmt::format("Trains: {} messages, {} packets", count_text(engine.trains.messages),
                                                   count_text(engine.trains.packets))));
  }
  if (engine.fold.fraction > 0) canvas.line(canvas.paint(Ink::dim, folded_text(engine.fold)));
  canvas.line(canvas.paint(
      Ink::dim,
      fmt::format("Engine: {} wall, {} CPU, {} packet-hops per CPU second, {}",
                  human_seconds(engine.wall_seconds), human_seconds(engine.cpu_seconds),
                  with_prefix(engine.packet_hops_per_cpu_second), human_bytes(engine.peak_rss_bytes))));
}

}  // namespace

std::string terminal_summary(const RunContext& run, const TerminalStyle& style) {
  Canvas canvas(style);
  draw_title(canvas, run);
  draw_headline(canvas, run);
  draw_time(canvas, run.summary);
  draw_communication(canvas, run.summary);
  draw_memory(canvas, run);
  draw_energy(canvas, run.summary.energy);
  draw_links(canvas, run.summary.network);
  if (run.path) draw_path(canvas, *run.path, run.mesh);
  draw_loads(canvas, run.loads);
  draw_heatmap(canvas, run.measurements, run.mesh);
  draw_engine(canvas, run.measurements.engine);
  return canvas.take();
}

}  // namespace wafersim::report
