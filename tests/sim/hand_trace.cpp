#include "tests/sim/hand_trace.h"

namespace wafersim::test {

HandTrace::HandTrace(TileId mesh_tiles) {
  for (TileId tile = 0; tile < mesh_tiles; ++tile) trace_.peers.push_back(tile);
}

workloads::TileBinding& HandTrace::binding(TileId tile) {
  const auto [entry, fresh] = bindings_.try_emplace(tile);
  workloads::TileBinding& binding = entry->second;
  if (fresh) {
    binding.tile = tile;
    binding.program = static_cast<std::uint32_t>(trace_.programs.size());
    binding.peer_count = static_cast<std::uint32_t>(trace_.peers.size());
    binding.statics = static_cast<std::uint32_t>(trace_.statics.size());
    trace_.programs.emplace_back();
    trace_.statics.emplace_back();
  }
  return binding;
}

std::uint32_t HandTrace::step(TileId tile, const Build& build, const std::vector<std::uint32_t>& waits,
                              workloads::Step step) {
  workloads::Program& program = trace_.programs[binding(tile).program];
  workloads::StepBuilder builder(trace_, "hand");
  build(builder);
  step.step_template = builder.finish();
  step.first_wait = static_cast<std::uint32_t>(program.waits.size());
  step.wait_count = static_cast<std::uint32_t>(waits.size());
  program.waits.insert(program.waits.end(), waits.begin(), waits.end());
  program.steps.push_back(step);
  return static_cast<std::uint32_t>(program.steps.size() - 1);
}

void HandTrace::set_stage(TileId tile, std::int32_t stage) { binding(tile).stage = stage; }

void HandTrace::set_resident(TileId tile, workloads::MemoryClass memory_class, Bytes bytes) {
  trace_.statics[binding(tile).statics].bytes[static_cast<std::size_t>(memory_class)] = bytes;
}

void HandTrace::set_quota(workloads::MemoryClass memory_class, Bytes in_sram) {
  trace_.layouts[0][static_cast<std::size_t>(memory_class)] = workloads::SramQuota(in_sram);
}

workloads::Trace HandTrace::take() {
  for (const auto& [tile, binding] : bindings_) trace_.tiles.push_back(binding);
  return std::move(trace_);
}

workloads::Work vector_work(Cycle cycles, Bytes sram_bytes, Bytes optimizer_bytes) {
  workloads::Work work{.gemm = {}, .vector_flops = cycles, .sram_bytes = sram_bytes};
  work.class_bytes[static_cast<std::size_t>(workloads::MemoryClass::optimizer)] = optimizer_bytes;
  return work;
}

}  // namespace wafersim::test
