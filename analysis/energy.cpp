#include "analysis/energy.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <map>

namespace wafersim::analysis {
namespace {

using models::EnergyPart;

__extension__ using Wide = unsigned __int128;

constexpr double kBits = 8;  // of a byte

/// FLOPs or bytes of a tile by part; those of links and of routers towards them come on top.
std::array<std::uint64_t, models::kEnergyParts> counts_of(const sim::TileMeasurement& tile) {
  const Bytes nic = tile.bytes_injected + tile.bytes_ejected;
  return {tile.matrix_flops, tile.vector_flops, tile.core_sram_bytes + nic, tile.dram_bytes, 0, tile.bytes_ejected, nic, 0};
}

/// Tiles from one end of a link to the other.
int length_of(const topology::Mesh& mesh, topology::LinkId link) {
  const TileId source = topology::Mesh::link_source(link);
  const topology::Coord from = mesh.coord(source);
  const topology::Coord to = mesh.coord(mesh.neighbour(source, topology::Mesh::link_direction(link)));
  return std::abs(from.x - to.x) + std::abs(from.y - to.y);
}

class Counter {
 public:
  explicit Counter(const EnergyInput& input) : input_(input), energy_(input.hardware.energy) {
    for (std::size_t i = 0; i < models::kEnergyParts; ++i) choose(static_cast<EnergyPart>(i));
  }

  std::optional<EnergySummary> count() {
    if (out_.parts.empty()) return std::nullopt;
    count_tiles();
    if (input_.network) count_links();
    for (EnergySummary::Part& part : out_.parts) {
      part.joules = total(part.part);
      out_.joules += part.joules;
    }
    if (input_.cycles != 0) out_.watts = out_.joules / input_.hardware.seconds(input_.cycles);
    if (input_.tokens != 0) out_.joules_per_token = out_.joules / static_cast<double>(input_.tokens);
    return std::move(out_);
  }

 private:
  void choose(EnergyPart part) {
    if (part == EnergyPart::dram && input_.hardware.dram_capacity == 0) return;
    const bool of_network = part == EnergyPart::link || part == EnergyPart::router;
    if (!energy_.has(part) || (of_network && !input_.network)) return out_.not_modelled.push_back(part);
    out_.parts.push_back({part, 0});
    modelled_[static_cast<std::size_t>(part)] = true;
  }

  bool modelled(EnergyPart part) const { return modelled_[static_cast<std::size_t>(part)]; }

  /// Of a FLOP or a byte.
  double price(EnergyPart part) const {
    const bool flops = part == EnergyPart::matrix || part == EnergyPart::vector;
    return modelled(part) ? energy_.figure(part) * (flops ? 1 : kBits) : 0.0;
  }

  double standing() const {
    return modelled(EnergyPart::standing) ? energy_.figure(EnergyPart::standing) * input_.hardware.seconds(input_.cycles) : 0.0;
  }

  double total(EnergyPart part) const {
    if (part == EnergyPart::standing) return standing() * static_cast<double>(input_.tiles.size());
    if (part != EnergyPart::link) return price(part) * static_cast<double>(counts_[static_cast<std::size_t>(part)]);
    double joules = 0;
    for (const auto& [per_byte, bytes] : link_bytes_) joules += per_byte * static_cast<double>(bytes);
    return joules;
  }

  void count_tiles() {
    out_.tiles.reserve(input_.tiles.size());
    for (const sim::TileMeasurement& tile : input_.tiles) {
      const auto counts = counts_of(tile);
      double joules = standing();
      for (std::size_t i = 0; i < counts.size(); ++i) {
        counts_[i] += counts[i];
        joules += price(static_cast<EnergyPart>(i)) * static_cast<double>(counts[i]);
      }
      out_.tiles.push_back(joules);
    }
  }

  void count_links() {
    const bool links = modelled(EnergyPart::link);
    if (links) out_.links.reserve(input_.links.size());
    for (const sim::LinkMeasurement& link : input_.links) {
      const topology::LinkClass& of = input_.mesh.link_classes()[input_.mesh.link_class(link.link)];
      const double per_byte = links ? energy_.link_joules_per_bit(of, length_of(input_.mesh, link.link)) * kBits : 0.0;
      const double joules = per_byte * static_cast<double>(link.bytes);
      if (links) {
        out_.links.push_back(joules);
        link_bytes_[per_byte] += link.bytes;
      }
      counts_[static_cast<std::size_t>(EnergyPart::router)] += link.bytes;
      charge(topology::Mesh::link_source(link.link),
             joules + price(EnergyPart::router) * static_cast<double>(link.bytes));
    }
  }

  void charge(TileId tile, double joules) {
    const auto at = std::lower_bound(input_.tiles.begin(), input_.tiles.end(), tile,
                                     [](const sim::TileMeasurement& m, TileId id) { return m.tile < id; });
    const bool used = at != input_.tiles.end() && at->tile == tile;
    (used ? out_.tiles[static_cast<std::size_t>(at - input_.tiles.begin())] : out_.unused_tiles_joules) += joules;
  }

  const EnergyInput& input_;
  const models::EnergySpec& energy_;
  EnergySummary out_;
  std::array<bool, models::kEnergyParts> modelled_{};
  std::array<Wide, models::kEnergyParts> counts_{};
  std::map<double, Wide> link_bytes_;  ///< by joules of a byte
};

}  // namespace

std::optional<double> EnergySummary::of(models::EnergyPart part) const {
  for (const Part& each : parts) {
    if (each.part == part) return each.joules;
  }
  return std::nullopt;
}

std::optional<EnergySummary> energy_of(const EnergyInput& input) { return Counter(input).count(); }

}  // namespace wafersim::analysis
