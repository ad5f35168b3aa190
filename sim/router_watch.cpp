#include "sim/router_watch.h"

namespace wafersim::sim {

RouterWatch::RouterWatch(const WatchOptions& options, Look look)
    : options_(options), look_(std::move(look)), grants_(options.tiles.size()) {
  sample(0);
}

void RouterWatch::sample(Cycle at) {
  for (std::size_t i = 0; i < options_.tiles.size(); ++i) {
    sample_ = {};
    look_(options_.tiles[i], at, sample_);
    std::vector<std::uint64_t>& before = grants_[i];
    before.resize(sample_.grants.size());
    for (std::size_t output = 0; output < before.size(); ++output) sample_.granted.push_back(sample_.grants[output] != before[output]);
    before = sample_.grants;
    options_.on_sample(at, options_.tiles[i], sample_);
  }
}

}  // namespace wafersim::sim
