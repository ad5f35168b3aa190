#include "sim/compiled_trace.h"

#include <limits>

#include "base/error.h"

namespace wafersim::sim {
namespace {

using workloads::Op;
using workloads::OpKind;

/// What an operation waits for; an operation may be named several times. `list` is where it lies unless the template has it.
std::span<const std::uint32_t> waits_of(const workloads::StepTemplate& source, const Op& op, std::vector<std::uint32_t>& list) {
  if (!op.follows) return std::span(source.dependencies).subspan(op.first_dependency, op.dependency_count);
  list.clear();
  for (std::uint32_t i = 0; i < op.dependency_count; ++i) {
    const std::uint32_t before = source.dependencies[op.first_dependency + i];
    const Op& earlier = source.ops[before];
    if (!workloads::follows(op, earlier)) {
      list.push_back(before);
      continue;
    }
    const auto first = source.dependencies.begin() + earlier.first_dependency;
    list.insert(list.end(), first, first + earlier.dependency_count);
  }
  return list;
}

CompiledTemplate compile(const workloads::StepTemplate& source, const workloads::Trace& trace,
                         const models::ComputeCost& cost, const models::HardwareModel& hardware, Arena& arena) {
  CompiledTemplate out;
  out.source = &source;
  const std::size_t count = source.ops.size();
  out.dependency_counts = {arena.make_array<std::uint16_t>(count), count};
  out.ops = {arena.make_array<CompiledOp>(count), count};
  std::vector<std::uint32_t> following;
  std::size_t edges = 0;
  for (std::uint32_t i = 0; i < count; ++i) {
    const Op& op = source.ops[i];
    CompiledOp& compiled = out.ops[i];
    compiled.kind = op.kind;
    compiled.detached = op.detached;
    compiled.axis = op.axis;
    compiled.memory_class = op.memory_class;
    compiled.scope = op.scope;
    compiled.peer = op.peer;
    compiled.tensor = op.operand.tensor;
    compiled.bytes = op.bytes;
    compiled.streamed = op.streamed;
    compiled.forwards = op.follows || op.kind == OpKind::multicast;
    if (op.kind == OpKind::send || op.kind == OpKind::receive || op.kind == OpKind::multicast) compiled.key = channel_key(op);
    require_invariant(op.first_dependency + op.dependency_count <= source.dependencies.size(),
                      "a template's dependencies are out of range");
    for (std::uint32_t d = 0; d < op.dependency_count; ++d) {
      require_invariant(source.dependencies[op.first_dependency + d] < i, "an operation depends on a later one");
    }
    const std::span<const std::uint32_t> waits = waits_of(source, op, following);
    require_invariant(waits.size() <= std::numeric_limits<std::uint16_t>::max(),
                      "an operation has more than 65535 dependencies");
    out.dependency_counts[i] = static_cast<std::uint16_t>(waits.size());
    if (waits.empty()) out.roots.push_back(i);
    if (!op.detached) ++out.result_count;
    edges += waits.size();
    for (const std::uint32_t before : waits) ++out.ops[before].successor_count;
    if (op.kind == OpKind::matrix) out.in_order[static_cast<std::size_t>(Engine::matrix)].push_back(i);
    if (op.kind == OpKind::vector) out.in_order[static_cast<std::size_t>(Engine::vector)].push_back(i);
    if (op.kind == OpKind::matrix || op.kind == OpKind::vector || op.kind == OpKind::reduce) {
      const workloads::Work& work = trace.works.at(op.work);
      out.work.add(op.kind, work);
      compiled.sram_cycles = 0;
      compiled.compute_cycles = op.kind == OpKind::matrix ? cost.gemm(work.gemm) : cost.vector(work.vector_flops);
      if (hardware.sram_bytes_per_cycle) compiled.sram_cycles = cycles_at_rate(work.sram_bytes, *hardware.sram_bytes_per_cycle);
    }
  }
  for (std::size_t i = 1; i < count; ++i) {
    out.ops[i].first_successor = out.ops[i - 1].first_successor + out.ops[i - 1].successor_count;
  }
  out.successors = {arena.make_array<std::uint32_t>(edges), edges};
  std::vector<std::uint32_t> fill;
  fill.reserve(count);
  for (const CompiledOp& op : out.ops) fill.push_back(op.first_successor);
  for (std::uint32_t i = 0; i < count; ++i) {
    for (const std::uint32_t before : waits_of(source, source.ops[i], following)) out.successors[fill[before]++] = i;
  }
  for (CompiledOp& op : out.ops) {
    if (op.successor_count != 0) op.next = out.successors[op.first_successor];
  }
  return out;
}

}  // namespace

void WorkTotals::add(const WorkTotals& other, std::uint64_t times) {
  matrix_flops += times * other.matrix_flops;
  vector_flops += times * other.vector_flops;
  sram_bytes += times * other.sram_bytes;
}

WorkTotals& WorkTotals::operator-=(const WorkTotals& other) {
  matrix_flops -= other.matrix_flops;
  vector_flops -= other.vector_flops;
  sram_bytes -= other.sram_bytes;
  return *this;
}

void WorkTotals::add(OpKind kind, const workloads::Work& work) {
  if (kind == OpKind::matrix) {
    matrix_flops += work.gemm.flops();
  } else if (kind == OpKind::vector || kind == OpKind::reduce) {
    vector_flops += work.vector_flops;
  } else {
    return;
  }
  sram_bytes += work.sram_bytes;
}

std::uint64_t step_key(workloads::MatchScope scope, const workloads::Step& step) {
  Op op;
  op.scope = scope;
  return workloads::message_key(op, step);
}

/// Every part of a key has bits of its own, so what a channel adds is the same in every step.
std::uint64_t channel_key(const Op& op) { return workloads::message_key(op, {}) ^ step_key(op.scope, {}); }

CompiledTrace::CompiledTrace(const workloads::Trace& trace, const models::HardwareModel& hardware) : trace_(trace) {
  const models::ComputeCost cost(hardware);
  templates_.reserve(trace.templates.size());
  for (const workloads::StepTemplate& step_template : trace.templates) {
    templates_.push_back(compile(step_template, trace, cost, hardware, arena_));
  }
  for (const workloads::MemoryLayout& layout : trace.layouts) {
    require_invariant(hardware.dram_capacity != 0 || layout == workloads::MemoryLayout{},
                      "a tile uses DRAM on hardware without DRAM");
  }
  std::vector<std::uint64_t> program_operations;
  for (const workloads::Program& program : trace.programs) {
    std::uint64_t operations = 0;
    WorkTotals& work = program_work_.emplace_back();
    for (const workloads::Step& step : program.steps) {
      operations += trace.templates.at(step.step_template).ops.size();
      work.add(templates_[step.step_template].work);
    }
    program_operations.push_back(operations);
  }
  for (const workloads::TileBinding& binding : trace.tiles) total_operations_ += program_operations.at(binding.program);
}

}  // namespace wafersim::sim
