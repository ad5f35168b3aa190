#pragma once

#include <bit>
#include <utility>
#include <vector>

#include "base/units.h"

namespace wafersim::sim {

/// Items on their way for a known number of cycles. A slot keeps its memory when it is emptied.
template <class T>
class DelayLine {
 public:
  /// Items arrive at most `horizon` cycles after the current one.
  explicit DelayLine(Cycle horizon) : slots_(std::bit_ceil(horizon + 1)), mask_(slots_.size() - 1) {}

  std::vector<T>& slot(Cycle at) { return slots_[at & mask_]; }
  const std::vector<T>& slot(Cycle at) const { return slots_[at & mask_]; }
  Cycle horizon() const { return mask_; }

 private:
  std::vector<std::vector<T>> slots_;
  Cycle mask_;
};

}  // namespace wafersim::sim
