#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "topology/demand.h"
#include "topology/mesh.h"

namespace wafersim::topology {

class Routing;
struct ExpectedLoads;

/// Where a packet goes next: one of the directions, numbered as they are, or `local` when it is at its destination.
enum class Hop : std::uint8_t { north = 0, east = 1, south = 2, west = 3, local = kDirections, unreachable = kDirections + 1 };

constexpr Hop to_hop(Direction direction) { return static_cast<Hop>(direction); }
/// The direction of a hop to a neighbour; nothing for `local` and `unreachable`.
constexpr std::optional<Direction> to_direction(Hop hop) {
  if (hop >= Hop::local) return std::nullopt;
  return static_cast<Direction>(hop);
}

/// A set of outputs: output_bit() of each. `local` stands alone; nothing in it means unreachable.
using OutputSet = std::uint16_t;
constexpr OutputSet output_bit(Hop hop) { return static_cast<OutputSet>(1U << static_cast<unsigned>(hop)); }
constexpr OutputSet turn_bit(Direction out) { return output_bit(to_hop(out)); }

/// By link slot: the set of outputs, a turn_bit each, that a packet which came over this link may leave by.
using TurnSets = std::vector<OutputSet>;

/// What a packet carries of its routing: made by RoutingPolicy::depart(), kept up by arrive() and
/// RoutingPolicy::leave(). Plain data.
struct Travel {
  TileId target = kNoTile;  ///< where it is routed to at present: its destination, or a tile on the way there
  std::uint8_t vc_class = 0;  ///< it uses the virtual channels of vcs_of_class()
  std::uint8_t note = 0;      ///< for the policy's own use
  bool operator==(const Travel&) const = default;
};
static_assert(sizeof(Travel) <= 8);

/// To be called wherever a packet is, its source included, before its output is asked for: at a target that
/// is not its destination it goes on to that in the next class. Whether it does.
/// `at` is the tile that the router goes by, as targets on the way are.
inline bool arrive(Travel& travel, TileId at, TileId destination) {
  if (at != travel.target || at == destination) return false;
  travel.target = destination;
  ++travel.vc_class;
  return true;
}

/// How packets find their way on one mesh. What a packet may do depends on where it is, the direction it came
/// in, and its Travel. Stateless after construction, safe to call from many threads.
///
/// At each tile, in this order: arrive() where a target may be reached on the way; outputs(), or next() of
/// fixed(), one of which is taken; leave() with it. The class that leave() returns is that of the channel
/// behind the output. The next tile goes on with that Travel.
///
/// Policies are of three kinds. Fixed: derived from Routing, the output is a function of place and
/// destination. Drawn: a packet's random number decides in depart(), from then on its way is fixed. Adaptive:
/// outputs() may hold several, all of which lead on; the router takes the one that it likes.
class RoutingPolicy {
 public:
  virtual ~RoutingPolicy() = default;
  virtual const std::string& name() const = 0;

  /// Disjoint classes of virtual channels that it needs to be free of deadlock, 1 or more. Travel counts them
  /// from 0.
  virtual unsigned vc_classes() const { return 1; }
  /// Whether depart() looks at `draw`.
  virtual bool draws() const { return false; }
  /// How a packet starts at its source. `draw` is packet_draw() of the packet.
  virtual Travel depart(TileId source, TileId destination, std::uint64_t draw) const;

  /// Whether leave() changes anything: who asks for every packet at every router leaves the call out if not.
  virtual bool restates() const { return false; }
  /// The Travel with which a packet that has `travel` at `at` goes over the link of `output`, a direction.
  /// Where classes depend on the link and not only on the packet, they change here: on rings, say, from the
  /// link across the dateline on.
  virtual Travel leave(const Travel& travel, TileId at, Hop output) const;

  /// The routing function by which packets of a class find their target; nullptr for adaptive policies. Those
  /// who ask for every packet at every router ask this one, without a virtual call where it is
  /// straight_first().
  virtual const Routing* fixed(unsigned vc_class) const = 0;
  /// The outputs by which a packet may leave `at`; `local` at its target. `came` is the direction in which it
  /// entered (east: from its western neighbour), `local` where it was injected or, after arrive(), starts
  /// anew.
  virtual OutputSet outputs(TileId at, Hop came, const Travel& travel) const = 0;

  /// The turns (going straight on included) from a link over which packets go in a class to one over which
  /// they go in the same class: at least those that outputs() permits.
  virtual TurnSets class_turns(const Mesh& mesh, unsigned vc_class) const = 0;
  /// From the links of one class to those of another: turns with arrive() or leave(). None unless a policy
  /// says so.
  virtual TurnSets handover_turns(const Mesh& mesh, unsigned from_class, unsigned to_class) const;

  /// What demands load the links with: exact where routes are fixed, the mean over all draws, or, where
  /// packets choose, as if the bytes were split evenly at each tile. Throws PlanError when a demand has no
  /// live route.
  virtual ExpectedLoads expected_loads(const Mesh& mesh, const Demands& demands) const = 0;
  /// The same when each live tile sends each other one a byte; nothing where that depends on the packets'
  /// choices. Throws PlanError when some pair has no live route.
  virtual std::optional<ExpectedLoads> uniform_loads(const Mesh& mesh) const = 0;
};

/// The random number of a packet: the `number`-th that `source` sends to `destination`, counted in whatever
/// way does not depend on the order in which events of a cycle are visited.
std::uint64_t packet_draw(std::uint64_t seed, TileId source, TileId destination, std::uint64_t number);

/// Virtual channels first .. first + count - 1.
struct VcRange {
  unsigned first = 0;
  unsigned count = 0;
  bool operator==(const VcRange&) const = default;
};
/// The share of class c of n: from floor(c V / n) to before floor((c + 1) V / n) of V virtual channels. With
/// fewer channels than classes some classes share one, the first of that range: check_dependencies() says
/// whether they may.
VcRange vcs_of_class(unsigned vc_class, unsigned vc_classes, unsigned virtual_channels);

/// The names that make_routing_policy accepts: those of make_routing first.
const std::vector<std::string>& routing_policy_names();

/// Makes the policy `name` on `mesh` (which must outlive it): what make_routing makes, or
/// * `o1turn`: `xy` or `yx`, drawn for each packet, each in a class of its own;
/// * `valiant`: to a tile drawn for each packet, and from there to the destination;
/// * `west_first`, `north_last`, `negative_first`, `odd_even`: minimal and partially adaptive.
/// These know no rings, and but for the first two no express links; `balanced` knows neither these nor shared routers: they throw
/// PlanError. Throws PlanError for an unknown name; as make_routing does; when dead tiles or links block all permitted
/// ways of some pair of live tiles (names the pair and what is dead; `valiant`: only when they cut the mesh
/// apart).
std::unique_ptr<RoutingPolicy> make_routing_policy(const std::string& name, const Mesh& mesh,
                                                   const Demands& demands = {});

}  // namespace wafersim::topology
