#include <array>

#include "topology/live_turns.h"
#include "topology/routing_policies.h"

namespace wafersim::topology {
namespace {

/// Corrects one coordinate completely before the other, each the shorter way. On a ring of even length two ways
/// may be equally long: tiles whose coordinates add up to an even number then send to the east and south, the others
/// to the west and north, which loads both ways alike.
///
/// The links of a ring wait for each other in a circle, so there are two classes of virtual channels (Dally and
/// Seitz 1987). The dateline of a ring lies on the links between its last and its first tile. A packet that is going
/// to cross it travels in class 0 up to and on that link and in class 1 behind it. One that is not may take either
/// class, for the whole dimension the one that the parity of its destination names: class 0 is never left for class
/// 0 over the dateline, and class 1 never uses the dateline's link, so neither closes a circle along the ring. The
/// second dimension starts anew. Knows no way around a dead link.
class RingOrderRouting final : public Routing {
 public:
  RingOrderRouting(const Mesh& mesh, std::string name, Dimension first)
      : mesh_(mesh),
        name_(std::move(name)),
        first_(first),
        second_(first == Dimension::x ? Dimension::y : Dimension::x),
        lengths_{mesh.router_grid().cols, mesh.router_grid().rows} {
    for (TileId tile = 0; tile < mesh.tile_count(); ++tile) {
      const Coord at = mesh.router_coord(tile);
      places_.push_back({at.x, at.y});
    }
  }

  const std::string& name() const override { return name_; }
  unsigned vc_classes() const override { return 2; }
  bool restates() const override { return true; }

  Hop next(TileId at, TileId destination) const override {
    const std::optional<Direction> output = wanted(at, destination);
    if (!output) return Hop::local;
    if (mesh_.has_faults() && !mesh_.link_alive(Mesh::link(at, *output))) return Hop::unreachable;
    return to_hop(*output);
  }

  std::optional<Direction> blocked_output(TileId at, TileId destination) const override {
    return wanted(at, destination);
  }

  Travel depart(TileId, TileId destination, std::uint64_t) const override {
    return {destination, either_class(destination)};
  }

  /// The note of a packet names the dimension along which it goes.
  Travel leave(const Travel& travel, TileId at, Hop output) const override {
    const auto out = static_cast<Direction>(output);
    const auto along = static_cast<std::uint8_t>(1 + index(axis_of(out)));
    Travel next = travel;
    if (travel.note != along) {
      next.note = along;
      next.vc_class = crosses(at, travel.target, out) ? 0 : either_class(travel.target);
    } else if (behind_dateline(at, out)) {
      next.vc_class = 1;
    }
    return next;
  }

  TurnSets permitted_turns(const Mesh& mesh) const override {
    return live_turns(mesh, [this](LinkId link, TileId, Direction out) { return turns(link, out); });
  }

  TurnSets class_turns(const Mesh& mesh, unsigned vc_class) const override {
    return handover_turns(mesh, vc_class, vc_class);
  }

  TurnSets handover_turns(const Mesh& mesh, unsigned from_class, unsigned to_class) const override {
    return live_turns(mesh, [&](LinkId link, TileId through, Direction out) {
      const bool over = is_dateline(link);
      if (!turns(link, out) || (from_class == 1 && over)) return false;
      if (to_class == 1 && is_dateline(Mesh::link(through, out))) return false;
      if (out != Mesh::link_direction(link)) return true;  // the second dimension starts in either class
      return over ? to_class == 1 : to_class == from_class;
    });
  }

 private:
  using Place = std::array<int, 2>;  ///< by dimension

  static constexpr std::size_t index(Dimension dimension) { return static_cast<std::size_t>(dimension); }
  bool is_even(TileId tile) const { return (places_[tile][0] + places_[tile][1]) % 2 == 0; }
  std::uint8_t either_class(TileId destination) const { return is_even(destination) ? 0 : 1; }

  std::optional<Direction> step(Dimension along, TileId at, TileId destination) const {
    const int ahead = places_[destination][index(along)] - places_[at][index(along)];
    if (ahead == 0) return std::nullopt;
    bool up = ahead > 0;
    if (mesh_.wraps(along)) {
      const int length = lengths_[index(along)];
      const int steps_up = up ? ahead : ahead + length;
      up = 2 * steps_up < length || (2 * steps_up == length && is_even(at));
    }
    if (along == Dimension::x) return up ? Direction::east : Direction::west;
    return up ? Direction::south : Direction::north;
  }

  std::optional<Direction> wanted(TileId at, TileId destination) const {
    const std::optional<Direction> output = step(first_, at, destination);
    return output ? output : step(second_, at, destination);
  }

  /// A packet that starts in direction `out` for a destination is to cross the dateline.
  bool crosses(TileId at, TileId destination, Direction out) const {
    const std::size_t along = index(axis_of(out));
    const int from = places_[at][along], to = places_[destination][along];
    return mesh_.wraps(axis_of(out)) && (is_upwards(out) ? to < from : to > from);
  }

  /// The tile at which packets of direction `out` come out from the dateline.
  bool behind_dateline(TileId at, Direction out) const {
    const std::size_t along = index(axis_of(out));
    return mesh_.wraps(axis_of(out)) && places_[at][along] == (is_upwards(out) ? 0 : lengths_[along] - 1);
  }
  bool is_dateline(LinkId link) const {
    const Direction out = Mesh::link_direction(link);
    return behind_dateline(mesh_.neighbour(Mesh::link_source(link), out), out);
  }

  /// Some route goes on from `link` by `out`.
  bool turns(LinkId link, Direction out) const {
    const Direction in = Mesh::link_direction(link);
    if (out == in) return !mesh_.wraps(axis_of(in)) || goes_two_steps(Mesh::link_source(link), in);
    return axis_of(in) == first_ && axis_of(out) == second_;
  }

  /// Along a ring: in one of five tiles and more for every start, in one of four only for those whose ties go there.
  bool goes_two_steps(TileId start, Direction direction) const {
    const int length = lengths_[index(axis_of(direction))];
    return length >= 5 || (length == 4 && is_upwards(direction) == is_even(start));
  }

  const Mesh& mesh_;
  std::string name_;
  Dimension first_;
  Dimension second_;
  std::array<int, 2> lengths_;  ///< tiles along each dimension
  std::vector<Place> places_;   ///< by tile
};

}  // namespace

std::unique_ptr<Routing> make_ring_order_routing(const Mesh& mesh, std::string name, Dimension first) {
  return std::make_unique<RingOrderRouting>(mesh, std::move(name), first);
}

}  // namespace wafersim::topology
