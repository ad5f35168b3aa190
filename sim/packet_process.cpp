#include "sim/packet_process.h"

#include <fmt/format.h>

#include "base/error.h"

namespace wafersim::sim {
namespace {

std::uint64_t threshold_of(const Rational& probability) {
  __extension__ using Wide = unsigned __int128;
  if (probability >= Rational(1)) return ~std::uint64_t{0};
  const Wide num = static_cast<std::uint64_t>(probability.num());
  return static_cast<std::uint64_t>((num << 64) / static_cast<std::uint64_t>(probability.den()));
}

}  // namespace

PacketProcess::PacketProcess(const workloads::TrafficSpec& spec)
    : bursts_(spec.injection == workloads::InjectionProcess::on_off) {
  const Rational mean = spec.packet_flits.mean();
  const Rational rate = spec.load / mean;
  if (rate > Rational(1)) {
    throw PlanError(fmt::format("traffic.load: {} flits a cycle in packets of {} is more than a packet a cycle",
                                spec.load.to_string(), mean.to_string()));
  }
  if (!bursts_) {
    packet_ = threshold_of(rate);
    return;
  }
  const Rational within = spec.burst_load / mean;
  if (within > Rational(1)) {
    throw PlanError(fmt::format("traffic.burst_load: {} flits a cycle in packets of {} is more than a packet a cycle",
                                spec.burst_load.to_string(), mean.to_string()));
  }
  if (within <= rate) {
    throw PlanError(fmt::format("traffic.burst_load: {} must be more than traffic.load ({})", spec.burst_load.to_string(),
                                spec.load.to_string()));
  }
  packet_ = threshold_of(within);
  // A burst ends after burst_cycles in the mean; on a fraction load / burst_load of the time.
  const Rational stop = Rational(1) / spec.burst_cycles;
  stop_ = threshold_of(stop);
  start_ = threshold_of(stop * rate / (within - rate));
}

}  // namespace wafersim::sim
