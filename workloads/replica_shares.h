#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>
#include <utility>
#include <vector>

#include "workloads/program_builder.h"

/// When the steps of a program may run where replicas share out gradients (zero 2) and parameters (zero 3).
namespace wafersim::workloads {

/// Buffers for the gradients of one microbatch: a backward pass takes one for each bucket, the bucket's gradient_sync
/// gives it back. At most two syncs are under way while another bucket is filled.
class GradientBuffers {
 public:
  void add(std::int32_t bucket, std::uint32_t sync) {
    under_way_.push_back(sync);
    last_[bucket] = sync;
  }
  /// Adds what a step that fills `buckets` waits for.
  void wait(const std::vector<std::int32_t>& buckets, std::vector<std::uint32_t>& waits) {
    for (const std::int32_t bucket : buckets) {
      const auto found = last_.find(bucket);
      if (found != last_.end()) waits.push_back(found->second);
    }
    while (under_way_.size() > kUnderWay) {
      waits.push_back(under_way_.front());
      under_way_.pop_front();
    }
  }

 private:
  static constexpr std::size_t kUnderWay = 2;
  std::deque<std::uint32_t> under_way_;
  std::map<std::int32_t, std::uint32_t> last_;
};

/// Issues the gathers of parameters `distance` steps before their use; one of a bucket that a step in between uses
/// waits for that step, which gives the bucket up.
class ParameterPrefetch {
 public:
  ParameterPrefetch(ProgramBuilder& program, int distance)
      : program_(program), distance_(static_cast<std::size_t>(distance)) {}

  /// The gathers of the next step of the model.
  void add(std::vector<Step> gathers) {
    gathers_.push_back(std::move(gathers));
    issued_.emplace_back();
  }

  /// Issues what is due before step `number` is added, and returns what it waits for.
  std::vector<std::uint32_t> waits_of(std::size_t number) {
    for (std::size_t later = number; later < std::min(number + distance_ + 1, gathers_.size()); ++later) {
      if (!issued_[later].empty() || used_between(number, later)) continue;
      for (const Step& gather : gathers_[later]) issued_[later].push_back(program_.prefetch(gather));
    }
    return number < issued_.size() ? issued_[number] : std::vector<std::uint32_t>{};
  }

 private:
  bool used_between(std::size_t first, std::size_t later) const {
    for (std::size_t step = first; step < later; ++step) {
      for (const Step& used : gathers_[step]) {
        for (const Step& wanted : gathers_[later]) {
          if (used.layer == wanted.layer) return true;
        }
      }
    }
    return false;
  }

  ProgramBuilder& program_;
  std::size_t distance_;
  std::vector<std::vector<Step>> gathers_;          ///< by step of the model
  std::vector<std::vector<std::uint32_t>> issued_;  ///< "
};

}  // namespace wafersim::workloads
