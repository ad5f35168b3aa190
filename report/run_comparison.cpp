#include "report/run_comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>

#include "base/text.h"
#include "models/energy.h"
#include "report/run_tables.h"
#include "report/terminal_canvas.h"
#include "workloads/plan.h"

namespace wafersim::report {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

/// How a measure is written, and how it differs: fractions by percentage points, all else in percent.
enum class Unit { seconds, count, bytes, fraction, joules, watts };

struct Row {
  std::string title;
  Json::json_pointer path;
  Unit unit;
  bool only_if_any = false;  ///< left out when it is zero in all runs
};

std::vector<Row> rows_of() {
  const auto at = [](const char* path) { return Json::json_pointer(path); };
  std::vector<Row> rows = {{"iteration", at("/iteration_seconds"), Unit::seconds},
                           {"cycles", at("/cycles"), Unit::count},
                           {"tokens per second", at("/tokens_per_second"), Unit::count},
                           {"MFU", at("/mfu"), Unit::fraction},
                           {"HFU", at("/hfu"), Unit::fraction},
                           {"tiles used", at("/tiles_used"), Unit::count},
                           {"compute", at("/breakdown/compute"), Unit::fraction}};
  for (std::size_t i = 0; i < workloads::kAxes; ++i) {
    const std::string axis = workloads::to_string(static_cast<workloads::Axis>(i));
    rows.push_back({"exposed " + axis, Json::json_pointer("/breakdown/exposed_communication/" + axis), Unit::fraction, true});
  }
  const std::vector<Row> rest = {{"bubble", at("/breakdown/bubble"), Unit::fraction, true},
                                 {"memory stall", at("/breakdown/memory_stall"), Unit::fraction, true},
                                 {"idle", at("/breakdown/idle"), Unit::fraction, true},
                                 {"hidden communication", at("/hidden_communication"), Unit::fraction},
                                 {"peak memory of a tile", at("/memory/peak_bytes"), Unit::bytes},
                                 {"capacity of a tile", at("/memory/capacity_bytes"), Unit::bytes},
                                 {"busiest link", at("/network/max_link_utilization"), Unit::fraction},
                                 {"mean of all links", at("/network/mean_link_utilization"), Unit::fraction},
                                 {"messages", at("/network/messages"), Unit::count},
                                 {"packet-hops", at("/network/packet_hops"), Unit::count},
                                 {"energy", at("/energy/total_joules"), Unit::joules, true},
                                 {"mean power", at("/energy/average_watts"), Unit::watts, true},
                                 {"energy of a token", at("/energy/joules_per_token"), Unit::joules, true}};
  rows.insert(rows.end(), rest.begin(), rest.end());
  for (std::size_t i = 0; i < models::kEnergyParts; ++i) {
    const std::string part = models::to_string(static_cast<models::EnergyPart>(i));
    rows.push_back({"energy, " + part, Json::json_pointer("/energy/by_part/" + part), Unit::joules, true});
  }
  return rows;
}

/// A summary with its mean iteration in seconds beside the rest.
Json parsed(const FinishedRun& run) {
  Json summary = run.summary;
  const Json& cycles = summary.at("iterations").at("mean_cycles");
  const double all = summary.at("cycles").get<double>();
  summary["iteration_seconds"] =
      cycles.is_null() || all == 0 ? Json(nullptr) : Json(summary.at("seconds").get<double>() * cycles.get<double>() / all);
  return summary;
}

std::vector<Json> parsed(const std::vector<FinishedRun>& runs) {
  std::vector<Json> summaries;
  for (const FinishedRun& run : runs) summaries.push_back(parsed(run));
  return summaries;
}

std::optional<double> number_at(const Json& summary, const Json::json_pointer& path) {
  if (!summary.contains(path) || !summary.at(path).is_number()) return std::nullopt;
  return summary.at(path).get<double>();
}

std::string value_text(double value, Unit unit) {
  switch (unit) {
    case Unit::seconds:
      return human_seconds(value);
    case Unit::bytes:
      return human_bytes(static_cast<Bytes>(value));
    case Unit::fraction:
      return percent(value);
    case Unit::joules:
      return human_unit(value, "J");
    case Unit::watts:
      return human_unit(value, "W");
    case Unit::count:
      break;
  }
  return human_count(static_cast<std::uint64_t>(std::llround(value)));
}

/// "(+3.1 %)", "(-0.4 points)"; nothing where the two are equal or there is no difference to speak of.
std::string difference_text(double value, double base, Unit unit) {
  if (value == base) return {};
  if (unit == Unit::fraction) {
    const double points = 100 * (value - base);
    return std::abs(points) < 0.05 ? std::string("(<0.1 points)") : fmt::format("({:+.1f} points)", points);
  }
  if (base == 0) return {};
  const double change = 100 * (value / base - 1);
  return std::abs(change) < 0.05 ? std::string("(<0.1 %)") : fmt::format("({:+.1f} %)", change);
}

/// Dotted keys of a scenario and what they hold.
void flatten(const Json& block, const std::string& prefix, std::vector<std::pair<std::string, std::string>>& out) {
  for (const auto& [key, value] : block.items()) {
    if (value.is_object()) {
      flatten(value, prefix + key + ".", out);
    } else {
      out.emplace_back(prefix + key, value.is_string() ? value.get<std::string>() : value.dump());
    }
  }
}

using Line = std::vector<std::optional<std::string>>;

/// Keys of the scenarios that are not the same in all, in the order in which they first appear.
std::vector<std::pair<std::string, Line>> differing_keys(const std::vector<Json>& summaries) {
  std::vector<std::pair<std::string, Line>> keys;
  for (std::size_t run = 0; run < summaries.size(); ++run) {
    std::vector<std::pair<std::string, std::string>> own;
    flatten(summaries[run].at("scenario"), "", own);
    for (const auto& [key, value] : own) {
      auto found = std::find_if(keys.begin(), keys.end(), [&, name = key](const auto& known) { return known.first == name; });
      if (found == keys.end()) found = keys.insert(keys.end(), {key, Line(summaries.size())});
      found->second[run] = value;
    }
  }
  std::erase_if(keys, [](const auto& key) {
    return std::all_of(key.second.begin(), key.second.end(), [&](const auto& value) { return value == key.second.front(); });
  });
  return keys;
}

/// Columns of text, the first aligned to the left, the others to the right or, for words, to the left.
void draw_table(Canvas& canvas, const std::vector<std::vector<std::string>>& table, bool words) {
  std::vector<std::size_t> widths(table.front().size(), 0);
  for (const auto& row : table) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  for (std::size_t number = 0; number < table.size(); ++number) {
    std::string line;
    for (std::size_t i = 0; i < table[number].size(); ++i) {
      const std::string& cell = table[number][i];
      line += i == 0 || words ? fmt::format("  {:<{}}", cell, widths[i]) : fmt::format("  {:>{}}", cell, widths[i]);
    }
    line.resize(line.find_last_not_of(' ') + 1);
    canvas.line(number == 0 ? canvas.paint(Ink::dim, line) : line);
  }
}

std::vector<std::string> header_line(const char* title, const std::vector<FinishedRun>& runs) {
  std::vector<std::string> line{title};
  for (const FinishedRun& run : runs) line.push_back(run.label);
  return line;
}

/// A measure of each run, as it is written, with its difference to the first run's.
struct MeasureRow {
  struct Cell {
    std::string text;
    std::string difference;
  };
  std::string title;
  std::vector<Cell> cells;
};

std::vector<MeasureRow> measure_rows(const std::vector<Json>& summaries) {
  std::vector<MeasureRow> rows;
  for (const Row& row : rows_of()) {
    const std::optional<double> base = number_at(summaries.front(), row.path);
    MeasureRow shown{row.title, {}};
    bool any = false;
    for (std::size_t i = 0; i < summaries.size(); ++i) {
      const std::optional<double> value = number_at(summaries[i], row.path);
      any = any || value.value_or(0) != 0;
      shown.cells.push_back({value ? value_text(*value, row.unit) : "-",
                             i > 0 && value && base ? difference_text(*value, *base, row.unit) : std::string()});
    }
    if (any || !row.only_if_any) rows.push_back(std::move(shown));
  }
  return rows;
}

void draw_measures(Canvas& canvas, const std::vector<FinishedRun>& runs, const std::vector<Json>& summaries) {
  std::vector<std::vector<std::string>> table{header_line("measure", runs)};
  for (const MeasureRow& row : measure_rows(summaries)) {
    std::vector<std::string> line{row.title};
    for (const MeasureRow::Cell& cell : row.cells) {
      line.push_back(cell.difference.empty() ? cell.text : cell.text + " " + cell.difference);
    }
    table.push_back(std::move(line));
  }
  draw_table(canvas, table, false);
}

/// The last `parts` parts of a path.
std::string end_of(const fs::path& path, std::size_t parts) {
  fs::path end;
  fs::path rest = path;
  for (std::size_t i = 0; i < parts && !rest.filename().empty(); ++i) {
    end = end.empty() ? rest.filename() : rest.filename() / end;
    rest = rest.parent_path();
  }
  return end.string();
}

std::vector<std::string> labels_of(const std::vector<fs::path>& directories) {
  std::vector<fs::path> paths;
  std::size_t longest = 1;
  for (const fs::path& directory : directories) {
    fs::path path = fs::absolute(directory).lexically_normal();
    if (path.filename().empty()) path = path.parent_path();
    longest = std::max<std::size_t>(longest, static_cast<std::size_t>(std::distance(path.begin(), path.end())));
    paths.push_back(std::move(path));
  }
  std::vector<std::string> labels;
  for (std::size_t parts = 1; parts <= longest; ++parts) {
    labels.clear();
    for (const fs::path& path : paths) labels.push_back(end_of(path, parts));
    if (std::set<std::string>(labels.begin(), labels.end()).size() == labels.size()) break;
  }
  return labels;
}

}  // namespace

std::vector<FinishedRun> load_runs(const std::vector<fs::path>& directories) {
  const std::vector<std::string> labels = labels_of(directories);
  std::vector<FinishedRun> runs;
  for (std::size_t i = 0; i < directories.size(); ++i) runs.push_back({labels[i], read_summary(directories[i])});
  return runs;
}

std::string comparison_text(const std::vector<FinishedRun>& runs, const TerminalStyle& style) {
  const std::vector<Json> summaries = parsed(runs);
  Canvas canvas(style);
  draw_measures(canvas, runs, summaries);
  for (std::size_t i = 0; i < runs.size(); ++i) {
    if (!summaries[i].at("partial").get<bool>()) continue;
    canvas.line(canvas.paint(Ink::warning, fmt::format("{} is partial: stopped by {}", runs[i].label,
                                                       summaries[i].at("stopped_by").get<std::string>())));
  }
  const auto keys = differing_keys(summaries);
  canvas.section(keys.empty() ? "The scenarios are the same" : "Keys that differ");
  if (keys.empty()) return canvas.take();
  std::vector<std::vector<std::string>> table{header_line("key", runs)};
  for (const auto& [key, values] : keys) {
    std::vector<std::string> line{key};
    for (const auto& value : values) line.push_back(value.value_or("-"));
    table.push_back(std::move(line));
  }
  draw_table(canvas, table, true);
  return canvas.take();
}

std::string comparison_json(const std::vector<FinishedRun>& runs) {
  const std::vector<Json> summaries = parsed(runs);
  Json json;
  json["runs"] = Json::array();
  for (const FinishedRun& run : runs) json["runs"].push_back(run.label);
  json["measures"] = Json::object();
  for (const Row& row : rows_of()) {
    Json values = Json::array();
    for (const Json& summary : summaries) {
      const std::optional<double> value = number_at(summary, row.path);
      values.push_back(value ? summary.at(row.path) : Json(nullptr));
    }
    std::string name = row.path.to_string().substr(1);
    std::replace(name.begin(), name.end(), '/', '.');
    json["measures"][name] = std::move(values);
  }
  json["keys"] = Json::object();
  for (const auto& [key, values] : differing_keys(summaries)) {
    Json list = Json::array();
    for (const auto& value : values) list.push_back(value ? Json(*value) : Json(nullptr));
    json["keys"][key] = std::move(list);
  }
  return json.dump(2) + "\n";
}

nlohmann::ordered_json comparison_part(const std::vector<FinishedRun>& runs) {
  const std::vector<Json> summaries = parsed(runs);
  Json part = {{"labels", Json::array()}, {"measures", Json::array()}, {"keys", Json::array()}};
  for (const FinishedRun& run : runs) part["labels"].push_back(run.label);
  for (const MeasureRow& row : measure_rows(summaries)) {
    Json values = Json::array();
    for (const MeasureRow::Cell& cell : row.cells) values.push_back({{"text", cell.text}, {"difference", cell.difference}});
    part["measures"].push_back({{"title", row.title}, {"values", std::move(values)}});
  }
  for (const auto& [key, values] : differing_keys(summaries)) {
    Json list = Json::array();
    for (const auto& value : values) list.push_back(value ? Json(*value) : Json(nullptr));
    part["keys"].push_back({{"key", key}, {"values", std::move(list)}});
  }
  return part;
}

}  // namespace wafersim::report
