#pragma once

#include <cstdint>
#include <vector>

#include "workloads/shard.h"

namespace wafersim::workloads {

/// What is known of the values in a region of a tensor.
struct Held {
  std::vector<Range> terms;  ///< which addends of a sum are in, ascending, disjoint and not touching
  std::uint64_t total = 1;   ///< of how many
  std::int32_t version = 0;  ///< of parameters: updates so far
  bool complete() const { return terms.size() == 1 && terms.front() == Range{0, total}; }
  /// False, and unchanged, when an addend is in already or the sums are not the same.
  bool add(const Held& other);
  bool operator==(const Held&) const = default;
};

struct Cell {
  Region region;
  Held held;
};

/// The regions of one tensor that a tile has, as disjoint cells.
class RegionMap {
 public:
  bool empty() const { return cells_.empty(); }
  const std::vector<Cell>& cells() const { return cells_; }
  void erase(const Region& region);
  void replace(const Region& region, const Held& held);
  /// Adds addends to what is there and puts them where there is nothing. False when an addend is in already.
  bool add(const Region& region, const Held& held);
  /// The cells inside a region, cut to it. Together they have the region's area when all of it is there.
  std::vector<Cell> clip(const Region& region) const;

 private:
  std::vector<Cell> cells_;
};

/// The part that both have; they must overlap.
Region intersection(const Region& a, const Region& b);
/// `from` without `cut`: at most four rectangles.
std::vector<Region> without(const Region& from, const Region& cut);

}  // namespace wafersim::workloads
