#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <vector>

#include "models/hardware.h"
#include "topology/mesh.h"
#include "workloads/kernel_spec.h"
#include "workloads/tile_program.h"

namespace wafersim::workloads {

/// What a tile needs in a step of a stencil of the tile `dx` columns and `dy` rows away, one of which is 0.
struct HaloPart {
  int dx = 0;
  int dy = 0;
  std::uint64_t points = 0;   ///< that come from there
  std::uint64_t terms = 0;    ///< of a star: products of the tile's points with them
  std::uint64_t touched = 0;  ///< points of the tile that depend on them
};

/// The points of a tile, or `z` layers of them: what is exchanged and computed of them in a step of a stencil.
class StencilBlock {
 public:
  /// `shape`: the tiles of the kernel.
  StencilBlock(const StencilSpec& spec, int z, const topology::Shape& shape, Bytes element);

  int z() const { return z_; }
  /// Of what a tile receives.
  Bytes halo_bytes(topology::Coord at) const { return halo_points(at) * element_; }
  /// The step of a tile: its points to those that need them, theirs, and the next values.
  std::uint32_t lower(TilePrograms& programs, topology::Coord at, const std::function<TileId(topology::Coord)>& tile_of) const;
  /// What a tile exchanges, as if all of it came the longest way over the slowest of its ports, and what it computes after it or
  /// beside it.
  Cycle model_cycles(topology::Coord at, const models::HardwareModel& hardware) const;

 private:
  struct Received {
    OpId op = 0;
    HaloPart part;
  };

  std::vector<HaloPart> parts_towards(int dx, int dy) const;
  bool inside(topology::Coord at, const HaloPart& part) const;
  HaloPart with_corners(HaloPart part, topology::Coord at) const;
  std::vector<HaloPart> neighbours(topology::Coord at) const;
  std::uint64_t halo_points(topology::Coord at) const;
  std::uint64_t within(int margin) const;
  std::uint64_t points() const { return within(0); }
  Cycle exchange_cycles(topology::Coord at, const models::HardwareModel& hardware) const;

  Work work_of(std::uint64_t flops, std::uint64_t read, std::uint64_t written) const;
  Work all_points(std::uint64_t halo) const;
  Work inner_points() const;
  Work outer_points(std::uint64_t halo) const;
  Work terms_of(const HaloPart& part) const;
  Work own_terms(const std::vector<HaloPart>& parts) const;

  void exchange(TilePrograms& programs, StepBuilder& builder, topology::Coord at,
                const std::function<TileId(topology::Coord)>& tile_of, std::vector<Received>& received) const;
  void send(TilePrograms& programs, StepBuilder& builder, topology::Coord at,
            const std::function<TileId(topology::Coord)>& tile_of, const std::vector<HaloPart>& parts,
            const std::vector<OpId>& after) const;
  void compute(StepBuilder& builder, const std::vector<Received>& received) const;

  StencilSpec spec_;
  int z_;
  topology::Shape shape_;
  Bytes element_;
  std::array<std::vector<HaloPart>, 4> parts_;  ///< east, west, north, south; of each the farthest first
};

}  // namespace wafersim::workloads
