#include "workloads/check_routes.h"

#include <set>

namespace wafersim::workloads {
namespace {

/// The peers, by index, to which a program sends.
std::set<std::uint32_t> receivers_of(const Program& program, const Trace& trace) {
  std::set<std::uint32_t> templates;
  for (const Step& step : program.steps) templates.insert(step.step_template);
  std::set<std::uint32_t> peers;
  for (const std::uint32_t index : templates) {
    for (const Op& op : trace.templates[index].ops) {
      if (op.kind == OpKind::receive) continue;
      const std::span<const std::uint32_t> to = peers_of(trace.templates[index], op);
      peers.insert(to.begin(), to.end());
    }
  }
  return peers;
}

}  // namespace

void check_routes(const Trace& trace, const topology::Mesh& mesh, const topology::RoutingPolicy& routing) {
  if (!mesh.has_faults()) return;
  std::vector<std::set<std::uint32_t>> receivers;
  for (const Program& program : trace.programs) receivers.push_back(receivers_of(program, trace));
  for (const TileBinding& binding : trace.tiles) {
    for (const std::uint32_t peer : receivers[binding.program]) {
      topology::require_way(routing, mesh, binding.tile, trace.peer(binding, peer));
    }
  }
}

}  // namespace wafersim::workloads
