#pragma once

#include <vector>

#include "models/hardware.h"
#include "sim/calendar.h"
#include "sim/interfaces.h"
#include "sim/port_clock.h"

namespace wafersim::sim {

/// The DRAM of a die: one channel of the die's bandwidth, first come, first served; requests of one cycle are taken in order of
/// tile, then engine.
class Dram final : public sc_core::sc_module, public Client, public DramIf {
 public:
  /// `cores` has the core of each tile of the wafer, by tile id.
  Dram(sc_core::sc_module_name name, Calendar& calendar, const models::HardwareModel& hardware,
       const std::vector<CoreIf*>& cores);


  void access(TileId tile, std::uint32_t engine, Bytes bytes) override;
  void update(unsigned kind, std::uint32_t payload) override;
  void evaluate() override;

  /// Its state, see sim/state_archive.h.
  template <class Archive>
  void visit(Archive& archive) {
    channel_.visit(archive);
  }
  static TileId tile_of(std::uint32_t payload) { return payload >> kEngineBits; }
  static std::uint32_t payload_of(TileId tile, std::uint32_t engine) { return (tile << kEngineBits) | engine; }
  static std::uint32_t engine_of(std::uint32_t payload) { return payload & ((1u << kEngineBits) - 1); }

 private:
  // The payload of a completion: the tile and which of its engines asked.
  static constexpr std::uint32_t kEngineBits = 1;
  struct Request {
    TileId tile;
    std::uint32_t engine;
    Bytes bytes;
  };
  Calendar& calendar_;
  const std::vector<CoreIf*>& cores_;
  PortRate rate_;
  PortClock channel_;
  std::vector<Request> requests_;  ///< of this cycle
};

}  // namespace wafersim::sim
