#include "apps/prepared_run.h"

#include <fmt/format.h>

#include <vector>

#include "base/error.h"
#include "base/text.h"
#include "workloads/check_routes.h"

namespace wafersim::apps {
namespace {

std::unique_ptr<const topology::Routing> make_safe_routing(const std::string& name,
                                                           const topology::Mesh& mesh) {
  std::unique_ptr<const topology::Routing> routing = topology::make_routing(name, mesh);
  const std::vector<topology::LinkId> cycle = topology::find_dependency_cycle(*routing, mesh);
  if (cycle.empty()) return routing;
  std::vector<std::string> names;
  for (const topology::LinkId link : cycle) names.push_back(mesh.link_name(link));
  throw PlanError(
      fmt::format("router.routing: {} can deadlock on this mesh: packets on these links may wait for each "
                  "other in a circle: {}",
                  name, join(names)));
}

}  // namespace

PreparedRun::PreparedRun(const ScenarioArguments& arguments)
    : scenario(config::load_scenario(arguments.path, {arguments.overrides, {}})),
      hardware(models::resolve_hardware(scenario.wafer, scenario.router, scenario.network)),
      mesh(scenario.wafer.mesh),
      routing(make_safe_routing(hardware.routing, mesh)),
      plan(workloads::lower(
          {scenario.model, scenario.training, scenario.plan, scenario.placement, hardware, mesh})) {
  workloads::check_routes(plan.trace, mesh, *routing);
}

std::uint64_t live_tiles(const topology::Mesh& mesh) {
  std::uint64_t count = 0;
  for (TileId tile = 0; tile < mesh.tile_count(); ++tile) count += mesh.alive(tile) ? 1 : 0;
  return count;
}

}  // namespace wafersim::apps
