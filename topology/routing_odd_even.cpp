#include "topology/adaptive_routing.h"
#include "topology/routing_policies.h"

namespace wafersim::topology {
namespace {

using enum Direction;

constexpr bool odd(int column) { return column % 2 != 0; }
constexpr bool vertical(Direction direction) { return direction == north || direction == south; }

/// The odd-even turn model (Chiu, "The odd-even turn model for adaptive routing", 2000), columns counted from
/// 0: no packet turns from eastward into northward or southward travel in an even column, nor from northward
/// or southward into westward travel in an odd one.
class OddEvenRule final : public AdaptiveRule {
 public:
  bool permits(Coord at, Direction in, Direction out) const override {
    if (out == opposite(in)) return false;
    if (in == east && vertical(out)) return odd(at.x);
    if (vertical(in) && out == west) return !odd(at.x);
    return true;
  }

  /// Function ROUTE of the paper. It asks for the column of the source, where an eastbound packet has not
  /// gone eastward yet and so need not turn; whether it came eastward says the same.
  OutputSet outputs(Coord at, Hop came, Coord destination) const override {
    const auto [row, column] = productive(at, destination);
    if (!row) return turn_bit(*column);
    if (!column) return turn_bit(*row);
    if (*row == west) {
      // In an odd column it could not turn west any more.
      return odd(at.x) ? turn_bit(west) : turn_bit(west) | turn_bit(*column);
    }
    OutputSet outputs = 0;
    if (odd(at.x) || came != Hop::east) outputs |= turn_bit(*column);
    // It must turn in the destination's column, or before it.
    if (odd(destination.x) || destination.x - at.x != 1) outputs |= turn_bit(east);
    return outputs;
  }
};

}  // namespace

std::unique_ptr<RoutingPolicy> make_odd_even_routing(const Mesh& mesh) {
  return make_adaptive_routing(mesh, "odd_even", std::make_unique<OddEvenRule>());
}

}  // namespace wafersim::topology
