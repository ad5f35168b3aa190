#pragma once

#include <cmath>
#include <vector>

#include "tests/workloads/numeric/kernel_call.h"

namespace wafersim::workloads::numeric {

/// Where heads stand among the columns of q, k and v, and among those of the scores, which have one for each
/// query head.
struct Heads {
  explicit Heads(const models::TransformerSpec& model)
      : d(static_cast<std::uint64_t>(model.head_dim)),
        q{0, static_cast<std::uint64_t>(model.q_width())},
        k{q.end(), static_cast<std::uint64_t>(model.kv_width())},
        v{k.end(), k.count},
        group(static_cast<std::uint64_t>(model.heads / model.kv_heads)),
        keys(static_cast<std::uint64_t>(model.sequence)) {}
  /// Of the key, or value, that query head `head` attends to.
  std::uint64_t key_column(std::uint64_t head) const { return k.first + head / group * d; }
  std::uint64_t value_column(std::uint64_t head) const { return v.first + head / group * d; }
  double scale() const { return 1 / std::sqrt(static_cast<double>(d)); }

  std::uint64_t d;
  Range q, k, v;
  std::uint64_t group;
  std::uint64_t keys;
};

/// The columns of one head in one row of a panel.
inline std::vector<std::size_t> places(const Panel& panel, std::uint64_t first, std::uint64_t count) {
  std::vector<std::size_t> result;
  for (std::uint64_t i = 0; i < count; ++i) result.push_back(panel.cols.at(first + i));
  return result;
}

}  // namespace wafersim::workloads::numeric
