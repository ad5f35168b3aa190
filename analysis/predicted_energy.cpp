#include "analysis/predicted_energy.h"

#include <algorithm>
#include <array>
#include <map>
#include <tuple>

#include "sim/compiled_trace.h"

namespace wafersim::analysis {
namespace {

using workloads::Op;
using workloads::OpKind;

bool computes(OpKind kind) { return kind == OpKind::matrix || kind == OpKind::vector || kind == OpKind::reduce; }

/// What a template does but for DRAM, and what a program does.
struct Work {
  sim::WorkTotals operations;
  Bytes injected = 0;
  Bytes ejected = 0;

  void add(const Work& other, std::uint64_t times) {
    operations.add(other.operations, times);
    injected += times * other.injected;
    ejected += times * other.ejected;
  }
};

Work work_of(const workloads::StepTemplate& source, const workloads::Trace& trace) {
  Work out;
  for (const Op& op : source.ops) {
    if (op.kind == OpKind::send || op.kind == OpKind::multicast) out.injected += op.bytes;
    if (op.kind == OpKind::receive) out.ejected += op.bytes;
    if (computes(op.kind)) out.operations.add(op.kind, trace.works[op.work]);
  }
  return out;
}

/// Of a template on tiles that keep `layout` and hold `resident` when it begins.
Bytes dram_of(const workloads::StepTemplate& source, const workloads::Trace& trace, const workloads::MemoryLayout& layout,
              const workloads::StaticMemory& resident) {
  std::array<std::int64_t, workloads::kMemoryClasses> held{};
  for (std::size_t c = 0; c < held.size(); ++c) held[c] = static_cast<std::int64_t>(resident.bytes[c]);
  Bytes total = 0;
  for (const Op& op : source.ops) {
    std::int64_t& of_class = held[static_cast<std::size_t>(op.memory_class)];
    if (op.kind == OpKind::allocate) of_class += static_cast<std::int64_t>(op.bytes);
    if (op.kind == OpKind::free) of_class -= static_cast<std::int64_t>(op.bytes);
    if (!computes(op.kind)) continue;
    const workloads::Work& work = trace.works[op.work];
    for (std::size_t c = 0; c < held.size(); ++c) {
      if (work.class_bytes[c] != 0)
        total += layout[c].through_dram(work.class_bytes[c], static_cast<Bytes>(std::max<std::int64_t>(held[c], 0)));
    }
  }
  return total;
}

class TraceCounter {
 public:
  explicit TraceCounter(const workloads::Trace& trace) : trace_(trace) {
    std::vector<Work> of_templates;
    for (const workloads::StepTemplate& each : trace.templates) of_templates.push_back(work_of(each, trace));
    for (const workloads::Program& program : trace.programs) {
      std::map<std::uint32_t, std::uint64_t>& uses = uses_.emplace_back();
      for (const workloads::Step& step : program.steps) ++uses[step.step_template];
      Work& work = of_programs_.emplace_back();
      for (const auto& [index, times] : uses) work.add(of_templates[index], times);
    }
  }

  sim::TileMeasurement tile(const workloads::TileBinding& binding) {
    const Work& work = of_programs_[binding.program];
    sim::TileMeasurement out;
    out.tile = binding.tile;
    out.matrix_flops = work.operations.matrix_flops;
    out.vector_flops = work.operations.vector_flops;
    out.core_sram_bytes = work.operations.sram_bytes;
    out.bytes_injected = work.injected;
    out.bytes_ejected = work.ejected;
    out.dram_bytes = dram(binding);
    return out;
  }

 private:
  Bytes dram(const workloads::TileBinding& binding) {
    const workloads::MemoryLayout& layout = trace_.layouts[binding.layout];
    if (std::all_of(layout.begin(), layout.end(), [](const workloads::SramQuota& quota) { return quota.whole(); })) return 0;
    Bytes total = 0;
    for (const auto& [index, times] : uses_[binding.program]) {
      const auto [known, fresh] = dram_.try_emplace({index, binding.layout, binding.statics}, 0);
      if (fresh) known->second = dram_of(trace_.templates[index], trace_, layout, trace_.statics[binding.statics]);
      total += times * known->second;
    }
    return total;
  }

  const workloads::Trace& trace_;
  std::vector<std::map<std::uint32_t, std::uint64_t>> uses_;  ///< by program: how often it has each template
  std::vector<Work> of_programs_;
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>, Bytes> dram_;  ///< by template, layout and statics
};

std::vector<sim::LinkMeasurement> links_of(const PredictedEnergyInput& input) {
  std::vector<sim::LinkMeasurement> links;
  const Bytes parts = input.loads.parts_per_byte;
  for (topology::LinkId link = 0; link < input.loads.parts.size(); ++link) {
    const Bytes load = input.loads.parts[link];
    if (load == 0) continue;
    sim::LinkMeasurement& out = links.emplace_back();
    out.link = link;
    out.bytes = (load / parts + (load % parts >= parts - parts / 2 ? 1 : 0)) * static_cast<Bytes>(input.trace.iterations);
  }
  return links;
}

}  // namespace

std::optional<EnergySummary> predicted_energy(const PredictedEnergyInput& input) {
  if (!input.hardware.energy.any()) return std::nullopt;
  TraceCounter counter(input.trace);
  std::vector<sim::TileMeasurement> tiles;
  for (const workloads::TileBinding& binding : input.trace.tiles) tiles.push_back(counter.tile(binding));
  const std::vector<sim::LinkMeasurement> links = links_of(input);
  return energy_of({input.hardware, input.mesh, tiles, links, input.cycles, true, input.tokens});
}

}  // namespace wafersim::analysis
