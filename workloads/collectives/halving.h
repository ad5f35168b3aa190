#pragma once

#include <bit>
#include <optional>
#include <vector>

#include "workloads/collectives/piece.h"

namespace wafersim::workloads::collectives {

/// Recursive halving as one member sees it. The members are the first power of two in row-major order of the shape; of
/// n members n - 2^k stand aside: of the first 2 (n - 2^k) the first of each two neighbours, for which the second answers.
/// In step i a member exchanges with the one whose number differs in bit i, and keeps the shards of those that agree with
/// it in the bits 0..i: neighbours in a row come first, and with the largest part of the vector.
class HalvingView {
 public:
  explicit HalvingView(const Group& group);

  /// The member that answers for this one, if it stands aside; none of steps() is its own then.
  const std::optional<int>& stands_aside_for() const { return stands_aside_for_; }
  const std::optional<int>& answers_for() const { return answers_for_; }
  int steps() const { return static_cast<int>(std::bit_width(core_)) - 1; }
  int partner(int step) const { return owned_[index_ ^ (1U << step)].front(); }
  /// The shards that this member has after a step, and those that its partner has.
  Shards shards(int step) const { return owned_by_those_like(index_, step + 1); }
  Shards partners_shards(int step) const { return owned_by_those_like(index_ ^ (1U << step), step + 1); }
  Shards all_but(int rank) const;

 private:
  Shards owned_by_those_like(unsigned member, int bits) const;

  int size_;
  unsigned core_;                          ///< 2^k
  std::vector<std::vector<int>> owned_{};  ///< shards by number, the member's own first
  unsigned index_ = 0;
  std::optional<int> stands_aside_for_{};
  std::optional<int> answers_for_{};
};

}  // namespace wafersim::workloads::collectives
