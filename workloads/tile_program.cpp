#include "workloads/tile_program.h"

#include <algorithm>
#include <utility>

namespace wafersim::workloads {

Work busy_work(Cycle cycles, const models::HardwareModel& hardware) {
  if (cycles == 0) return {};
  const Rational most = Rational(static_cast<std::int64_t>(cycles - 1)) * hardware.vector_flops_per_cycle;
  return {.gemm = {}, .vector_flops = most.floor() + 1, .sram_bytes = 0, .class_bytes = {}};
}

std::optional<std::uint32_t> launch_step(Trace& trace, Cycle cycles, const models::HardwareModel& hardware) {
  if (cycles == 0) return std::nullopt;
  StepBuilder builder(trace, "launch");
  builder.vector(busy_work(cycles, hardware), {});
  return builder.finish();
}

void TilePrograms::begin(TileId tile) {
  binding_ = {};
  binding_.tile = tile;
  binding_.first_peer = static_cast<std::uint32_t>(trace_.peers.size());
  steps_.clear();
  if (!many_peers_.empty()) many_peers_ = {};  // to clear it takes as long as the most that it ever held
}

std::uint32_t TilePrograms::peer(TileId tile) {
  constexpr std::uint32_t kFew = 32;  // that are searched one by one
  const auto first = trace_.peers.begin() + binding_.first_peer;
  if (binding_.peer_count <= kFew) {
    const auto found = std::find(first, trace_.peers.end(), tile);
    if (found != trace_.peers.end()) return static_cast<std::uint32_t>(found - first);
    if (binding_.peer_count == kFew) {
      for (std::uint32_t i = 0; i < kFew; ++i) many_peers_.emplace(first[i], i);
    }
  }
  if (binding_.peer_count >= kFew) {
    const auto [found, is_new] = many_peers_.try_emplace(tile, binding_.peer_count);
    if (!is_new) return found->second;
  }
  trace_.peers.push_back(tile);
  return binding_.peer_count++;
}

void TilePrograms::end(const std::array<Bytes, kMemoryClasses>& holds) {
  binding_.program = program();
  binding_.statics = statics(holds);
  trace_.tiles.push_back(binding_);
}

std::uint32_t TilePrograms::program() {
  const auto [found, is_new] = programs_.try_emplace(steps_, static_cast<std::uint32_t>(trace_.programs.size()));
  if (!is_new) return found->second;
  Program program;
  for (const std::uint32_t step_template : steps_) {
    Step step;
    step.step_template = step_template;
    step.first_wait = static_cast<std::uint32_t>(program.waits.size());
    if (!program.steps.empty()) {
      program.waits.push_back(static_cast<std::uint32_t>(program.steps.size() - 1));
      step.wait_count = 1;
    }
    program.steps.push_back(step);
  }
  trace_.programs.push_back(std::move(program));
  return found->second;
}

std::uint32_t TilePrograms::statics(const std::array<Bytes, kMemoryClasses>& holds) {
  const auto [found, is_new] = statics_.try_emplace(holds, static_cast<std::uint32_t>(trace_.statics.size()));
  if (is_new) trace_.statics.push_back({holds, {}});
  return found->second;
}

void StreamedStep::first_vector(const Work& work) {
  if (work.vector_flops != 0) start_ = {builder_.vector(work, start_)};
}

void StreamedStep::first_matrix(const Work& work) { start_ = {builder_.matrix(work, start_)}; }

OpId StreamedStep::receive(TileId from, std::uint32_t channel, Bytes bytes) {
  const OpId id = builder_.receive(Axis::none, programs_.peer(from), channel, bytes, start_);
  builder_.stream(id);
  return id;
}

std::vector<OpId> StreamedStep::use(const std::vector<OpId>& received) {
  if (follows_ || task_.vector_flops == 0 || received.empty()) return received;
  return {builder_.reduce(Axis::none, task_, received)};
}

OpId StreamedStep::send(const std::vector<TileId>& to, std::uint32_t channel, Bytes bytes, const std::vector<OpId>& ready,
                        std::optional<OpId> before) {
  std::vector<OpId> after = ready;
  after.insert(after.end(), start_.begin(), start_.end());
  if (before) after.push_back(*before);
  std::vector<std::uint32_t> peers;
  for (const TileId tile : to) peers.push_back(programs_.peer(tile));
  const OpId id = peers.size() == 1 ? builder_.send(Axis::none, peers.front(), channel, bytes, after)
                                    : builder_.multicast(Axis::none, peers, channel, bytes, after);
  builder_.stream(id);
  if (follows_ && !ready.empty()) builder_.follow(id);
  return id;
}

}  // namespace wafersim::workloads
