#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <vector>

#include "base/error.h"
#include "report/picture_parts.h"

namespace wafersim::report {
namespace {

constexpr double kLeft = 38;
constexpr double kTop = 4;
constexpr double kMostPitch = 15;
constexpr double kLeastPitch = 3;
constexpr double kRowsHeight = 300;
/// Bars of one kind and microbatch that are closer than this are drawn as one: the eye does not see the gap.
constexpr double kSmallestGap = 0.25;
constexpr double kDigit = 0.6 * kPictureFont;

/// What a step is drawn as.
struct Look {
  std::size_t order;  ///< in the legend
  const char* label;
  const char* colour;
  const char* ink;  ///< of the number in it
};

/// Of a kind of step, or of the pass of a layer.
const Look& look_of(std::string_view kind, std::string_view pass, const CsvTable& steps) {
  static const std::map<std::string_view, Look> passes = {
      {"F", {0, "forward", colours::kBlue, "white"}},
      {"B", {1, "backward", colours::kPurple, "black"}},
      {"W", {2, "weight gradients", colours::kOrange, "black"}},
      {"R", {3, "recomputed forward", colours::kSky, "black"}}};
  static const std::map<std::string_view, Look> kinds = {
      {"embedding", {4, "embedding", colours::kBrown, "white"}},
      {"head", {5, "head", colours::kVermilion, "black"}},
      {"gradient_sync", {6, "gradient sync", colours::kGreen, "black"}},
      {"parameter_gather", {7, "parameter gather", colours::kDeepGreen, "white"}},
      {"optimizer", {8, "optimizer", colours::kYellow, "black"}},
      {"custom", {9, "custom", colours::kMuted, "white"}}};
  static const Look layer{0, "layer", colours::kBlue, "white"};
  if (kind == "layer") {
    const auto found = passes.find(pass);
    return found == passes.end() ? layer : found->second;
  }
  const auto found = kinds.find(kind);
  if (found == kinds.end()) {
    throw IoError(fmt::format("cannot use {}: '{}' is no kind of step", steps.path().string(), kind));
  }
  return found->second;
}

struct Span {
  const Look* look = nullptr;
  std::int64_t microbatch = -1;
  std::uint64_t start = 0;
  std::uint64_t end = 0;
};

struct StageRow {
  std::vector<Span> steps;
  std::vector<Span> beside;  ///< what runs in the background: gradient sums and parameter gathers
};

/// Adds the step to the row, or to its last span when nobody could tell them apart. Steps come in the order of their starts.
void append(std::vector<Span>& row, const Span& step, double smallest_gap) {
  if (!row.empty() && row.back().look == step.look && row.back().microbatch == step.microbatch) {
    Span& last = row.back();
    if (step.start <= last.end || static_cast<double>(step.start - last.end) < smallest_gap) {
      last.end = std::max(last.end, step.end);
      return;
    }
  }
  row.push_back(step);
}

std::vector<StageRow> rows_of(const RunTables& run, std::uint64_t replica, std::uint64_t stages, double smallest_gap) {
  const CsvTable& steps = run.steps;
  const std::size_t group = steps.column("group");
  const std::size_t kind = steps.column("kind");
  const std::size_t pass = steps.column("pass");
  const std::size_t microbatch = steps.column("microbatch");
  const std::size_t start = steps.column("start_cycle");
  const std::size_t compute = steps.column("compute_cycle");
  const std::size_t end = steps.column("end_cycle");
  struct Placed {
    std::uint64_t stage;
    bool beside;
    Span span;
  };
  std::vector<Placed> placed;
  for (std::size_t row = 0; row < steps.rows(); ++row) {
    const std::uint64_t its_group = steps.whole(row, group);
    if (its_group / stages != replica) continue;
    const std::string_view name = steps.text(row, kind);
    const bool beside = name == "gradient_sync" || name == "parameter_gather";
    // Until its first operation a step waits for what it needs.
    const std::int64_t computes = beside ? -1 : steps.index(row, compute);
    Span span{&look_of(name, steps.text(row, pass), steps), steps.index(row, microbatch),
              computes < 0 ? steps.whole(row, start) : static_cast<std::uint64_t>(computes), steps.whole(row, end)};
    placed.push_back({its_group % stages, beside, span});
  }
  std::stable_sort(placed.begin(), placed.end(), [](const Placed& a, const Placed& b) { return a.span.start < b.span.start; });
  std::vector<StageRow> rows(stages);
  for (const Placed& each : placed) {
    StageRow& row = rows[each.stage];
    append(each.beside ? row.beside : row.steps, each.span, smallest_gap);
  }
  return rows;
}

std::vector<LegendItem> legend_of(const std::vector<StageRow>& rows) {
  std::map<std::pair<std::size_t, std::string>, std::string> used;
  for (const StageRow& row : rows) {
    for (const std::vector<Span>* spans : {&row.steps, &row.beside}) {
      for (const Span& span : *spans) used[{span.look->order, span.look->label}] = span.look->colour;
    }
  }
  std::vector<LegendItem> items;
  for (const auto& [name, colour] : used) items.push_back({colour, name.second});
  items.push_back({colours::kPale, "no step computes"});
  return items;
}

}  // namespace

std::string draw_timeline_picture(const RunTables& run, std::size_t replica) {
  const auto& plan = run.summary.at("plan");
  const auto stages = std::max<std::uint64_t>(plan.at("pp").get<std::uint64_t>(), 1);
  const auto replicas = plan.at("dp").get<std::uint64_t>();
  if (replica >= replicas) {
    throw Error(ExitStatus::scenario,
                fmt::format("--replica {}: the run has {} replica{}; valid: 0 to {}", replica, replicas,
                            replicas == 1 ? "" : "s", replicas - 1));
  }
  const double right = kPictureWidth - kPictureRight;
  const double scale = (right - kLeft) / static_cast<double>(run_cycles(run));
  const std::vector<StageRow> rows = rows_of(run, replica, stages, kSmallestGap / scale);
  const std::vector<LegendItem> legend = legend_of(rows);
  const double pitch = std::clamp(kRowsHeight / static_cast<double>(stages), kLeastPitch, kMostPitch);
  const double bottom = kTop + pitch * static_cast<double>(stages);
  const double legend_top = bottom + kTimeAxisHeight + 3;
  Svg svg(kPictureWidth, legend_top + draw_legend(nullptr, kTop, legend_top, legend), "pt", kPictureFont);
  svg.title(fmt::format("{}: pipeline stages of replica {} over time", run.summary.at("name").get<std::string>(), replica));
  const auto every = static_cast<std::size_t>(std::max(1.0, nice_step(9 / pitch, 1)));
  SvgBoxes background;
  SvgBoxes boxes;
  SvgBoxes beside;
  const auto x = [&](std::uint64_t cycle) { return kLeft + static_cast<double>(cycle) * scale; };
  for (std::size_t stage = 0; stage < rows.size(); ++stage) {
    const double y = kTop + pitch * static_cast<double>(stage);
    background.add(colours::kPale, kLeft, y + 0.06 * pitch, right - kLeft, 0.66 * pitch);
    for (const Span& span : rows[stage].steps) {
      boxes.add(span.look->colour, x(span.start), y + 0.06 * pitch, x(span.end) - x(span.start), 0.66 * pitch);
    }
    for (const Span& span : rows[stage].beside) {
      beside.add(span.look->colour, x(span.start), y + 0.76 * pitch, x(span.end) - x(span.start), 0.2 * pitch);
    }
    if (stage % every == 0) svg.text(kLeft - 4, y + pitch / 2 + 2.6, "end", fmt::format("stage {}", stage));
  }
  draw_time_axis(svg, run, kLeft, right, kTop, bottom);
  background.draw(svg, "background");
  boxes.draw(svg, "step");
  beside.draw(svg, "beside");
  // The number of the microbatch, where there is room for it.
  for (std::size_t stage = 0; stage < rows.size() && 0.66 * pitch > kPictureFont; ++stage) {
    const double y = kTop + pitch * static_cast<double>(stage);
    for (const Span& span : rows[stage].steps) {
      const std::string number = fmt::format("{}", span.microbatch);
      if (span.microbatch < 0 || x(span.end) - x(span.start) < kDigit * static_cast<double>(number.size()) + 1) continue;
      svg.text((x(span.start) + x(span.end)) / 2, y + 0.39 * pitch + 2.7, "middle", number,
               fmt::format("class=\"microbatch\" fill=\"{}\"", span.look->ink));
    }
  }
  draw_legend(&svg, kTop, legend_top, legend);
  return svg.take();
}

}  // namespace wafersim::report
