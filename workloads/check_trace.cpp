#include <fmt/format.h>

#include <set>

#include "workloads/replay.h"

namespace wafersim::workloads {
namespace {

bool in_table(std::size_t index, std::size_t size) { return index < size; }

/// Indices of one template's operations.
class TemplateCheck {
 public:
  TemplateCheck(const Trace& trace, FaultList& faults) : trace_(trace), faults_(faults) {}

  void run(const StepTemplate& step_template) {
    for (std::size_t number = 0; number < step_template.ops.size(); ++number) {
      const char* fault = fault_of(step_template, number);
      if (fault == nullptr) continue;
      faults_.add([&] {
        return fmt::format("template {}: operation {} ({}): {}", step_template.name, number,
                           to_string(step_template.ops[number].kind), fault);
      });
    }
  }

 private:
  const char* fault_of(const StepTemplate& step_template, std::size_t number) const {
    const Op& op = step_template.ops[number];
    const std::size_t end = std::size_t{op.first_dependency} + op.dependency_count;
    if (end > step_template.dependencies.size()) return "dependencies out of range";
    for (std::size_t i = op.first_dependency; i < end; ++i) {
      if (step_template.dependencies[i] >= number)
        return "depends on an operation that is not an earlier one";
    }
    if (const char* fault = stream_fault(step_template, op)) return fault;
    if (!in_table(op.operand.tensor, trace_.tensors.size())) return "tensor out of range";
    if (!in_table(op.operand.meaning, trace_.meanings.size())) return "meaning out of range";
    switch (op.kind) {
      case OpKind::matrix:
      case OpKind::vector:
      case OpKind::reduce:
        return in_table(op.work, trace_.works.size()) ? nullptr : "work out of range";
      case OpKind::multicast:
        if (std::size_t{op.peer} + op.peer_count > step_template.receivers.size()) return "receivers out of range";
        if (op.peer_count == 0) return "a multicast to nobody";
        [[fallthrough]];
      case OpKind::send:
      case OpKind::receive:
        return op.bytes > 0 ? nullptr : "a message of 0 bytes";
      case OpKind::allocate:
      case OpKind::free:
        return nullptr;
    }
    return "unknown kind";
  }

  /// What an operation follows is as large as itself.
  static const char* stream_fault(const StepTemplate& step_template, const Op& op) {
    if (!op.follows) return nullptr;
    if (op.kind != OpKind::send && op.kind != OpKind::multicast) return "follows others, but sends nothing";
    for (std::uint32_t i = 0; i < op.dependency_count; ++i) {
      const Op& before = step_template.ops[step_template.dependencies[op.first_dependency + i]];
      if (follows(op, before) && before.bytes != op.bytes) return "follows a message of another size";
    }
    return nullptr;
  }

  const Trace& trace_;
  FaultList& faults_;
};

void check_program(const Trace& trace, std::size_t number, FaultList& faults) {
  const Program& program = trace.programs[number];
  for (std::size_t index = 0; index < program.steps.size(); ++index) {
    const Step& step = program.steps[index];
    const char* fault = nullptr;
    const std::size_t end = std::size_t{step.first_wait} + step.wait_count;
    if (!in_table(step.step_template, trace.templates.size())) fault = "template out of range";
    if (end > program.waits.size()) fault = "waits out of range";
    for (std::size_t i = step.first_wait; fault == nullptr && i < end; ++i) {
      if (program.waits[i] >= index) fault = "waits for a step that is not an earlier one";
    }
    if (fault != nullptr)
      faults.add([&] { return fmt::format("program {}: step {}: {}", number, index, fault); });
  }
}

/// The peers that the messages of each program name, ascending; of sound operations.
std::vector<std::vector<std::uint32_t>> named_peers(const Trace& trace) {
  std::vector<std::set<std::uint32_t>> of_template;
  for (const StepTemplate& step_template : trace.templates) {
    std::set<std::uint32_t>& named = of_template.emplace_back();
    for (const Op& op : step_template.ops) {
      if (op.kind == OpKind::multicast && !in_table(std::size_t{op.peer} + op.peer_count, step_template.receivers.size() + 1)) continue;
      const std::span<const std::uint32_t> peers = peers_of(step_template, op);
      named.insert(peers.begin(), peers.end());
    }
  }
  std::vector<std::vector<std::uint32_t>> of_program;
  for (const Program& program : trace.programs) {
    std::set<std::uint32_t> templates, named;
    for (const Step& step : program.steps) {
      if (in_table(step.step_template, of_template.size())) templates.insert(step.step_template);
    }
    for (const std::uint32_t number : templates)
      named.insert(of_template[number].begin(), of_template[number].end());
    of_program.emplace_back(named.begin(), named.end());
  }
  return of_program;
}

/// Which tiles of the mesh the trace uses, and that each binding is sound.
class BindingCheck {
 public:
  BindingCheck(const Trace& trace, const topology::Mesh& mesh, FaultList& faults)
      : trace_(trace),
        mesh_(mesh),
        faults_(faults),
        used_(mesh.tile_count(), false),
        named_(named_peers(trace)) {
    for (const TileBinding& binding : trace.tiles) {
      if (in_table(binding.tile, used_.size())) used_[binding.tile] = true;
    }
  }

  void run() {
    for (std::size_t i = 0; i < trace_.tiles.size(); ++i) {
      const TileBinding& binding = trace_.tiles[i];
      if (!in_table(binding.tile, used_.size())) {
        faults_.add([&] { return fmt::format("binding {}: tile {} is outside the mesh", i, binding.tile); });
        continue;
      }
      if (const char* fault = fault_of(i)) {
        faults_.add([&] { return fmt::format("{}: {}", mesh_.name(binding.tile), fault); });
      } else {
        check_peers(binding);
      }
    }
  }

 private:
  const char* fault_of(std::size_t i) const {
    const TileBinding& binding = trace_.tiles[i];
    if (i > 0 && trace_.tiles[i - 1].tile >= binding.tile) return "bindings do not ascend by tile";
    if (!mesh_.alive(binding.tile)) return "the tile is dead";
    if (!in_table(binding.program, trace_.programs.size())) return "program out of range";
    if (!in_table(binding.statics, trace_.statics.size())) return "static memory out of range";
    if (std::size_t{binding.first_peer} + binding.peer_count > trace_.peers.size())
      return "peers out of range";
    const auto& named = named_[binding.program];
    if (!named.empty() && named.back() >= binding.peer_count) {
      return "an operation names a peer that the tile does not have";
    }
    return nullptr;
  }

  void check_peers(const TileBinding& binding) {
    for (const std::uint32_t index : named_[binding.program]) {
      const TileId peer = trace_.peer(binding, index);
      if (in_table(peer, used_.size()) && used_[peer]) continue;
      const std::string name = in_table(peer, used_.size()) ? mesh_.name(peer) : fmt::format("tile {}", peer);
      faults_.add(
          [&] { return fmt::format("{}: peer {} does not run the trace", mesh_.name(binding.tile), name); });
    }
  }

  const Trace& trace_;
  const topology::Mesh& mesh_;
  FaultList& faults_;
  std::vector<bool> used_;
  std::vector<std::vector<std::uint32_t>> named_;
};

}  // namespace

void check_structure(const Trace& trace, const topology::Mesh& mesh, FaultList& faults) {
  TemplateCheck templates(trace, faults);
  for (const StepTemplate& step_template : trace.templates) templates.run(step_template);
  for (std::size_t number = 0; number < trace.programs.size(); ++number) check_program(trace, number, faults);
  BindingCheck(trace, mesh, faults).run();
}

std::vector<std::string> check_trace(const Trace& trace, const topology::Mesh& mesh, std::size_t limit) {
  FaultList faults(limit);
  check_structure(trace, mesh, faults);
  if (faults.texts().empty()) Replay(trace, mesh, faults).run();
  return faults.texts();
}

}  // namespace wafersim::workloads
