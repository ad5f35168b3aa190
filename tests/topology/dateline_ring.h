#pragma once

#include <memory>
#include <string>

#include "topology/link_loads.h"
#include "topology/routing.h"

namespace wafersim::topology {

/// Clockwise round a 2x2 mesh, whatever the destination.
class Clockwise final : public Routing {
 public:
  const std::string& name() const override {
    static const std::string text = "clockwise";
    return text;
  }
  Hop next(TileId at, TileId destination) const override {
    if (at == destination) return Hop::local;
    constexpr Hop clockwise[] = {Hop::east, Hop::south, Hop::north, Hop::west};
    return clockwise[at];
  }
};

/// The same with two classes: the link out of tile 2 is the dateline, from it on a packet goes in the second.
class DatelineRing final : public RoutingPolicy {
 public:
  static constexpr TileId kBeforeDateline = 2;

  const std::string& name() const override {
    static const std::string text = "dateline_ring";
    return text;
  }
  unsigned vc_classes() const override { return 2; }
  const Routing* fixed(unsigned) const override { return &ring_; }
  OutputSet outputs(TileId at, Hop came, const Travel& travel) const override {
    return ring_.outputs(at, came, travel);
  }
  bool restates() const override { return true; }
  Travel leave(const Travel& travel, TileId at, Hop) const override {
    Travel onward = travel;
    if (at == kBeforeDateline) onward.vc_class = 1;
    return onward;
  }

  /// No route is longer than three links, so none comes to the dateline twice.
  TurnSets class_turns(const Mesh& mesh, unsigned vc_class) const override {
    TurnSets turns(mesh.link_slots(), 0);
    for (const TileId at : {TileId{0}, TileId{1}, TileId{3}, kBeforeDateline}) {
      const TileId to = ahead(mesh, at);
      const bool first = at != kBeforeDateline && to != kBeforeDateline;
      const bool second = to != kBeforeDateline && ahead(mesh, to) != kBeforeDateline;
      if (vc_class == 0 ? first : second) turns[link(at)] = output_bit(ring_.next(to, kNoTile));
    }
    return turns;
  }
  TurnSets handover_turns(const Mesh& mesh, unsigned from_class, unsigned) const override {
    TurnSets turns(mesh.link_slots(), 0);
    for (TileId at = 0; at < mesh.tile_count(); ++at) {
      if (from_class == 0 && ahead(mesh, at) == kBeforeDateline)
        turns[link(at)] = output_bit(ring_.next(kBeforeDateline, kNoTile));
    }
    return turns;
  }
  ExpectedLoads expected_loads(const Mesh& mesh, const Demands& demands) const override {
    return ring_.expected_loads(mesh, demands);
  }
  std::optional<ExpectedLoads> uniform_loads(const Mesh& mesh) const override {
    return ring_.uniform_loads(mesh);
  }

 private:
  LinkId link(TileId at) const { return Mesh::link(at, *to_direction(ring_.next(at, kNoTile))); }
  TileId ahead(const Mesh& mesh, TileId at) const {
    return mesh.neighbour(at, *to_direction(ring_.next(at, kNoTile)));
  }

  Clockwise ring_;
};

}  // namespace wafersim::topology
