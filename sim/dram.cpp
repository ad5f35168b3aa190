#include "sim/dram.h"

#include <algorithm>
#include <tuple>

namespace wafersim::sim {

Dram::Dram(sc_core::sc_module_name name, Calendar& calendar, const models::HardwareModel& hardware,
           const std::vector<CoreIf*>& cores)
    : sc_module(name), calendar_(calendar), cores_(cores), rate_(hardware.dram_bytes_per_cycle, common_time_scale({hardware.dram_bytes_per_cycle}), 0) {
  calendar.add(*this, Rank::dram);
}

void Dram::access(TileId tile, std::uint32_t engine, Bytes bytes) {
  requests_.push_back({tile, engine, bytes});
  calendar_.request_evaluation(*this);
}

void Dram::evaluate() {
  std::sort(requests_.begin(), requests_.end(), [](const Request& a, const Request& b) {
    return std::tie(a.tile, a.engine) < std::tie(b.tile, b.engine);
  });
  for (const Request& request : requests_) {
    // A request that finds the channel taken starts, to the fraction of a cycle, when it is free.
    const Cycle start = std::max(calendar_.now(), channel_.free_at());
    const ExactTime done = channel_.occupy(start, request.bytes, {}, rate_);
    calendar_.post(*this, done.ceil(), 0, payload_of(request.tile, request.engine));
  }
  requests_.clear();
}

void Dram::update(unsigned /*kind*/, std::uint32_t payload) {
  cores_[tile_of(payload)]->dram_done(engine_of(payload));
}

}  // namespace wafersim::sim
