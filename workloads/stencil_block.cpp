#include "workloads/stencil_block.h"

#include <algorithm>
#include <cstdlib>

#include "models/cost.h"

namespace wafersim::workloads {
namespace {

constexpr std::array<topology::Coord, 4> kDirections = {{{1, 0}, {-1, 0}, {0, -1}, {0, 1}}};
constexpr std::uint32_t kHalo = 0;  // channel

std::uint64_t inner(int extent, int margin) { return static_cast<std::uint64_t>(std::max(0, extent - 2 * margin)); }

}  // namespace

StencilBlock::StencilBlock(const StencilSpec& spec, int z, const topology::Shape& shape, Bytes element)
    : spec_(spec), z_(z), shape_(shape), element_(element) {
  for (std::size_t i = 0; i < kDirections.size(); ++i) parts_[i] = parts_towards(kDirections[i].x, kDirections[i].y);
}

/// Of tiles in one direction. Of a box the points north and south are as many as the tile is wide; with_corners() adds the rest.
std::vector<HaloPart> StencilBlock::parts_towards(int dx, int dy) const {
  const int extent = dx != 0 ? spec_.x : spec_.y;
  const auto across = static_cast<std::uint64_t>(dx != 0 ? spec_.y : spec_.x) * static_cast<std::uint64_t>(z_);
  std::vector<HaloPart> parts;
  for (int away = (spec_.radius + extent - 1) / extent; away > 0; --away) {
    // Layers between the tile and that one; a point in layer i of the tile, counted from that side, reaches radius - i - gap of
    // its layers.
    const int gap = (away - 1) * extent;
    const bool copied = spec_.exchange == StencilExchange::multicast;
    const int layers = std::min(extent, copied ? spec_.radius : spec_.radius - gap);
    std::uint64_t terms = 0;
    int touched = 0;
    for (int i = 0; i < extent && i + gap < spec_.radius; ++i, ++touched) {
      terms += static_cast<std::uint64_t>(std::min(extent, spec_.radius - gap - i)) * across;
    }
    parts.push_back(
        {dx * away, dy * away, static_cast<std::uint64_t>(layers) * across, terms, static_cast<std::uint64_t>(touched) * across});
  }
  return parts;
}

bool StencilBlock::inside(topology::Coord at, const HaloPart& part) const {
  const int x = at.x + part.dx;
  const int y = at.y + part.dy;
  return x >= 0 && x < shape_.cols && y >= 0 && y < shape_.rows;
}

/// Of a box what goes north and south is as wide as the sender and what it has from its sides.
HaloPart StencilBlock::with_corners(HaloPart part, topology::Coord at) const {
  if (spec_.form == StencilForm::star || part.dy == 0) return part;
  const int sides = (at.x > 0 ? 1 : 0) + (at.x + 1 < shape_.cols ? 1 : 0);
  part.points += static_cast<std::uint64_t>(sides) * static_cast<std::uint64_t>(spec_.radius) *
                 static_cast<std::uint64_t>(spec_.radius) * static_cast<std::uint64_t>(z_);
  return part;
}

/// What a tile exchanges with the tiles that there are.
std::vector<HaloPart> StencilBlock::neighbours(topology::Coord at) const {
  std::vector<HaloPart> all;
  for (const std::vector<HaloPart>& parts : parts_) {
    for (const HaloPart& part : parts) {
      if (inside(at, part)) all.push_back(with_corners(part, at));
    }
  }
  return all;
}

std::uint64_t StencilBlock::halo_points(topology::Coord at) const {
  std::uint64_t points = 0;
  for (const HaloPart& part : neighbours(at)) points += part.points;
  return points;
}

/// Points that are `margin` or more from the four sides of the tile.
std::uint64_t StencilBlock::within(int margin) const {
  return inner(spec_.x, margin) * inner(spec_.y, margin) * static_cast<std::uint64_t>(z_);
}

Work StencilBlock::work_of(std::uint64_t flops, std::uint64_t read, std::uint64_t written) const {
  Work work;
  work.vector_flops = flops;
  work.sram_bytes = (read + written) * element_;
  return work;
}

Work StencilBlock::all_points(std::uint64_t halo) const {
  return work_of(points() * flops_of_point(spec_), points() + halo, points());
}

/// That depend on points of no other tile.
Work StencilBlock::inner_points() const {
  const std::uint64_t inside_points = within(spec_.radius);
  return inside_points == 0 ? Work{} : work_of(inside_points * flops_of_point(spec_), points(), inside_points);
}

/// The others: they read what others sent and the points of the tile up to two radii from its sides.
Work StencilBlock::outer_points(std::uint64_t halo) const {
  const std::uint64_t outside = points() - within(spec_.radius);
  return work_of(outside * flops_of_point(spec_), points() - within(2 * spec_.radius) + halo, outside);
}

/// Adds the terms of points that have come to sums that lie in SRAM.
Work StencilBlock::terms_of(const HaloPart& part) const {
  const std::uint64_t flops = part.terms * flops_of_point(spec_) / static_cast<std::uint64_t>(stencil_points(spec_));
  return work_of(flops, part.points + part.touched, part.touched);
}

/// What is left without the terms of `parts`.
Work StencilBlock::own_terms(const std::vector<HaloPart>& parts) const {
  std::uint64_t flops = points() * flops_of_point(spec_);
  for (const HaloPart& part : parts) flops -= terms_of(part).vector_flops;
  return work_of(flops, points(), points());
}

std::uint32_t StencilBlock::lower(TilePrograms& programs, topology::Coord at,
                                  const std::function<TileId(topology::Coord)>& tile_of) const {
  StepBuilder builder(programs.trace(), "stencil");
  std::vector<Received> received;
  exchange(programs, builder, at, tile_of, received);
  compute(builder, received);
  return builder.finish();
}

/// Of a box what came along x goes on along y.
void StencilBlock::exchange(TilePrograms& programs, StepBuilder& builder, topology::Coord at,
                            const std::function<TileId(topology::Coord)>& tile_of, std::vector<Received>& received) const {
  const auto along = [&](bool of_x, const std::vector<OpId>& after) {
    for (std::size_t i = 0; i < kDirections.size(); ++i) {
      if ((kDirections[i].x != 0) == of_x) send(programs, builder, at, tile_of, parts_[i], after);
    }
    for (const HaloPart& part : neighbours(at)) {
      if ((part.dx != 0) != of_x) continue;
      const std::uint32_t from = programs.peer(tile_of({at.x + part.dx, at.y + part.dy}));
      received.push_back({builder.receive(Axis::none, from, kHalo, part.points * element_, {}), part});
    }
  };
  along(true, {});
  std::vector<OpId> sides;
  if (spec_.form == StencilForm::box) {
    for (const Received& each : received) sides.push_back(each.op);
  }
  along(false, sides);
}

void StencilBlock::send(TilePrograms& programs, StepBuilder& builder, topology::Coord at,
                        const std::function<TileId(topology::Coord)>& tile_of, const std::vector<HaloPart>& parts,
                        const std::vector<OpId>& after) const {
  std::vector<std::uint32_t> all;
  for (const HaloPart& part : parts) {
    if (!inside(at, part)) continue;
    const std::uint32_t to = programs.peer(tile_of({at.x + part.dx, at.y + part.dy}));
    if (spec_.exchange == StencilExchange::multicast) {
      all.push_back(to);
    } else {
      builder.send(Axis::none, to, kHalo, with_corners(part, at).points * element_, after);
    }
  }
  const Bytes bytes = parts.front().points * element_;
  if (all.size() == 1) builder.send(Axis::none, all.front(), kHalo, bytes, after);
  if (all.size() > 1) builder.multicast(Axis::none, all, kHalo, bytes, after);
}

void StencilBlock::compute(StepBuilder& builder, const std::vector<Received>& received) const {
  std::vector<OpId> all;
  std::vector<HaloPart> parts;
  std::uint64_t halo = 0;
  for (const Received& each : received) {
    all.push_back(each.op);
    parts.push_back(each.part);
    halo += each.part.points;
  }
  switch (spec_.overlap) {
    case StencilOverlap::none:
      builder.vector(all_points(halo), all);
      return;
    case StencilOverlap::interior: {
      const Work inside_work = inner_points();
      if (inside_work.vector_flops != 0) builder.vector(inside_work, {});
      builder.vector(outer_points(halo), all);
      return;
    }
    case StencilOverlap::arrivals: {
      const OpId own = builder.vector(own_terms(parts), {});
      for (const Received& each : received) builder.reduce(Axis::none, terms_of(each.part), {own, each.op});
    }
  }
}

/// Messages that share a port follow each other. Those of a box go along x, then along y.
Cycle StencilBlock::exchange_cycles(topology::Coord at, const models::HardwareModel& hardware) const {
  const auto phase = [&](bool along_x, bool along_y) {
    std::array<Bytes, kDirections.size()> bytes{};
    int hops = 0;
    for (const HaloPart& part : neighbours(at)) {
      if (part.dx != 0 ? !along_x : !along_y) continue;
      bytes[part.dx > 0 ? 0 : part.dx < 0 ? 1 : part.dy < 0 ? 2 : 3] += part.points * element_;
      hops = std::max(hops, std::abs(part.dx + part.dy));
    }
    if (hops == 0) return Cycle{0};
    Bytes through_port = 0;
    for (const Bytes each : bytes) {
      through_port = hardware.nic_ports == models::NicPorts::single ? through_port + each : std::max(through_port, each);
    }
    return models::message_latency(hardware, through_port, hops);
  };
  if (spec_.form == StencilForm::star) return phase(true, true);
  return phase(true, false) + phase(false, true);
}

Cycle StencilBlock::model_cycles(topology::Coord at, const models::HardwareModel& hardware) const {
  const models::ComputeCost cost(hardware);
  const auto cycles_of = [&](const Work& work) {
    const Cycle moving =
        hardware.sram_bytes_per_cycle ? models::serialization(work.sram_bytes, *hardware.sram_bytes_per_cycle) : 0;
    return std::max(cost.vector(work.vector_flops), moving);
  };
  const Cycle exchange = exchange_cycles(at, hardware);
  const std::vector<HaloPart> parts = neighbours(at);
  switch (spec_.overlap) {
    case StencilOverlap::none:
      return exchange + cycles_of(all_points(halo_points(at)));
    case StencilOverlap::interior:
      return std::max(exchange, cycles_of(inner_points())) + cycles_of(outer_points(halo_points(at)));
    case StencilOverlap::arrivals:
      break;
  }
  Cycle cycles = std::max(exchange, cycles_of(own_terms(parts)));
  for (const HaloPart& part : parts) cycles += cycles_of(terms_of(part));
  return cycles;
}

}  // namespace wafersim::workloads
