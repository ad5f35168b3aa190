#include "workloads/trace_demands.h"

#include <map>
#include <utility>

#include "topology/link_loads.h"

namespace wafersim::workloads {
namespace {

/// Bytes by peer.
using Sent = std::map<std::uint32_t, Bytes>;

Sent sent_by(const StepTemplate& step_template) {
  Sent sent;
  for (const Op& op : step_template.ops) {
    if (op.kind == OpKind::receive) continue;
    for (const std::uint32_t peer : peers_of(step_template, op)) sent[peer] += op.bytes;
  }
  return sent;
}

Sent sent_by(const Program& program, const std::vector<Sent>& by_template) {
  std::map<std::uint32_t, Bytes> instances;
  for (const Step& step : program.steps) {
    if (step.iteration == 0) ++instances[step.step_template];
  }
  Sent sent;
  for (const auto& [index, count] : instances) {
    for (const auto& [peer, bytes] : by_template[index]) sent[peer] += count * bytes;
  }
  return sent;
}

}  // namespace

topology::Demands demands_of(const Trace& trace) {
  std::vector<Sent> by_template;
  for (const StepTemplate& step_template : trace.templates) by_template.push_back(sent_by(step_template));
  std::vector<Sent> by_program;
  for (const Program& program : trace.programs) by_program.push_back(sent_by(program, by_template));
  topology::Demands demands;
  for (const TileBinding& binding : trace.tiles) {
    for (const auto& [peer, bytes] : by_program[binding.program]) {
      demands.push_back({binding.tile, trace.peer(binding, peer), bytes});
    }
  }
  return topology::merged(std::move(demands));
}

}  // namespace wafersim::workloads
