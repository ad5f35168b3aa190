#include "workloads/region_map.h"

#include <algorithm>

namespace wafersim::workloads {

bool Held::add(const Held& other) {
  if (total != other.total || version != other.version) return false;
  std::vector<Range> all = terms;
  all.insert(all.end(), other.terms.begin(), other.terms.end());
  std::sort(all.begin(), all.end(), [](const Range& a, const Range& b) { return a.first < b.first; });
  std::vector<Range> joined;
  for (const Range& each : all) {
    if (each.count == 0) continue;
    if (joined.empty() || joined.back().end() < each.first) {
      joined.push_back(each);
    } else if (joined.back().end() == each.first) {
      joined.back().count += each.count;
    } else {
      return false;
    }
  }
  terms = std::move(joined);
  return true;
}

Region intersection(const Region& a, const Region& b) {
  const std::uint64_t row = std::max(a.row, b.row), col = std::max(a.col, b.col);
  return {row, std::min(a.row_end(), b.row_end()) - row, col, std::min(a.col_end(), b.col_end()) - col};
}

std::vector<Region> without(const Region& from, const Region& cut) {
  if (!overlap(from, cut)) return {from};
  const Region both = intersection(from, cut);
  std::vector<Region> rest;
  const auto add = [&](const Region& region) {
    if (region.area() > 0) rest.push_back(region);
  };
  add({from.row, both.row - from.row, from.col, from.cols});
  add({both.row_end(), from.row_end() - both.row_end(), from.col, from.cols});
  add({both.row, both.rows, from.col, both.col - from.col});
  add({both.row, both.rows, both.col_end(), from.col_end() - both.col_end()});
  return rest;
}

void RegionMap::erase(const Region& region) {
  std::vector<Cell> kept;
  kept.reserve(cells_.size());
  for (Cell& cell : cells_) {
    if (!overlap(cell.region, region)) {
      kept.push_back(std::move(cell));
      continue;
    }
    for (const Region& rest : without(cell.region, region)) kept.push_back({rest, cell.held});
  }
  cells_ = std::move(kept);
}

void RegionMap::replace(const Region& region, const Held& held) {
  if (region.area() == 0) return;
  erase(region);
  cells_.push_back({region, held});
}

bool RegionMap::add(const Region& region, const Held& held) {
  const std::vector<Cell> there = clip(region);
  std::vector<Region> empty{region};
  bool disjoint = true;
  for (Cell cell : there) {
    disjoint = cell.held.add(held) && disjoint;
    replace(cell.region, cell.held);
    std::vector<Region> left;
    for (const Region& each : empty) {
      for (const Region& rest : without(each, cell.region)) left.push_back(rest);
    }
    empty = std::move(left);
  }
  for (const Region& each : empty) replace(each, held);
  return disjoint;
}

std::vector<Cell> RegionMap::clip(const Region& region) const {
  std::vector<Cell> result;
  for (const Cell& cell : cells_) {
    if (overlap(cell.region, region)) result.push_back({intersection(cell.region, region), cell.held});
  }
  return result;
}

}  // namespace wafersim::workloads
