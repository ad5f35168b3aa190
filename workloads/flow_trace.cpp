#include "workloads/flow_trace.h"

#include <algorithm>
#include <map>
#include <optional>

namespace wafersim::workloads {
namespace {

/// The messages of one tile, by index of the flow.
struct Endpoint {
  std::vector<std::uint32_t> sends;
  std::vector<std::uint32_t> receives;
};

/// Builds the one step of one tile.
class FlowStep {
 public:
  FlowStep(Trace& trace, TileBinding& binding) : trace_(trace), binding_(binding) { template_.name = "flows"; }

  void message(OpKind kind, TileId peer, const Flow& flow, std::uint32_t channel) {
    Op op;
    op.kind = kind;
    op.axis = flow.axis;
    op.bytes = flow.bytes;
    op.channel = channel;
    op.peer = binding_.peer_count++;
    trace_.peers.push_back(peer);
    add(op, kind == OpKind::send);
  }

  /// Lets time pass before the next send.
  void wait_until(Cycle time) {
    if (time <= time_) return;
    Op op;
    op.kind = OpKind::vector;
    op.work = static_cast<std::uint32_t>(trace_.works.size());
    trace_.works.push_back({{}, time - time_, 0, 0});
    delay_ = add(op, true);
    time_ = time;
  }

  StepTemplate finish() { return std::move(template_); }

 private:
  std::uint32_t add(Op op, bool after_delay) {
    op.first_dependency = static_cast<std::uint32_t>(template_.dependencies.size());
    if (after_delay && delay_) {
      template_.dependencies.push_back(*delay_);
      op.dependency_count = 1;
    }
    template_.ops.push_back(op);
    return static_cast<std::uint32_t>(template_.ops.size() - 1);
  }

  Trace& trace_;
  TileBinding& binding_;
  StepTemplate template_;
  std::optional<std::uint32_t> delay_;
  Cycle time_ = 0;
};

}  // namespace

Trace flow_trace(const std::vector<Flow>& flows) {
  std::map<TileId, Endpoint> endpoints;
  for (std::uint32_t i = 0; i < flows.size(); ++i) {
    endpoints[flows[i].source].sends.push_back(i);
    endpoints[flows[i].destination].receives.push_back(i);
  }
  Trace trace;
  trace.statics.emplace_back();
  for (auto& [tile, endpoint] : endpoints) {
    std::stable_sort(endpoint.sends.begin(), endpoint.sends.end(),
                     [&](std::uint32_t a, std::uint32_t b) { return flows[a].start < flows[b].start; });
    TileBinding binding;
    binding.tile = tile;
    binding.first_peer = static_cast<std::uint32_t>(trace.peers.size());
    FlowStep step(trace, binding);
    for (const std::uint32_t i : endpoint.receives) step.message(OpKind::receive, flows[i].source, flows[i], i);
    for (const std::uint32_t i : endpoint.sends) {
      step.wait_until(flows[i].start);
      step.message(OpKind::send, flows[i].destination, flows[i], i);
    }
    Program program;
    program.steps.emplace_back();
    program.steps.back().step_template = static_cast<std::uint32_t>(trace.templates.size());
    trace.templates.push_back(step.finish());
    binding.program = static_cast<std::uint32_t>(trace.programs.size());
    trace.programs.push_back(std::move(program));
    trace.tiles.push_back(binding);
  }
  return trace;
}

}  // namespace wafersim::workloads
