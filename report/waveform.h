#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "models/hardware.h"
#include "report/atomic_file.h"
#include "sim/network.h"
#include "sim/router_watch.h"
#include "topology/mesh.h"

namespace wafersim::report {

/// A VCD file (IEEE 1364, section 18) of watched routers, written while the simulation runs. One unit of its
/// time is one cycle; what is written at a time holds at the end of that cycle. Signals: docs/results.md,
/// "Waveforms". Throws IoError.
class Waveform {
 public:
  /// `tiles` are those of the samples, in their order.
  Waveform(const std::filesystem::path& path, const topology::Mesh& mesh, const std::vector<TileId>& tiles,
           const models::HardwareModel& hardware);

  void add(Cycle at, TileId tile, const sim::RouterSample& sample);
  void commit();

 private:
  /// A variable, whose identifier is made of its place.
  struct Signal {
    unsigned bits = 1;
    std::uint64_t value = 0;
    bool known = false;
    bool pulse = false;  ///< 1 for single cycles
  };

  void declare(TileId tile, const std::string& module, const sim::PortLayout& layout,
               const models::HardwareModel& hardware);
  void add_signal(const std::string& name, unsigned bits, bool pulse = false);
  void end_pulses();
  void set(std::size_t signal, std::uint64_t value);

  AtomicFile file_;
  std::string header_;
  std::vector<Signal> signals_;
  std::vector<std::size_t> first_;  ///< signal of each router, by tile
  Cycle now_ = 0;       ///< of the last sample
  Cycle written_ = 0;   ///< last time in the file
};

/// Live tiles of the mesh that fit any of the patterns, ascending: "tile_x_y", where each of x and y is a
/// number, a range "2-5", or "*". Throws Error (ExitStatus::scenario) naming `option` and the pattern that fits none.
std::vector<TileId> tiles_named(const std::string& option, const std::vector<std::string>& patterns,
                                const topology::Mesh& mesh);

}  // namespace wafersim::report
