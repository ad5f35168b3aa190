#include "report/study_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/text.h"
#include "report/csv_row.h"
#include "report/text_table.h"

namespace wafersim::report {
namespace {

constexpr std::size_t kShown = 10;

using Measures = std::map<std::string, double>;

Measures measures_by_name(const PointRow& row) {
  Measures measures;
  if (row.result.empty()) return measures;
  for (const auto& [name, value] : measures_of(row.result)) measures[name] = value;
  return measures;
}

std::string value_of(const PointRow& row, const std::string& key) {
  for (const auto& [name, value] : row.settings) {
    if (name == key) return value;
  }
  return {};
}

std::set<std::string> keys_of(const std::vector<PointRow>& rows) {
  std::set<std::string> keys;
  for (const PointRow& row : rows) {
    for (const auto& [key, value] : row.settings) keys.insert(key);
  }
  return keys;
}

/// A column of the terminal's table: a measure and how it is written.
struct Column {
  const char* title;
  const char* measure;
  std::string (*text)(double value);
};

const std::vector<Column> kRunColumns = {
    {"seconds", "seconds", [](double value) { return human_seconds(value); }},
    {"MFU", "mfu", [](double value) { return fmt::format("{:.1f} %", 100 * value); }},
    {"exposed", "communication_share", [](double value) { return fmt::format("{:.1f} %", 100 * value); }},
    {"peak memory", "memory.peak_bytes", [](double value) { return human_bytes(static_cast<Bytes>(value)); }},
};
const std::vector<Column> kTrafficColumns = {
    {"offered", "offered_load", [](double value) { return fmt::format("{:.4f}", value); }},
    {"accepted", "accepted_load", [](double value) { return fmt::format("{:.4f}", value); }},
    {"mean latency", "mean_packet_latency", [](double value) { return fmt::format("{:.2f}", value); }},
    {"stable", "stable", [](double value) { return std::string(value != 0 ? "yes" : "no"); }},
};

struct Finished {
  const PointRow* row;
  Measures measures;
};

std::string table_of(const std::vector<Finished>& points, const std::set<std::string>& keys,
                     const std::vector<Column>& columns) {
  Table table(1);
  table[0].emplace_back("point");
  table[0].insert(table[0].end(), keys.begin(), keys.end());
  for (const Column& column : columns) table[0].emplace_back(column.title);
  for (std::size_t i = 0; i < std::min(points.size(), kShown); ++i) {
    std::vector<std::string> line{std::to_string(points[i].row->number)};
    for (const std::string& key : keys) line.push_back(value_of(*points[i].row, key));
    for (const Column& column : columns) {
      const auto found = points[i].measures.find(column.measure);
      line.push_back(found == points[i].measures.end() ? "-" : column.text(found->second));
    }
    table.push_back(std::move(line));
  }
  return aligned(table, table.front().size());
}

/// The first line of each message and how many points failed with it; most first.
std::string failures_of(const std::vector<PointRow>& rows) {
  std::map<std::string, std::pair<std::size_t, std::uint64_t>> counts;
  for (const PointRow& row : rows) {
    if (row.status != "failed") continue;
    auto& [count, first] = counts[row.message.substr(0, row.message.find('\n'))];
    if (count++ == 0) first = row.number;
  }
  std::vector<std::pair<std::size_t, std::string>> lines;
  for (const auto& [message, seen] : counts) {
    const auto& [count, first] = seen;
    lines.emplace_back(count, count == 1 ? fmt::format("  point {}: {}\n", first, message)
                                         : fmt::format("  {} points, the first is {}: {}\n", count, first, message));
  }
  std::stable_sort(lines.begin(), lines.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  std::string text;
  for (std::size_t i = 0; i < std::min(lines.size(), kShown); ++i) text += lines[i].second;
  if (lines.size() > kShown) text += fmt::format("  and {} other messages\n", lines.size() - kShown);
  return text;
}

}  // namespace

std::string study_csv(const std::vector<PointRow>& rows) {
  const std::set<std::string> keys = keys_of(rows);
  std::vector<Measures> measures;
  std::set<std::string> names;
  for (const PointRow& row : rows) {
    measures.push_back(measures_by_name(row));
    for (const auto& [name, value] : measures.back()) names.insert(name);
  }
  std::string text = "point,status";
  for (const std::string& key : keys) text += fmt::format(",{}", csv_cell(key));
  for (const std::string& name : names) text += fmt::format(",{}", csv_cell(name));
  text += ",message\n";
  for (std::size_t i = 0; i < rows.size(); ++i) {
    text += fmt::format("{},{}", rows[i].number, rows[i].status);
    for (const std::string& key : keys) text += fmt::format(",{}", csv_cell(value_of(rows[i], key)));
    for (const std::string& name : names) {
      const auto found = measures[i].find(name);
      text += found == measures[i].end() ? "," : fmt::format(",{}", found->second);
    }
    text += fmt::format(",{}", csv_cell(rows[i].message)) + '\n';
  }
  return text;
}

std::string study_text(const StudyHeader& header, const std::vector<PointRow>& rows) {
  const bool traffic = header.command == "traffic";
  std::vector<Finished> points;
  std::size_t failed = 0;
  for (const PointRow& row : rows) {
    if (row.status == "done") points.push_back({&row, measures_by_name(row)});
    if (row.status == "failed") ++failed;
  }
  std::string text = fmt::format("{}: {} of {} points done", header.name, points.size(), rows.size());
  if (failed != 0) text += fmt::format(", {} failed", failed);
  text += "\n";
  if (!traffic) {
    const auto speed = [](const Finished& point) {
      const auto found = point.measures.find("tokens_per_second");
      return found == point.measures.end() ? 0.0 : found->second;
    };
    std::stable_sort(points.begin(), points.end(),
                     [&](const Finished& a, const Finished& b) { return speed(a) > speed(b); });
  }
  if (!points.empty()) {
    if (points.size() > kShown) text += traffic ? "The first ten:\n" : "The ten with most tokens per second:\n";
    text += fmt::format("\n{}\n", table_of(points, keys_of(rows), traffic ? kTrafficColumns : kRunColumns));
  }
  if (failed != 0) text += fmt::format("Failed:\n{}\n", failures_of(rows));
  return text;
}

}  // namespace wafersim::report
