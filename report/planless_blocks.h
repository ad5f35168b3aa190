#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "sim/measurements.h"
#include "topology/mesh.h"

namespace wafersim::report {

/// What the reports of runs without a plan have in common. Private to this folder.

/// The link that carried most; null when none carried anything.
const sim::LinkMeasurement* busiest_link(const sim::Measurements& measurements);
/// Adds `messages` to `partial` and `engine`.
void add_network(nlohmann::ordered_json& json, const sim::Measurements& measurements, const topology::Mesh& mesh,
                 const std::string& fidelity);
/// Lines of packets and of the busiest link.
std::string network_text(const sim::Measurements& measurements, const topology::Mesh& mesh);

}  // namespace wafersim::report
