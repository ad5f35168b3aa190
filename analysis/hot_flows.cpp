#include "analysis/hot_flows.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

namespace wafersim::analysis {
namespace {

/// Bytes by peer and axis.
using Sent = std::map<std::pair<std::uint32_t, workloads::Axis>, Bytes>;

Sent sent_by(const workloads::StepTemplate& step_template) {
  Sent sent;
  for (const workloads::Op& op : step_template.ops) {
    if (op.kind != workloads::OpKind::send && op.kind != workloads::OpKind::multicast) continue;
    for (const std::uint32_t peer : workloads::peers_of(step_template, op)) sent[{peer, op.axis}] += op.bytes;
  }
  return sent;
}

Sent sent_by(const workloads::Program& program, const std::vector<Sent>& by_template) {
  std::map<std::uint32_t, Bytes> instances;
  for (const workloads::Step& step : program.steps) ++instances[step.step_template];
  Sent sent;
  for (const auto& [index, count] : instances) {
    for (const auto& [key, bytes] : by_template[index]) sent[key] += count * bytes;
  }
  return sent;
}

std::vector<Flow> flows_of(const workloads::Trace& trace) {
  std::vector<Sent> by_template;
  for (const workloads::StepTemplate& step_template : trace.templates)
    by_template.push_back(sent_by(step_template));
  std::vector<Sent> by_program;
  for (const workloads::Program& program : trace.programs)
    by_program.push_back(sent_by(program, by_template));
  std::vector<Flow> flows;
  for (const workloads::TileBinding& binding : trace.tiles) {
    std::map<std::pair<TileId, workloads::Axis>, Bytes> sent;  // two peers of a tile may be one tile
    for (const auto& [key, bytes] : by_program[binding.program]) {
      sent[{trace.peer(binding, key.first), key.second}] += bytes;
    }
    for (const auto& [key, bytes] : sent) flows.push_back({binding.tile, key.first, key.second, bytes});
  }
  return flows;
}

bool heavier(const Flow& a, const Flow& b) {
  return std::tie(b.bytes, a.source, a.destination, a.axis) <
         std::tie(a.bytes, b.source, b.destination, b.axis);
}

}  // namespace

std::vector<LinkFlows> flows_across(const workloads::Trace& trace, const topology::Routing& routing,
                                    const topology::Mesh& mesh, const std::vector<topology::LinkId>& links,
                                    std::size_t most) {
  constexpr std::size_t kNotAsked = ~std::size_t{0};
  std::vector<std::size_t> place(mesh.link_slots(), kNotAsked);
  std::vector<LinkFlows> result(links.size());
  for (std::size_t i = 0; i < links.size(); ++i) {
    place[links[i]] = i;
    result[i].link = links[i];
  }
  for (const Flow& flow : flows_of(trace)) {
    for (const topology::LinkId link : topology::route(routing, mesh, flow.source, flow.destination)) {
      if (place[link] == kNotAsked) continue;
      LinkFlows& crossed = result[place[link]];
      ++crossed.flows;
      crossed.bytes += flow.bytes;
      crossed.heaviest.push_back(flow);
    }
  }
  for (LinkFlows& link : result) {
    const auto kept = static_cast<std::ptrdiff_t>(std::min(most, link.heaviest.size()));
    std::partial_sort(link.heaviest.begin(), link.heaviest.begin() + kept, link.heaviest.end(), heavier);
    link.heaviest.resize(static_cast<std::size_t>(kept));
  }
  return result;
}

}  // namespace wafersim::analysis
