#include "sim/traffic_measurement.h"

#include <algorithm>

#include "base/error.h"

namespace wafersim::sim {

void LatencyHistogram::add(Cycle latency) {
  const auto place = static_cast<std::size_t>(std::min(latency, kLimit));
  if (place >= counts_.size()) counts_.resize(place + place / 2 + 1);
  ++counts_[place];
  ++count_;
  sum_ += latency;
  longest_ = std::max(longest_, latency);
}

void LatencyHistogram::add(const LatencyHistogram& other) {
  if (other.counts_.size() > counts_.size()) counts_.resize(other.counts_.size());
  for (std::size_t i = 0; i < other.counts_.size(); ++i) counts_[i] += other.counts_[i];
  count_ += other.count_;
  sum_ += other.sum_;
  longest_ = std::max(longest_, other.longest_);
}

Cycle LatencyHistogram::percentile(unsigned percent) const {
  const std::uint64_t wanted = ceil_div<std::uint64_t>(count_ * percent, 100);
  std::uint64_t seen = 0;
  for (std::size_t latency = 0; latency < counts_.size(); ++latency) {
    seen += counts_[latency];
    if (seen >= wanted && seen != 0) return latency == kLimit ? longest_ : latency;
  }
  return 0;
}

}  // namespace wafersim::sim
