#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>

#include "base/error.h"
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
    const auto known = numbers_.find(word);
    if (known != numbers_.end()) return known->second;
    words_.push_back(word);
    return numbers_.emplace(word, words_.size() - 1).first->second;
  }
  const Json& words() const { return words_; }

 private:
  std::map<std::string, std::size_t, std::less<>> numbers_;
  Json words_ = Json::array();
};

/// What `find` makes of each row's cell of a column; rows with the same text mostly follow each other.
template <class Find>
std::vector<std::size_t> found_in(const CsvTable& table, std::string_view name, const Find& find) {
  const std::size_t column = table.column(name);
  std::vector<std::size_t> found;
  found.reserve(table.rows());
  std::string_view last;
  for (std::size_t row = 0; row < table.rows(); ++row) {
    const std::string_view text = table.text(row, column);
    found.push_back(row != 0 && text == last ? found.back() : find(text));
    last = text;
  }
  return found;
}

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
          {"bytes", std::move(bytes)}};
}

/// The windows of a run, as many of them put together as the page has room for.
class WindowCut {
 public:
  explicit WindowCut(const RunTables& run)
      : cycles_(run.summary.at("cycles").get<std::uint64_t>()),
        length_(std::max<std::uint64_t>(run.tile_windows->whole(0, run.tile_windows->column("window_cycles")),
                                        1)) {}

  void widen_for(std::size_t columns) {
    while (count() > 8 && count() * columns > kMostWindowBytes) length_ *= 2;
  }
  std::size_t count() const { return static_cast<std::size_t>((cycles_ + length_ - 1) / length_); }
  std::uint64_t length() const { return length_; }
  double cycles_of(std::size_t window) const {
    return static_cast<double>(std::min(length_, cycles_ - window * length_));
  }

 private:
  std::uint64_t cycles_;
  std::uint64_t length_;
};

/// Values by item and window, the windows of each item side by side.
using Grid = std::vector<double>;

/// Where the values of each row of a table belong, whose items are known by row.
std::vector<std::size_t> places_in_grid(const CsvTable& table, const std::vector<std::size_t>& items, const WindowCut& cut) {
  const std::size_t start = table.column("start_cycle");
  std::vector<std::size_t> places;
  places.reserve(table.rows());
  for (std::size_t row = 0; row < table.rows(); ++row) {
    const std::uint64_t window = table.whole(row, start) / cut.length();
    if (window >= cut.count()) {
      throw IoError(fmt::format("cannot use {}:{}: start_cycle is not within the run", table.path().string(), row + 2));
    }
    places.push_back(items[row] * cut.count() + window);
  }
  return places;
}

/// A column of a table, of which each row belongs to a place.
Grid summed(const CsvTable& table, std::string_view name, const std::vector<std::size_t>& places, std::size_t size) {
  const std::size_t column = table.column(name);
  Grid grid(size);
  for (std::size_t row = 0; row < table.rows(); ++row) grid[places[row]] += static_cast<double>(table.whole(row, column));
  return grid;
}

std::string shares(const Grid& grid, const WindowCut& cut) {
  std::vector<std::uint8_t> bytes;
  bytes.reserve(grid.size());
  while (bytes.size() < grid.size()) {
    for (std::size_t window = 0; window < cut.count(); ++window) {
      bytes.push_back(in_255ths(grid[bytes.size()], cut.cycles_of(window)));
    }
  }
  return base64(bytes);
}

Json tile_shares(const RunTables& run, const WindowCut& cut, const std::vector<std::string>& kinds) {
  const CsvTable& table = *run.tile_windows;
  const std::vector<std::size_t> tiles = found_in(table, "tile", [&](std::string_view name) { return run.tile_row(name); });
  const std::vector<std::size_t> places = places_in_grid(table, tiles, cut);
  Json part = Json::object();
  for (const std::string& kind : kinds) {
    part[kind] = shares(summed(table, kind + "_cycles", places, run.tiles.rows() * cut.count()), cut);
  }
  return part;
}

/// The links of link_windows.csv.
struct WindowLinks {
  std::vector<std::size_t> rows;   ///< of links.csv, in order
  std::vector<std::size_t> items;  ///< of each row: the place of its link in `rows`
};

WindowLinks window_links(const RunTables& run) {
  WindowLinks links;
  links.items = found_in(*run.link_windows, "link", [&](std::string_view name) { return run.link_row(name); });
  std::vector<bool> shown(run.links.rows());
  for (const std::size_t row : links.items) shown[row] = true;
  std::vector<std::size_t> item_of(shown.size());
  for (std::size_t row = 0; row < shown.size(); ++row) {
    if (!shown[row]) continue;
    item_of[row] = links.rows.size();
    links.rows.push_back(row);
  }
  for (std::size_t& item : links.items) item = item_of[item];
  return links;
}

Json link_shares(const RunTables& run, const WindowCut& cut, const WindowLinks& links) {
  const CsvTable& table = *run.link_windows;
  const std::vector<std::size_t> places = places_in_grid(table, links.items, cut);
  const std::size_t size = links.rows.size() * cut.count();
  const Grid busy = summed(table, "busy_cycles", places, size), queue = summed(table, "queue_cycles", places, size);
  // Queues differ by orders of magnitude: square roots tell small ones apart.
  double most = 0;
  for (const double value : queue) most = std::max(most, value);
  std::vector<std::uint8_t> roots;
  roots.reserve(queue.size());
  for (const double value : queue) roots.push_back(in_255ths(std::sqrt(value), std::sqrt(most)));
  return {{"row", links.rows}, {"busy", shares(busy, cut)}, {"queue_root", base64(roots)}, {"queue_most", most}};
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
  return {{"shortest", shortest}, {"what", std::move(what)}, {"from", std::move(from)}, {"cycles", std::move(cycles)}};
}

}  // namespace

Json steps_part(const RunTables& run) {
  const CsvTable& steps = run.steps;
  const auto stages = run.summary.at("plan").at("pp").get<std::uint64_t>();
  const ShownSteps shown = shown_steps(steps, std::max<std::uint64_t>(stages, 1));
  const auto column = [&](const char* name, const auto& value) {
    const std::size_t at = steps.column(name);
    Json values = Json::array();
    for (const std::size_t row : shown.rows) values.push_back(value(row, at));
    return values;
  };
  const auto whole = [&](std::size_t row, std::size_t at) { return steps.whole(row, at); };
  const auto index = [&](std::size_t row, std::size_t at) { return steps.index(row, at); };
  Words kinds;
  Words passes;
  const auto word_of = [&](Words& words) {
    return [&](std::size_t row, std::size_t at) { return words.number(steps.text(row, at)); };
  };
  Json columns = {{"group", column("group", whole)},
                  {"stage", column("stage", whole)},
                  {"kind", column("kind", word_of(kinds))},
                  {"pass", column("pass", word_of(passes))},
                  {"layer", column("layer", index)},
                  {"microbatch", column("microbatch", index)},
                  {"start", column("start_cycle", whole)},
                  {"compute", column("compute_cycle", index)},
                  {"cycles", column("span_cycles", whole)}};
  return {{"all", steps.rows()},    {"replicas", shown.replicas}, {"whole_replica", shown.all_of_replica},
          {"kinds", kinds.words()}, {"passes", passes.words()},   {"columns", std::move(columns)}};
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
  for (const std::string& kind : cycle_kinds()) {
    if (is_used(*run.tile_windows, kind + "_cycles")) kinds.push_back(kind);
  }
  const WindowLinks links = window_links(run);
  WindowCut cut(run);
  cut.widen_for(run.tiles.rows() * kinds.size() + 2 * links.rows.size());
  return {{"length", cut.length()},
          {"count", cut.count()},
          {"tiles", tile_shares(run, cut, kinds)},
          {"links", link_shares(run, cut, links)}};
}

Json spans_part(const RunTables& run) {
  if (!run.spans) return nullptr;
  const CsvTable& table = *run.spans;
  const std::size_t what = table.column("what"), start = table.column("start_cycle"), end = table.column("end_cycle");
  const std::vector<std::size_t> places =
      found_in(table, "tile", [&](std::string_view name) { return run.tile_place(name); });
  Words words, lane_names;
  const std::vector<std::size_t> lane_of =
      found_in(table, "lane", [&](std::string_view name) { return lane_names.number(name); });
  std::map<std::uint64_t, std::map<std::size_t, std::vector<Span>>> tiles;
  std::vector<Span>* spans = nullptr;
  for (std::size_t row = 0; row < table.rows(); ++row) {
    if (row == 0 || places[row] != places[row - 1] || lane_of[row] != lane_of[row - 1]) {
      spans = &tiles[places[row]][lane_of[row]];
    }
    spans->push_back({words.number(table.text(row, what)), table.whole(row, start), table.whole(row, end)});
  }
  const std::size_t most = kMostSpans / std::max<std::size_t>(2 * tiles.size(), 1);
  Json part = Json::array();
  for (auto& [tile, lanes] : tiles) {
    part.push_back(
        {{"tile", tile},
         {"core", lane(std::move(lanes[lane_names.number("core")]), most)},
         {"messages", lane(std::move(lanes[lane_names.number("messages")]), most)}});
  }
  return {{"words", words.words()}, {"tiles", std::move(part)}};
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
