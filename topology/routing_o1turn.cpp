#include "topology/blocked_way.h"
#include "topology/link_loads.h"
#include "topology/pair_loads.h"
#include "topology/routing.h"
#include "topology/routing_policies.h"

namespace wafersim::topology {
namespace {

/// Half of the packets go by xy, half by yx (Seo et al., "Near-optimal worst-case throughput routing for
/// two-dimensional mesh networks", 2005). Each half has a class of its own: together they could wait in a
/// circle.
class O1TurnRouting final : public RoutingPolicy {
 public:
  explicit O1TurnRouting(const Mesh& mesh) : xy_(make_xy_routing(mesh)), yx_(make_yx_routing(mesh)) {
    if (!mesh.has_faults()) return;
    for (const Routing* routing : {xy_.get(), yx_.get()}) require_live_routes(*routing, mesh);
  }

  const std::string& name() const override {
    static const std::string text = "o1turn";
    return text;
  }
  unsigned vc_classes() const override { return 2; }
  bool draws() const override { return true; }
  Travel depart(TileId, TileId destination, std::uint64_t draw) const override {
    return {destination, static_cast<std::uint8_t>(draw >> 63)};
  }
  const Routing* fixed(unsigned vc_class) const override { return vc_class == 0 ? xy_.get() : yx_.get(); }
  OutputSet outputs(TileId at, Hop came, const Travel& travel) const override {
    return fixed(travel.vc_class)->outputs(at, came, travel);
  }
  TurnSets class_turns(const Mesh& mesh, unsigned vc_class) const override {
    return fixed(vc_class)->permitted_turns(mesh);
  }

  ExpectedLoads expected_loads(const Mesh& mesh, const Demands& demands) const override {
    return halved(link_loads(*xy_, mesh, demands), link_loads(*yx_, mesh, demands));
  }
  std::optional<ExpectedLoads> uniform_loads(const Mesh& mesh) const override {
    return halved(xy_->uniform_loads(mesh)->parts, yx_->uniform_loads(mesh)->parts);
  }

 private:
  static ExpectedLoads halved(LinkBytes loads, const LinkBytes& others) {
    for (std::size_t link = 0; link < loads.size(); ++link) loads[link] += others[link];
    return {std::move(loads), 2};
  }

  /// Where a route is blocked, the one from there is, too: only first hops need be asked for.
  void require_live_routes(const Routing& routing, const Mesh& mesh) const {
    for (TileId destination = 0; destination < mesh.tile_count(); ++destination) {
      for (TileId at = 0; at < mesh.tile_count(); ++at) {
        if (!mesh.has_router(at) || !mesh.has_router(destination)) continue;
        if (routing.next(at, destination) != Hop::unreachable) continue;
        throw blocked_way(*this, mesh, at, destination,
                          Mesh::link(at, *routing.blocked_output(at, destination)));
      }
    }
  }

  std::unique_ptr<Routing> xy_;
  std::unique_ptr<Routing> yx_;
};

}  // namespace

std::unique_ptr<RoutingPolicy> make_o1turn_routing(const Mesh& mesh) {
  return std::make_unique<O1TurnRouting>(mesh);
}

}  // namespace wafersim::topology
