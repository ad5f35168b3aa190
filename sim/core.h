#pragma once

#include <optional>
#include <string>

#include "sim/interfaces.h"
#include "sim/measurements.h"

namespace wafersim::sim {

/// The ports of a core.
class CorePorts : public sc_core::sc_module {
 public:
  using DramPort = sc_core::sc_port<DramIf, 1, sc_core::SC_ZERO_OR_MORE_BOUND>;

  CorePorts(sc_core::sc_module_name name, bool dram_port) : sc_module(name) {
    if (dram_port) dram.emplace("to_dram");
  }

  sc_core::sc_port<NicIf> nic{"to_nic"};
  sc_core::sc_port<SramIf> sram{"to_sram"};
  std::optional<DramPort> dram;  ///< bound where there is DRAM
};

/// The compute core of a tile: what runs its program. TraceCore is ours; a module of a user's own, with SC_THREADs
/// and events as it likes, takes its place by SimulationOptions::core_factory (docs/custom-core.md). The ports are a base
/// so that what a call of the interface reads lies next to the state of the derived class.
class Core : public CorePorts, public CoreIf {
 public:
  /// A core that never uses DRAM can do without the port.
  explicit Core(sc_core::sc_module_name name, bool dram_port = true) : CorePorts(name, dram_port) {}

  /// Everything that the core has to do is done. The run ends when all cores have finished and nothing is under way.
  virtual bool finished() const = 0;
  /// What the core is at, for reports of stalls and overflows: "layer.forward, layer 3, microbatch 2".
  virtual std::string describe() const = 0;
  /// Fills `cycles`, the busy cycles of the engines and `operations`, and what energy is counted from: FLOPs, and bytes of SRAM
  /// and DRAM. `end` is the length of the run; the cycles must sum to it.
  virtual void measure(Cycle end, TileMeasurement& out) = 0;
};

}  // namespace wafersim::sim
