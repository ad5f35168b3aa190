#pragma once

#include <cstdint>
#include <map>
#include <unordered_map>
#include <vector>

#include "workloads/meaning.h"

namespace wafersim::workloads {

/// Which operations of a template read, write, carry or discard which parts of which tensors. Time of a search: the parts that
/// begin near the one that is asked for.
class UseIndex {
 public:
  void add(std::uint32_t op, const View& view);
  /// The operations with a use that overlaps one of the views, ascending.
  std::vector<std::uint32_t> users(const Views& views) const;
  void clear() { tensors_.clear(); }

 private:
  struct Use {
    std::uint32_t op = 0;
    Region region;
  };
  /// Of one matrix of a tensor.
  struct Matrix {
    std::int32_t layer = 0;
    bool absolute = false;
    std::uint64_t most_rows = 0;                       ///< of a region
    std::map<std::uint64_t, std::vector<Use>> by_row;  ///< by the first row of the region
  };

  std::unordered_map<std::uint32_t, std::vector<Matrix>> tensors_;
};

}  // namespace wafersim::workloads
