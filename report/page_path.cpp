// The part of the page that tells of the critical path: what critical_path.json says, and bars over time that
// the page can draw.
#include <algorithm>
#include <map>

#include "report/page_columns.h"

namespace wafersim::report {
namespace {

/// Bars on the page. Where a path has more segments, time is cut into so many slots, and a slot shows what
/// most of it went to.
constexpr std::uint64_t kMostBars = 3000;

struct Bar {
  std::uint64_t stage = 0;
  std::string kind;
  std::string axis;  ///< empty: none
  bool operator==(const Bar&) const = default;
  auto operator<=>(const Bar&) const = default;
};

struct Placed {
  Bar bar;
  std::uint64_t from = 0;
  std::uint64_t to = 0;
};

void append(std::vector<Placed>& bars, const Placed& next) {
  if (!bars.empty() && bars.back().bar == next.bar && bars.back().to == next.from) {
    bars.back().to = next.to;
  } else {
    bars.push_back(next);
  }
}

std::vector<Placed> bars_of(const Json& path) {
  const auto column = [&](const char* name) {
    const Json& columns = path.at("columns");
    return static_cast<std::size_t>(std::find(columns.begin(), columns.end(), name) - columns.begin());
  };
  const std::size_t from = column("from"), to = column("to"), kind = column("kind"), axis = column("axis"),
                    stage = column("stage");
  std::vector<Placed> bars;
  for (const Json& segment : path.at("segments")) {
    const Json& of_axis = segment.at(axis);
    append(bars, {{segment.at(stage).get<std::uint64_t>(), segment.at(kind).get<std::string>(),
                   of_axis.is_null() ? std::string() : of_axis.get<std::string>()},
                  segment.at(from).get<std::uint64_t>(),
                  segment.at(to).get<std::uint64_t>()});
  }
  return bars;
}

std::vector<Placed> in_slots(const std::vector<Placed>& bars, std::uint64_t cycles) {
  const std::uint64_t slot = cycles / kMostBars + 1;
  std::vector<Placed> shown;
  std::size_t first = 0;
  for (std::uint64_t start = 0; start < cycles; start += slot) {
    const std::uint64_t end = std::min(start + slot, cycles);
    std::map<Bar, std::uint64_t> shares;
    while (first < bars.size() && bars[first].to <= start) ++first;
    for (std::size_t i = first; i < bars.size() && bars[i].from < end; ++i) {
      shares[bars[i].bar] += std::min(end, bars[i].to) - std::max(start, bars[i].from);
    }
    const auto most = std::max_element(shares.begin(), shares.end(),
                                       [](const auto& a, const auto& b) { return a.second < b.second; });
    if (most != shares.end()) append(shown, {most->first, start, end});
  }
  return shown;
}

}  // namespace

Json path_part(const RunTables& run) {
  if (!run.critical_path) return nullptr;
  Json part = *run.critical_path;
  const auto cycles = part.at("cycles").get<std::uint64_t>();
  std::vector<Placed> bars = bars_of(part);
  part["segment_count"] = part.at("segments").size();
  part["in_slots"] = bars.size() > kMostBars;
  if (bars.size() > kMostBars) bars = in_slots(bars, cycles);
  Json rows = Json::array();
  for (const Placed& placed : bars)
    rows.push_back({placed.bar.stage, placed.bar.kind, placed.bar.axis, placed.from, placed.to});
  part.erase("segments");
  part.erase("columns");
  part["bars"] = std::move(rows);
  return part;
}

}  // namespace wafersim::report
