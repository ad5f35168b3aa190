#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "report/packed.h"
#include "report/page_columns.h"
#include "workloads/plan.h"

namespace wafersim::report {
namespace {

/// How much of each the page takes: what a browser draws at once.
constexpr std::size_t kMostSteps = 16'000;
constexpr std::size_t kMostMemoryRows = 800;
constexpr std::size_t kMostWindowBytes = 4'000'000;
constexpr std::size_t kMostSpans = 24'000;
constexpr std::size_t kMostBubbles = 16'000;

/// A word as its number in the order of first use.
class Words {
 public:
  std::size_t number(std::string_view word) {
    const auto [at, fresh] = numbers_.try_emplace(std::string(word), words_.size());
    if (fresh) words_.push_back(word);
    return at->second;
  }
  const Json& words() const { return words_; }

 private:
  std::map<std::string, std::size_t> numbers_;
  Json words_ = Json::array();
};

/// The rows of steps.csv that are drawn: those of as many whole replicas as fit, in any case of the first
/// one, and of that those which start first.
struct ShownSteps {
  std::vector<std::size_t> rows;
  std::int64_t replicas = 0;
  bool all_of_replica = true;
};

ShownSteps shown_steps(const CsvTable& steps, std::uint64_t stages) {
  const std::size_t group = steps.column("group");
  const std::size_t start = steps.column("start_cycle");
  std::map<std::uint64_t, std::vector<std::size_t>> by_replica;
  for (std::size_t row = 0; row < steps.rows(); ++row)
    by_replica[steps.whole(row, group) / stages].push_back(row);
  ShownSteps shown;
  for (const auto& [replica, rows] : by_replica) {
    if (shown.replicas > 0 && shown.rows.size() + rows.size() > kMostSteps) break;
    shown.rows.insert(shown.rows.end(), rows.begin(), rows.end());
    ++shown.replicas;
  }
  if (shown.rows.size() > kMostSteps) {
    shown.all_of_replica = false;
    std::stable_sort(shown.rows.begin(), shown.rows.end(), [&](std::size_t a, std::size_t b) {
      return steps.whole(a, start) < steps.whole(b, start);
    });
    shown.rows.resize(kMostSteps);
  }
  return shown;
}

/// Rows of one tile in memory.csv; of too many the fullest of each of equal stretches of time, and the last.
std::vector<std::size_t> thinned(const CsvTable& memory, std::size_t first, std::size_t end) {
  std::vector<std::size_t> rows;
  const std::size_t cycle = memory.column("cycle");
  const std::size_t total = memory.column("total_bytes");
  if (end - first <= kMostMemoryRows) {
    for (std::size_t row = first; row < end; ++row) rows.push_back(row);
    return rows;
  }
  const std::uint64_t stretch = memory.whole(end - 1, cycle) / kMostMemoryRows + 1;
  for (std::size_t row = first; row + 1 < end; ++row) {
    if (rows.empty() || memory.whole(row, cycle) / stretch != memory.whole(rows.back(), cycle) / stretch) {
      rows.push_back(row);
    } else if (memory.whole(row, total) > memory.whole(rows.back(), total)) {
      rows.back() = row;
    }
  }
  rows.push_back(end - 1);
  return rows;
}

Json memory_of_tile(const RunTables& run, std::size_t first, std::size_t end) {
  const CsvTable& memory = *run.memory;
  const std::vector<std::size_t> rows = thinned(memory, first, end);
  const auto values = [&](const std::string& name) {
    const std::size_t column = memory.column(name);
    Json array = Json::array();
    for (const std::size_t row : rows) array.push_back(memory.whole(row, column));
    return array;
  };
  Json bytes = Json::object();
  for (int i = 0; i < workloads::kMemoryClasses; ++i) {
    const std::string name = workloads::to_string(static_cast<workloads::MemoryClass>(i));
    bytes[name] = values(name + "_bytes");
  }
  return {{"tile", run.tile_place(memory.text(first, memory.column("tile")))},
          {"rows", end - first},
          {"cycle", values("cycle")},
          {"total", values("total_bytes")},
          {"bytes", bytes}};
}

/// Values by item and window, a row of windows for each item.
struct Grid {
  std::size_t windows;
  std::vector<double> values;
  Grid(std::size_t items, std::size_t windows_in) : windows(windows_in), values(items * windows_in) {}
  double& at(std::size_t item, std::size_t window) { return values[item * windows + window]; }
  bool used() const {
    return std::any_of(values.begin(), values.end(), [](double value) { return value != 0; });
  }
};

/// The windows of a run, as many of them put together as the page has room for.
class WindowCut {
 public:
  explicit WindowCut(const RunTables& run)
      : cycles_(run.summary.at("cycles").get<std::uint64_t>()),
        length_(std::max<std::uint64_t>(run.tile_windows->whole(0, run.tile_windows->column("window_cycles")),
                                        1)) {
    std::set<std::string_view> links;
    const CsvTable& table = *run.link_windows;
    const std::size_t link = table.column("link");
    for (std::size_t row = 0; row < table.rows(); ++row) links.insert(table.text(row, link));
    links_ = links.size();
  }

  void widen_for(std::size_t columns) {
    while (count() > 8 && count() * columns > kMostWindowBytes) length_ *= 2;
  }
  std::size_t links() const { return links_; }
  std::size_t count() const { return static_cast<std::size_t>((cycles_ + length_ - 1) / length_); }
  std::uint64_t length() const { return length_; }
  std::size_t of(std::uint64_t start) const { return static_cast<std::size_t>(start / length_); }
  double cycles_of(std::size_t window) const {
    return static_cast<double>(std::min(length_, cycles_ - window * length_));
  }

 private:
  std::uint64_t cycles_;
  std::uint64_t length_;
  std::size_t links_ = 0;
};

std::string shares(Grid& grid, const WindowCut& cut) {
  std::vector<std::uint8_t> bytes;
  for (std::size_t i = 0; i < grid.values.size(); ++i) {
    bytes.push_back(in_255ths(grid.values[i], cut.cycles_of(i % grid.windows)));
  }
  return base64(bytes);
}

Json tile_shares(const RunTables& run, const WindowCut& cut, const std::vector<std::string>& kinds) {
  const CsvTable& table = *run.tile_windows;
  const std::size_t tile = table.column("tile");
  const std::size_t start = table.column("start_cycle");
  Json part = Json::object();
  for (const std::string& kind : kinds) {
    const std::size_t column = table.column(kind + "_cycles");
    Grid grid(run.tiles.rows(), cut.count());
    for (std::size_t row = 0; row < table.rows(); ++row) {
      grid.at(run.tile_row(table.text(row, tile)), cut.of(table.whole(row, start))) +=
          static_cast<double>(table.whole(row, column));
    }
    part[kind] = shares(grid, cut);
  }
  return part;
}

Json link_shares(const RunTables& run, const WindowCut& cut) {
  const CsvTable& table = *run.link_windows;
  const std::size_t link = table.column("link");
  const std::size_t start = table.column("start_cycle");
  const std::size_t busy_column = table.column("busy_cycles");
  const std::size_t queue_column = table.column("queue_cycles");
  std::map<std::size_t, std::size_t> items;  // by row of links.csv
  for (std::size_t row = 0; row < table.rows(); ++row) items[run.link_row(table.text(row, link))];
  Json rows = Json::array();
  for (auto& [row, item] : items) {
    item = rows.size();
    rows.push_back(row);
  }
  Grid busy(items.size(), cut.count());
  Grid queue(items.size(), cut.count());
  for (std::size_t row = 0; row < table.rows(); ++row) {
    const std::size_t item = items.at(run.link_row(table.text(row, link)));
    const std::size_t window = cut.of(table.whole(row, start));
    busy.at(item, window) += static_cast<double>(table.whole(row, busy_column));
    queue.at(item, window) += static_cast<double>(table.whole(row, queue_column));
  }
  // Queues differ by orders of magnitude: square roots tell small ones apart.
  double most = 0;
  for (const double value : queue.values) most = std::max(most, value);
  std::vector<std::uint8_t> roots;
  for (const double value : queue.values) roots.push_back(in_255ths(std::sqrt(value), std::sqrt(most)));
  return {{"row", rows}, {"busy", shares(busy, cut)}, {"queue_root", base64(roots)}, {"queue_most", most}};
}

struct Span {
  std::size_t what;
  std::uint64_t from;
  std::uint64_t to;
};

/// Spans in order, those shorter than `shortest` as a part of the one before them.
std::vector<Span> coarser(const std::vector<Span>& spans, std::uint64_t shortest) {
  std::vector<Span> result;
  for (const Span& span : spans) {
    const bool joins = !result.empty() &&
                       (result.back().what == span.what || span.to - span.from < shortest) &&
                       span.from <= result.back().to + shortest && span.from >= result.back().from;
    if (joins) {
      result.back().to = std::max(result.back().to, span.to);
    } else {
      result.push_back(span);
    }
  }
  return result;
}

Json lane(std::vector<Span> spans, std::size_t most) {
  std::uint64_t shortest = 0;
  for (std::uint64_t each = 1; spans.size() > most; each *= 2) {
    spans = coarser(spans, each);
    shortest = each;
  }
  Json what = Json::array();
  Json from = Json::array();
  Json cycles = Json::array();
  for (const Span& span : spans) {
    what.push_back(span.what);
    from.push_back(span.from);
    cycles.push_back(span.to - span.from);
  }
  return {{"shortest", shortest}, {"what", what}, {"from", from}, {"cycles", cycles}};
}

}  // namespace

Json steps_part(const RunTables& run) {
  const CsvTable& steps = run.steps;
  const auto stages = run.summary.at("plan").at("pp").get<std::uint64_t>();
  const ShownSteps shown = shown_steps(steps, std::max<std::uint64_t>(stages, 1));
  Words kinds;
  Words passes;
  Json columns = {{"group", Json::array()}, {"stage", Json::array()},   {"kind", Json::array()},
                  {"pass", Json::array()},  {"layer", Json::array()},   {"microbatch", Json::array()},
                  {"start", Json::array()}, {"compute", Json::array()}, {"cycles", Json::array()}};
  for (const std::size_t row : shown.rows) {
    columns["group"].push_back(steps.whole(row, steps.column("group")));
    columns["stage"].push_back(steps.whole(row, steps.column("stage")));
    columns["kind"].push_back(kinds.number(steps.text(row, steps.column("kind"))));
    columns["pass"].push_back(passes.number(steps.text(row, steps.column("pass"))));
    columns["layer"].push_back(steps.index(row, steps.column("layer")));
    columns["microbatch"].push_back(steps.index(row, steps.column("microbatch")));
    columns["start"].push_back(steps.whole(row, steps.column("start_cycle")));
    columns["compute"].push_back(steps.index(row, steps.column("compute_cycle")));
    columns["cycles"].push_back(steps.whole(row, steps.column("span_cycles")));
  }
  return {{"all", steps.rows()},    {"replicas", shown.replicas}, {"whole_replica", shown.all_of_replica},
          {"kinds", kinds.words()}, {"passes", passes.words()},   {"columns", columns}};
}

Json memory_part(const RunTables& run) {
  if (!run.memory) return nullptr;
  const CsvTable& memory = *run.memory;
  const std::size_t tile = memory.column("tile");
  Json part = Json::array();
  std::size_t first = 0;
  for (std::size_t row = 0; row < memory.rows(); ++row) {
    if (row + 1 < memory.rows() && memory.text(row + 1, tile) == memory.text(first, tile)) continue;
    part.push_back(memory_of_tile(run, first, row + 1));
    first = row + 1;
  }
  return part;
}

Json windows_part(const RunTables& run) {
  if (!run.tile_windows || !run.link_windows || run.tile_windows->rows() == 0) return nullptr;
  std::vector<std::string> kinds;
  const Json used = used_columns(*run.tile_windows, cycle_kinds(), "", "_cycles");
  for (const auto& [kind, column] : used.items()) kinds.push_back(kind);
  WindowCut cut(run);
  cut.widen_for(run.tiles.rows() * kinds.size() + 2 * cut.links());
  return {{"length", cut.length()},
          {"count", cut.count()},
          {"tiles", tile_shares(run, cut, kinds)},
          {"links", link_shares(run, cut)}};
}

Json spans_part(const RunTables& run) {
  if (!run.spans) return nullptr;
  const CsvTable& table = *run.spans;
  Words words;
  std::map<std::uint64_t, std::map<std::string, std::vector<Span>>> tiles;
  for (std::size_t row = 0; row < table.rows(); ++row) {
    auto& lanes = tiles[run.tile_place(table.text(row, table.column("tile")))];
    lanes[std::string(table.text(row, table.column("lane")))].push_back(
        {words.number(table.text(row, table.column("what"))), table.whole(row, table.column("start_cycle")),
         table.whole(row, table.column("end_cycle"))});
  }
  const std::size_t most = kMostSpans / std::max<std::size_t>(2 * tiles.size(), 1);
  Json part = Json::array();
  for (auto& [tile, lanes] : tiles) {
    part.push_back(
        {{"tile", tile}, {"core", lane(lanes["core"], most)}, {"messages", lane(lanes["messages"], most)}});
  }
  return {{"words", words.words()}, {"tiles", part}};
}

/// Of too many the longest.
Json bubbles_part(const RunTables& run) {
  if (!run.bubbles) return nullptr;
  const CsvTable& table = *run.bubbles;
  const std::size_t start = table.column("start_cycle");
  const std::size_t end = table.column("end_cycle");
  const auto cycles = [&](std::size_t row) { return table.whole(row, end) - table.whole(row, start); };
  std::vector<std::size_t> rows(table.rows());
  for (std::size_t row = 0; row < rows.size(); ++row) rows[row] = row;
  std::stable_sort(rows.begin(), rows.end(),
                   [&](std::size_t a, std::size_t b) { return cycles(a) > cycles(b); });
  rows.resize(std::min(rows.size(), kMostBubbles));
  Json part = {{"group", Json::array()}, {"from", Json::array()}, {"cycles", Json::array()}};
  for (const std::size_t row : rows) {
    part["group"].push_back(table.whole(row, table.column("group")));
    part["from"].push_back(table.whole(row, start));
    part["cycles"].push_back(cycles(row));
  }
  return part;
}

}  // namespace wafersim::report
