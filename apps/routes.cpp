#include "apps/routes.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/error.h"
#include "base/text.h"

namespace wafersim::apps {

bool is_fixed(const std::string& routing) {
  const std::vector<std::string>& fixed = topology::routing_names();
  return std::find(fixed.begin(), fixed.end(), routing) != fixed.end();
}

std::string deadlock_text(const std::string& routing, const topology::DependencyVerdict& verdict,
                          const topology::Mesh& mesh) {
  return fmt::format(
      "router.routing: {} can deadlock on this mesh with {} of virtual channels: packets on these links "
      "may wait for each other in a circle: {}",
      routing, verdict.classes == 1 ? "one class" : fmt::format("{} classes", verdict.classes),
      topology::cycle_text(verdict, mesh));
}

void check_deadlock_free(const models::HardwareModel& hardware, const topology::RoutingPolicy& policy,
                         const topology::Mesh& mesh) {
  const auto channels = static_cast<unsigned>(hardware.virtual_channels);
  const topology::DependencyVerdict verdict = topology::check_dependencies(policy, mesh, channels);
  if (!verdict.acyclic()) throw PlanError(deadlock_text(hardware.routing, verdict, mesh));
}

std::unique_ptr<topology::Routing> make_safe_routing(const models::HardwareModel& hardware, const topology::Mesh& mesh) {
  if (!is_fixed(hardware.routing)) {
    throw PlanError(
        fmt::format("router.routing: '{}' cannot be simulated in this version, only examined by `wafersim "
                    "topology`; valid: {}",
                    hardware.routing, join(topology::routing_names())));
  }
  std::unique_ptr<topology::Routing> routing = topology::make_routing(hardware.routing, mesh);
  check_deadlock_free(hardware, *routing, mesh);
  return routing;
}

}  // namespace wafersim::apps
