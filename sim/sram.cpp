#include "sim/sram.h"

#include <algorithm>
#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"

namespace wafersim::sim {

Sram::Sram(sc_core::sc_module_name name, const Calendar& calendar, const models::HardwareModel& hardware,
           const workloads::MemoryLayout& layout, const workloads::StaticMemory& resident)
    : sc_module(name), calendar_(calendar), hardware_(hardware), layout_(layout) {
  if (hardware.sram_bytes_per_cycle) {
    port_.emplace(*hardware.sram_bytes_per_cycle, common_time_scale({*hardware.sram_bytes_per_cycle}), hardware.packet_bytes);
  }
  for (std::size_t i = 0; i < held_.size(); ++i) change(i, resident.bytes[i]);
  static_ = held_sram_ + held_dram_;
}

/// How much of a class lies in SRAM follows from how much there is of it, in whatever order it came.
void Sram::change(std::size_t memory_class, Bytes held) {
  const auto in_sram = [&](Bytes bytes) {
    return static_cast<Bytes>(layout_[memory_class].in_sram(static_cast<std::int64_t>(bytes)));
  };
  const Bytes moved = in_sram(held) - in_sram(held_[memory_class]);
  held_sram_ += moved;
  held_dram_ += held - held_[memory_class] - moved;
  held_[memory_class] = held;
}

void Sram::allocate(workloads::MemoryClass memory_class, Bytes bytes) {
  before_change();
  const auto index = static_cast<std::size_t>(memory_class);
  change(index, held_[index] + bytes);
  if (held_sram_ > hardware_.sram_capacity || held_dram_ > hardware_.dram_capacity_per_tile()) [[unlikely]] note_overflow();
}

/// The change may be made good within its cycle, so this only remembers what the tile was doing.
void Sram::note_overflow() {
  if (context_) overflow_context_ = context_();
}

void Sram::free(workloads::MemoryClass memory_class, Bytes bytes) {
  before_change();
  const auto index = static_cast<std::size_t>(memory_class);
  // Within a cycle frees may come before the allocations they belong with; the end of the cycle is what counts.
  change(index, held_[index] - bytes);
}

Bytes Sram::through_dram(workloads::MemoryClass memory_class, Bytes bytes) const {
  const auto index = static_cast<std::size_t>(memory_class);
  // A free of this cycle may come before the allocation that it belongs with.
  const bool below = static_cast<std::int64_t>(held_[index]) < 0;
  return layout_[index].through_dram(bytes, below ? 0 : held_[index]);
}

void Sram::nic_access(Bytes bytes) {
  if (!port_) return;
  const Cycle now = calendar_.now();
  if (!trains_.empty()) catch_up(now);
  access(port_->serialization(bytes).ceil(), now);
}

void Sram::access(Cycle cycles, Cycle at) const {
  nic_until_ = std::max(nic_until_, at) + cycles;
  nic_total_ += cycles;
}

void Sram::begin(TrainAccesses& accesses, const TrainTimes& times, std::size_t stage) {
  if (!port_) return;
  const auto cost = [&](std::uint64_t packet) { return port_->serialization(times.bytes(packet)).ceil(); };
  accesses.start(times, stage, cost(0), cost(times.packets() - 1));
  trains_.push_back(&accesses);
}

/// What trains access before `cycle`, in order. Accesses of one cycle may come in any.
void Sram::catch_up(Cycle cycle) const {
  for (bool skipped = false;;) {
    TrainAccesses* next = nullptr;
    Cycle at = cycle;
    bool regular = true;
    for (TrainAccesses* const train : trains_) {
      if (train->next_at() >= cycle) continue;
      regular = regular && train->regular();
      if (train->next_at() >= at) continue;
      at = train->next_at();
      next = train;
    }
    if (next == nullptr) return;
    if (regular && !skipped) {
      skipped = true;
      skip_to(cycle, at);
    } else {
      access(next->take(), at);
    }
  }
}

/// Where accesses take less than all of the time, those long before `cycle` cannot be what keeps the port busy then: only their
/// sum counts. An access at t does if t and the cost of all from it on come to more than `cycle`; with trains whose accesses
/// cost c_i every p_i cycles, and the last of them another c_i, that cost is at most (cycle - t) sum(c_i / p_i) + 2 sum(c_i).
void Sram::skip_to(Cycle cycle, Cycle next_at) const {
  constexpr Cycle kWhole = 1024;
  Cycle share = 0, slack = nic_until_ > next_at ? nic_until_ - next_at : 0;
  for (const TrainAccesses* const train : trains_) {
    if (train->next_at() >= cycle) continue;
    share += train->cost() * kWhole / train->period() + 1;
    slack += 2 * train->cost();
  }
  if (share >= kWhole) return;
  const Cycle window = slack * kWhole / (kWhole - share) + 1;
  if (next_at + window >= cycle) return;
  for (TrainAccesses* const train : trains_) {
    if (train->next_at() < cycle - window) nic_total_ += train->take_before(cycle - window);
  }
}

void Sram::end(TrainAccesses& accesses, Cycle cycle) {
  if (!port_) return;
  catch_up(cycle);
  trains_.erase(std::find(trains_.begin(), trains_.end(), &accesses));
}

Cycle Sram::nic_busy_before_now() const {
  const Cycle now = calendar_.now();
  if (!trains_.empty()) catch_up(now);
  return nic_total_ - (nic_until_ > now ? nic_until_ - now : 0);
}

/// From the interface, whose calls are virtual, to the cycle of the last change.
HotLines Sram::hot_lines() const {
  const char* const first = reinterpret_cast<const char*>(static_cast<const SramIf*>(this));
  return {first, static_cast<std::size_t>(reinterpret_cast<const char*>(&changed_at_ + 1) - first)};
}

void Sram::before_change() {
  const Cycle now = calendar_.now();
  if (now == changed_at_) return;
  close_cycle();
  changed_at_ = now;
}

MemoryLevels Sram::levels() const { return {held_, held_sram_, held_dram_, held_sram_ + held_dram_}; }

MemoryLevels Sram::peaks() {
  close_cycle();
  return {peak_by_class_, peak_sram_, peak_dram_, peak_};
}

void Sram::set_peaks(const MemoryLevels& peaks) {
  peak_by_class_ = peaks.by_class;
  peak_sram_ = peaks.sram;
  peak_dram_ = peaks.dram;
  peak_ = peaks.total;
}

void Sram::set_levels(const MemoryLevels& levels) {
  held_ = levels.by_class;
  held_sram_ = levels.sram;
  held_dram_ = levels.dram;
}

void Sram::close_cycle() {
  for (std::size_t i = 0; i < held_.size(); ++i) {
    require_invariant(held_[i] <= ~Bytes{0} / 2, "more memory was freed than allocated");
    peak_by_class_[i] = std::max(peak_by_class_[i], held_[i]);
  }
  peak_sram_ = std::max(peak_sram_, held_sram_);
  peak_dram_ = std::max(peak_dram_, held_dram_);
  peak_ = std::max(peak_, held_sram_ + held_dram_);
  if (timeline_ != nullptr) [[unlikely]] timeline_->change(changed_at_, levels());
  if (level_sink_ != nullptr) [[unlikely]] (*level_sink_)(changed_at_, levels());
  if (held_sram_ > hardware_.sram_capacity) overflow(held_sram_, hardware_.sram_capacity, false);
  if (held_dram_ > hardware_.dram_capacity_per_tile()) overflow(held_dram_, hardware_.dram_capacity_per_tile(), true);
}

void Sram::overflow(Bytes held, Bytes capacity, bool dram) const {
  std::string classes;
  for (std::size_t i = 0; i < held_.size(); ++i) {
    const Bytes there = dram ? layout_[i].in_dram(held_[i]) : layout_[i].in_sram(held_[i]);
    if (there == 0) continue;
    classes += fmt::format("{}{} {} B", classes.empty() ? "" : ", ",
                           workloads::to_string(static_cast<workloads::MemoryClass>(i)), there);
  }
  throw PlanError(fmt::format("{}: out of {} in cycle {}{}: {} B held, {} B there, {} B ({}) too many: {}",
                              get_parent_object() != nullptr ? get_parent_object()->name() : name(),
                              dram ? "DRAM" : "SRAM", changed_at_,
                              overflow_context_.empty() ? "" : ", " + overflow_context_, held, capacity, held - capacity,
                              human_bytes(held - capacity), classes));
}

void Sram::measure(TileMeasurement& out) {
  close_cycle();
  out.peak_sram_bytes = peak_sram_;
  out.peak_dram_bytes = peak_dram_;
  out.peak_bytes = peak_;
  out.peak_by_class = peak_by_class_;
  out.final_bytes = held_sram_ + held_dram_;
  out.static_bytes = static_;
}

}  // namespace wafersim::sim
