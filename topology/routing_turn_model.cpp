#include "topology/adaptive_routing.h"
#include "topology/routing_policies.h"

namespace wafersim::topology {
namespace {

using enum Direction;

/// All minimal routes that keep to a turn model. A packet that needs both a row and a column direction takes
/// the turns between these two only: it may go either way while both are permitted, else first the way that
/// it may turn from.
class TurnModelRule final : public AdaptiveRule {
 public:
  explicit TurnModelRule(TurnModel model) : model_(std::move(model)) {}

  bool permits(Coord, Direction in, Direction out) const override { return model_.permits(in, out); }

  OutputSet outputs(Coord at, Hop, Coord destination) const override {
    const auto [row, column] = productive(at, destination);
    if (!column) return turn_bit(*row);
    if (!row) return turn_bit(*column);
    OutputSet outputs = 0;
    if (model_.permits(*row, *column)) outputs |= turn_bit(*row);
    if (model_.permits(*column, *row)) outputs |= turn_bit(*column);
    return outputs;
  }

 private:
  TurnModel model_;
};

std::unique_ptr<RoutingPolicy> make(const Mesh& mesh, const char* name, const TurnModel& model) {
  return make_adaptive_routing(mesh, name, std::make_unique<TurnModelRule>(model));
}

}  // namespace

/// No turn into westward travel (Glass and Ni 1992, section 3.1).
std::unique_ptr<RoutingPolicy> make_west_first_routing(const Mesh& mesh) {
  return make(mesh, "west_first", {"west_first", {south, west}, {north, west}});
}

/// No turn out of northward travel (section 3.2).
std::unique_ptr<RoutingPolicy> make_north_last_routing(const Mesh& mesh) {
  return make(mesh, "north_last", {"north_last", {north, east}, {north, west}});
}

/// No turn from a positive direction into a negative one (section 3.3). Here y counts southwards: negative
/// are west and north.
std::unique_ptr<RoutingPolicy> make_negative_first_routing(const Mesh& mesh) {
  return make(mesh, "negative_first", {"negative_first", {south, west}, {east, north}});
}

}  // namespace wafersim::topology
