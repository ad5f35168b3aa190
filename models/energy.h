#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "base/quantity.h"
#include "topology/mesh.h"

namespace wafersim::models {

/// What energy is spent on, in the order of reports.
enum class EnergyPart : std::uint8_t { matrix, vector, sram, dram, link, router, nic, standing };
inline constexpr std::size_t kEnergyParts = static_cast<std::size_t>(EnergyPart::standing) + 1;
/// "matrix", "vector", "sram", "dram", "link", "router", "nic", "static"
const char* to_string(EnergyPart part);

/// What a FLOP or a bit costs. A part without a figure is not modelled.
struct EnergySpec {
  std::optional<EnergyPerFlop> matrix;
  std::optional<EnergyPerFlop> vector;
  std::optional<EnergyPerBit> sram;          ///< read or written
  std::optional<EnergyPerBit> dram;          ///< read or written
  std::optional<EnergyPerBit> link;          ///< over a link as long as a tile; longer ones in proportion
  std::optional<EnergyPerBit> reticle_link;  ///< over such a link across one border, at least the link's; absent = the link's
  std::optional<EnergyPerBit> express_link;  ///< over an express link; absent = as its length goes
  std::optional<EnergyPerBit> wafer_link;    ///< over a link from wafer to wafer; absent = the link's
  std::optional<EnergyPerBit> router;        ///< through a router, from an input to an output
  std::optional<EnergyPerBit> nic;           ///< out of or into a tile
  std::optional<Power> standing;             ///< of a used tile, all the time
  bool operator==(const EnergySpec&) const = default;

  bool has(EnergyPart part) const;
  /// Some part has a figure.
  bool any() const;
  /// Of a FLOP (matrix, vector) or a bit, the nearest number; watts of `standing`. 0 without a figure; for links see below.
  double figure(EnergyPart part) const;
  /// Joules of a bit over a link; `tiles`: from one end to the other.
  double link_joules_per_bit(const topology::LinkClass& link_class, int tiles) const;
};

}  // namespace wafersim::models
