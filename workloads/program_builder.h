#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "workloads/trace.h"

namespace wafersim::workloads {

/// Puts the steps of one tile in order and says what each waits for:
/// foreground steps run one after the other; a gradient sync waits for the backward or weight step before it; the
/// optimizer for the last of them and every gradient sync; a parameter gather for the optimizer. The first
/// use of a layer's weights in the next iteration waits for their gather. Steps open in order, so a
/// background step waits for nothing that is not ready when the foreground gets there.
class ProgramBuilder {
 public:
  void start_iteration(int iteration);
  /// `buckets`: of the weights that the step uses. `more`: steps that it waits for besides.
  void foreground(Step step, const std::vector<std::int32_t>& buckets, const std::vector<std::uint32_t>& more = {});
  /// Returns its index.
  std::uint32_t gradient_sync(Step step);
  /// Waits for everything before it; comes last before the optimizer.
  void tied_gradient_sync(Step step);
  void optimizer(Step step);
  void parameter_gather(Step step);
  /// A gather for a step that is still to come, which has to wait for it: starts with the next foreground step.
  std::uint32_t prefetch(Step step);
  /// The builder is empty afterwards.
  Program finish();

 private:
  void wait_for(const std::vector<std::uint32_t>& steps);
  void wait_for_gathers(const std::vector<std::int32_t>& buckets);
  /// Adds a step that waits for what wait_for() has been called for since the step before.
  std::uint32_t add(Step step);

  Program program_;
  std::int16_t iteration_ = 0;
  std::vector<std::uint32_t> last_foreground_;     ///< none or one
  std::vector<std::uint32_t> syncs_;               ///< of this iteration
  std::map<std::int32_t, std::uint32_t> gathers_;  ///< of the iteration before, by bucket, not waited for yet
};

}  // namespace wafersim::workloads
