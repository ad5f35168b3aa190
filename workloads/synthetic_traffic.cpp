#include "workloads/synthetic_traffic.h"

#include <algorithm>
#include <bit>
#include <fmt/format.h>

#include "base/error.h"

namespace wafersim::workloads {
namespace {

const char* name_of(SyntheticPattern pattern) {
  switch (pattern) {
    case SyntheticPattern::transpose:
      return "transpose";
    case SyntheticPattern::bit_complement:
      return "bit_complement";
    case SyntheticPattern::bit_reverse:
      return "bit_reverse";
    default:
      return "shuffle";
  }
}

[[noreturn]] void refuse(SyntheticPattern pattern, const topology::Mesh& mesh, const char* rule) {
  throw PlanError(fmt::format("traffic.pattern: {} needs {}; the mesh is {}", name_of(pattern), rule,
                              topology::to_string(mesh.shape())));
}

unsigned id_bits(SyntheticPattern pattern, const topology::Mesh& mesh) {
  const TileId count = mesh.tile_count();
  if (!std::has_single_bit(count)) refuse(pattern, mesh, "a number of tiles that is a power of two");
  return static_cast<unsigned>(std::countr_zero(count));
}

TileId bit_partner(SyntheticPattern pattern, TileId tile, unsigned bits) {
  const TileId mask = (TileId{1} << bits) - 1;
  if (pattern == SyntheticPattern::bit_complement) return ~tile & mask;
  if (pattern == SyntheticPattern::shuffle) return bits == 0 ? tile : ((tile << 1) | (tile >> (bits - 1))) & mask;
  TileId reversed = 0;
  for (unsigned bit = 0; bit < bits; ++bit) reversed |= (tile >> bit & 1U) << (bits - 1 - bit);
  return reversed;
}

TileId moved(const topology::Mesh& mesh, TileId tile, int dx, int dy) {
  const topology::Coord at = mesh.coord(tile);
  return mesh.tile_at({(at.x + dx) % mesh.cols(), (at.y + dy) % mesh.rows()});
}

int half_way(int tiles) { return (tiles + 1) / 2 - 1; }

TileId partner(SyntheticPattern pattern, const topology::Mesh& mesh, TileId tile) {
  switch (pattern) {
    case SyntheticPattern::transpose: {
      if (mesh.rows() != mesh.cols()) refuse(pattern, mesh, "a square mesh");
      const topology::Coord at = mesh.coord(tile);
      return mesh.tile_at({at.y, at.x});
    }
    case SyntheticPattern::tornado:
      return moved(mesh, tile, half_way(mesh.cols()), half_way(mesh.rows()));
    case SyntheticPattern::tornado_x:
      return moved(mesh, tile, half_way(mesh.cols()), 0);
    case SyntheticPattern::neighbour:
      return moved(mesh, tile, 1, 1);
    default:
      return bit_partner(pattern, tile, id_bits(pattern, mesh));
  }
}

/// floor(share x 2^64), at most 2^64 - 1.
std::uint64_t threshold_of(const Rational& share) {
  __extension__ using Wide = unsigned __int128;
  const Wide scaled = (Wide{static_cast<std::uint64_t>(share.num())} << 64) / static_cast<std::uint64_t>(share.den());
  return scaled >> 64 != 0 ? ~std::uint64_t{0} : static_cast<std::uint64_t>(scaled);
}

}  // namespace

Rational PacketSizes::mean() const {
  std::int64_t sum = 0;
  for (const std::uint32_t size : flits) sum += size;
  return {sum, static_cast<std::int64_t>(flits.size())};
}

Destinations::Destinations(const TrafficSpec& spec, const topology::Mesh& mesh) : sends_(mesh.tile_count(), false) {
  for (TileId tile = 0; tile < mesh.tile_count(); ++tile) {
    if (mesh.alive(tile)) live_.push_back(tile);
  }
  if (spec.pattern != SyntheticPattern::uniform && spec.pattern != SyntheticPattern::hotspot) {
    if (spec.pattern != SyntheticPattern::trace) permute(spec, mesh);
    return;
  }
  for (const TileId tile : live_) sends_[tile] = true;
  uniform_weight_ = 1;
  weights_ = live_.size();
  if (spec.pattern == SyntheticPattern::uniform) return;
  if (spec.hotspots.empty()) throw PlanError("traffic.hotspots: hotspot traffic needs at least one tile");
  for (const topology::Coord& at : spec.hotspots) {
    if (!mesh.contains(at) || !mesh.alive(mesh.tile_at(at))) {
      throw PlanError(fmt::format("traffic.hotspots: tile_{}_{} is dead or outside the mesh", at.x, at.y));
    }
    hotspots_.push_back(mesh.tile_at(at));
  }
  hotspot_threshold_ = threshold_of(spec.hotspot_share);
  // share / hotspots + (1 - share) / live over a common denominator.
  const auto num = static_cast<std::uint64_t>(spec.hotspot_share.num());
  const auto den = static_cast<std::uint64_t>(spec.hotspot_share.den());
  hotspot_weight_ = num * live_.size();
  uniform_weight_ = (den - num) * hotspots_.size();
  weights_ = den * hotspots_.size() * live_.size();
}

void Destinations::permute(const TrafficSpec& spec, const topology::Mesh& mesh) {
  if (spec.pattern == SyntheticPattern::permutation) {
    fixed_ = read_permutation(spec.file, mesh);
  } else {
    fixed_.assign(mesh.tile_count(), kNoTile);
    for (const TileId tile : live_) {
      fixed_[tile] = partner(spec.pattern, mesh, tile);
      // A dead tile has no traffic, neither from it nor to it.
      if (!mesh.alive(fixed_[tile])) fixed_[tile] = kNoTile;
    }
  }
  for (const TileId tile : live_) sends_[tile] = fixed_[tile] != kNoTile;
}

std::uint64_t Destinations::weight(TileId source, TileId destination) const {
  if (!fixed_.empty()) return fixed_[source] == destination ? weights_ : 0;
  if (!sends_[source] || !sends_[destination]) return 0;
  const auto hot = static_cast<std::uint64_t>(std::count(hotspots_.begin(), hotspots_.end(), destination));
  return uniform_weight_ + hot * hotspot_weight_;
}

}  // namespace wafersim::workloads
