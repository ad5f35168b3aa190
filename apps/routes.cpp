#include "apps/routes.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"

namespace wafersim::apps {

void check_deadlock_free(const std::string& name, const topology::Routing& routing, const topology::Mesh& mesh) {
  const std::vector<topology::LinkId> cycle = topology::find_dependency_cycle(routing, mesh);
  if (cycle.empty()) return;
  std::vector<std::string> names;
  for (const topology::LinkId link : cycle) names.push_back(mesh.link_name(link));
  throw PlanError(
      fmt::format("router.routing: {} can deadlock on this mesh: packets on these links may wait for each "
                  "other in a circle: {}",
                  name, join(names)));
}

std::unique_ptr<topology::Routing> make_safe_routing(const std::string& name, const topology::Mesh& mesh) {
  std::unique_ptr<topology::Routing> routing = topology::make_routing(name, mesh);
  check_deadlock_free(name, *routing, mesh);
  return routing;
}

}  // namespace wafersim::apps
