#pragma once

#include <memory>
#include <string>

#include "apps/command_line.h"
#include "config/scenario.h"
#include "models/hardware.h"
#include "sim/measurements.h"
#include "topology/mesh.h"
#include "topology/routing_policy.h"
#include "workloads/trace.h"

namespace wafersim::apps {

/// What `wafersim collective` and `wafersim kernel` have in common: a trace that is made without a plan, simulated.
class PlanlessRun {
 public:
  /// Loads the scenario. `section` is what it must have; refused is also what only plans can use.
  PlanlessRun(const ScenarioArguments& arguments, const std::string& section);

  const config::Scenario& scenario() const { return scenario_; }
  const models::HardwareModel& hardware() const { return hardware_; }
  const topology::Mesh& mesh() const { return mesh_; }
  /// Throws PlanError when packets could deadlock under the scenario's routing, before `make` is called for the trace.
  template <class Make>
  sim::Measurements simulate(const Make& make) const {
    const auto routing = safe_routing();
    return simulate(*routing, make());
  }

 private:
  std::unique_ptr<topology::RoutingPolicy> safe_routing() const;
  sim::Measurements simulate(const topology::RoutingPolicy& routing, const workloads::Trace& trace) const;

  config::Scenario scenario_;
  models::HardwareModel hardware_;
  topology::Mesh mesh_;
};

}  // namespace wafersim::apps
