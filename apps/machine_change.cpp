#include "apps/machine_change.h"

#include "apps/refuse.h"

namespace wafersim::apps {
namespace {

using Overrides = std::vector<std::string>;

/// A rate so many times as high.
template <class Rate>
void scale(Overrides& out, const std::string& key, Rate rate, const Rational& factor) {
  rate.value = rate.value * factor;
  out.push_back(key + "=" + to_string(rate));
}

void scale_links(Overrides& out, const models::WaferSpec& wafer, const Rational& factor) {
  scale(out, "wafer.link.bandwidth", wafer.link.bandwidth, factor);
  if (wafer.wafers) scale(out, "wafer.wafers.bandwidth", wafer.wafers->bandwidth, factor);
  if (wafer.reticle && wafer.reticle->bandwidth)
    scale(out, "wafer.reticle.bandwidth", *wafer.reticle->bandwidth, factor);
  if (wafer.nic.injection_bandwidth)
    scale(out, "wafer.nic.injection_bandwidth", *wafer.nic.injection_bandwidth, factor);
  if (wafer.nic.ejection_bandwidth)
    scale(out, "wafer.nic.ejection_bandwidth", *wafer.nic.ejection_bandwidth, factor);
}

void scale_compute(Overrides& out, const models::WaferSpec& wafer, const Rational& factor,
                   const std::string& file) {
  const models::CoreSpec& core = wafer.core;
  if (!core.table.empty())
    refuse(file, "wafer.compute.table",
           "measured kernels do not become faster with the engines; change the table");
  if (core.matrix.peak) {
    scale(out, "wafer.compute.matrix.peak", *core.matrix.peak, factor);
  } else {
    const Rational arrays = Rational(core.matrix.arrays) * factor;
    if (!arrays.is_integer()) {
      refuse(file, "wafer.compute.matrix.arrays",
             "so many arrays there cannot be: " + arrays.to_string() +
                 "; give the rate of the engine instead (wafer.compute.matrix.peak)");
    }
    out.push_back("wafer.compute.matrix.arrays=" + arrays.to_string());
  }
  scale(out, "wafer.compute.vector.peak", core.vector.peak, factor);
}

}  // namespace

std::vector<std::string> overrides_of(const analysis::MachineChange& change, const config::Scenario& scenario,
                                      const std::string& file) {
  Overrides out;
  const models::WaferSpec& wafer = scenario.wafer;
  if (change.links != Rational(1)) scale_links(out, wafer, change.links);
  if (change.compute != Rational(1)) scale_compute(out, wafer, change.compute, file);
  if (change.memory != Rational(1)) {
    if (wafer.sram.bandwidth) scale(out, "wafer.sram.bandwidth", *wafer.sram.bandwidth, change.memory);
    if (wafer.dram) scale(out, "wafer.dram.bandwidth", wafer.dram->bandwidth, change.memory);
  }
  if (change.instant_routers) {
    const bool wormhole = scenario.router.switching() == models::Switching::wormhole;
    if (scenario.network.fidelity == models::Fidelity::flit && wormhole) {
      refuse(file, "router.switching",
             "wormhole routers of flits take a cycle at least; 'routers instant' is for network.fidelity packet and for cut_through");
    }
    out.emplace_back("router.pipeline=0 cycles");
    out.emplace_back("router.turn=0 cycles");
  }
  if (change.ideal_network) out.emplace_back("network.fidelity=ideal");
  return out;
}

}  // namespace wafersim::apps
