#pragma once

#include <bit>
#include <vector>

#include "base/error.h"
#include "sim/route_lookup.h"
#include "topology/routing_policy.h"

namespace wafersim::sim {

/// How the engines ask a RoutingPolicy for every packet at every router. Both engines take the same ways where they see the
/// same room.
class PacketRoutes {
 public:
  /// When an output is known.
  enum class Kind : std::uint8_t {
    plain,     ///< always: place and destination decide, there is one class, no packet has a Travel
    foreseen,  ///< as soon as the packet's Travel is
    adaptive   ///< when the packet is at the front of its virtual channel: some routers choose by the room that they see then
  };

  /// Both must outlive this.
  PacketRoutes(const topology::Mesh& mesh, const topology::RoutingPolicy& policy, unsigned virtual_channels,
               std::uint64_t seed);

  Kind kind() const { return kind_; }
  bool plain() const { return kind_ == Kind::plain; }

  /// The output of any packet; of plain policies.
  topology::Hop next(TileId at, TileId destination) const { return plain_.next(at, destination); }

  // Of all policies.
  unsigned classes() const { return static_cast<unsigned>(vcs_.size()); }
  topology::VcRange vcs(unsigned vc_class) const { return vcs_[vc_class]; }
  /// The VC of class `to` in the place that `vc` has in class `from`, counted round where there are fewer.
  unsigned vc_in_class(unsigned vc, unsigned from, unsigned to) const {
    return from == to ? vc : vcs_[to].first + (vc - vcs_[from].first) % vcs_[to].count;
  }

  /// The Travel, at the router of its source, of a packet; `number` as in topology::packet_draw().
  topology::Travel depart(TileId source, TileId destination, std::uint64_t number) const;
  /// The outputs that a packet at `at` may take. Not those of a plain policy.
  topology::OutputSet outputs(topology::Travel& travel, TileId at, topology::Hop came, TileId destination) const;
  /// Takes an output of those that are `offered` too, and makes `travel` what it is on the link behind. Of several, that with
  /// the most room in all VCs of the class that the packet has behind it, the first of these in the order of directions.
  /// `room(output, vcs)` counts it.
  template <class Room>
  topology::Hop take(topology::Travel& travel, TileId at, topology::Hop came, TileId destination,
                     topology::OutputSet offered, const Room& room) const {
    const auto set = static_cast<topology::OutputSet>(outputs(travel, at, came, destination) & offered);
    require_invariant(set != 0, "a packet reached a router without a way on");
    auto best = static_cast<topology::Hop>(std::countr_zero(set));
    if (best == topology::Hop::local) return best;
    topology::Travel onward = leave(travel, at, best);
    if (!std::has_single_bit(set)) {
      auto most = room(best, vcs_[onward.vc_class]);
      for (unsigned left = set & (set - 1U); left != 0; left &= left - 1) {
        const auto other = static_cast<topology::Hop>(std::countr_zero(left));
        const topology::Travel with_other = leave(travel, at, other);
        const auto there = room(other, vcs_[with_other.vc_class]);
        if (there <= most) continue;
        most = there;
        best = other;
        onward = with_other;
      }
    }
    travel = onward;
    return best;
  }

 private:
  topology::Travel leave(const topology::Travel& travel, TileId at, topology::Hop output) const {
    return restates_ ? policy_.leave(travel, at, output) : travel;
  }

  const topology::Mesh& mesh_;
  const topology::RoutingPolicy& policy_;
  std::uint64_t seed_;
  bool restates_;
  Kind kind_ = Kind::plain;
  RouteLookup plain_;
  std::vector<RouteLookup> lookups_;  ///< by class; without a routing function where packets choose
  std::vector<topology::VcRange> vcs_;  ///< by class
};

}  // namespace wafersim::sim
