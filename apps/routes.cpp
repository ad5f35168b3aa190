#include "apps/routes.h"

#include <fmt/format.h>

#include "base/error.h"

namespace wafersim::apps {

std::string deadlock_text(const topology::RoutingPolicy& policy, const topology::DependencyVerdict& verdict,
                          const topology::Mesh& mesh) {
  const std::optional<unsigned> enough = topology::channels_without_cycle(policy, mesh);
  return fmt::format(
      "router.routing: {} can deadlock on this mesh with {} of virtual channels: packets on these links "
      "may wait for each other in a circle: {}{}",
      policy.name(), verdict.classes == 1 ? "one class" : fmt::format("{} classes", verdict.classes),
      topology::cycle_text(verdict, mesh),
      enough ? fmt::format("; valid: router.virtual_channels of {} or more", *enough) : "");
}

void check_deadlock_free(const models::HardwareModel& hardware, const topology::RoutingPolicy& policy,
                         const topology::Mesh& mesh) {
  const auto channels = static_cast<unsigned>(hardware.virtual_channels);
  const topology::DependencyVerdict verdict = topology::check_dependencies(policy, mesh, channels);
  if (!verdict.acyclic()) throw PlanError(deadlock_text(policy, verdict, mesh));
}

std::unique_ptr<topology::RoutingPolicy> make_safe_routing(const models::HardwareModel& hardware,
                                                           const topology::Mesh& mesh) {
  std::unique_ptr<topology::RoutingPolicy> policy = topology::make_routing_policy(hardware.routing, mesh);
  check_deadlock_free(hardware, *policy, mesh);
  return policy;
}

}  // namespace wafersim::apps
