#pragma once

#include <functional>
#include <optional>
#include <string>

#include "models/hardware.h"
#include "sim/calendar.h"
#include "sim/interfaces.h"
#include "sim/measurements.h"
#include "sim/memory_timeline.h"
#include "sim/port_clock.h"
#include "sim/trains.h"
#include "workloads/trace.h"

namespace wafersim::sim {

/// A tile's memory: how much each class holds (in SRAM and in its share of the DRAM, as the tile's layout splits it), and the
/// SRAM port. Peaks are those at the end of a cycle, so the order of changes within a cycle does not matter.
class Sram final : public sc_core::sc_module, public SramIf {
 public:
  Sram(sc_core::sc_module_name name, const Calendar& calendar, const models::HardwareModel& hardware,
       const workloads::MemoryLayout& layout, const workloads::StaticMemory& resident);

  void allocate(workloads::MemoryClass memory_class, Bytes bytes) override;
  void free(workloads::MemoryClass memory_class, Bytes bytes) override;
  Bytes through_dram(workloads::MemoryClass memory_class, Bytes bytes) const override;
  void nic_access(Bytes bytes) override;
  /// The NIC's accesses for the packets of a train, when they pass its stage `stage`, count from now on as their times come; those
  /// before `cycle`, when it ends. Both must stay where they are until then.
  void begin(TrainAccesses& accesses, const TrainTimes& times, std::size_t stage);
  void end(TrainAccesses& accesses, Cycle cycle);
  Cycle nic_busy_before_now() const override;
  HotLines hot_lines() const override;

  /// Says what the tile is doing, for the message of an overflow.
  void set_context(std::function<std::string()> context) { context_ = std::move(context); }

  /// Its state, see sim/state_archive.h.
  template <class Archive>
  void visit(Archive& archive);
  /// Cycles of the NIC's accesses so far, to the end of the last.
  Cycle nic_total() const { return nic_total_; }

  MemoryLevels levels() const;
  /// The largest levels so far, those of the last cycle included.
  MemoryLevels peaks();
  void set_peaks(const MemoryLevels& peaks);
  void set_levels(const MemoryLevels& levels);
  /// Whether how much a class holds decides only whether it fits: all that passes goes through DRAM, or none.
  bool only_has_to_fit(std::size_t memory_class) const {
    return layout_[memory_class].whole() || layout_[memory_class] == workloads::SramQuota(0);
  }
  bool fits(Bytes sram, Bytes dram) const {
    return sram <= hardware_.sram_capacity && dram <= hardware_.dram_capacity_per_tile();
  }
  /// Tells `timeline` the levels at the end of each cycle that changed them. It must outlive this.
  void set_timeline(MemoryTimeline* timeline) { timeline_ = timeline; }

  /// Likewise calls `sink`, which must outlive this.
  using LevelSink = std::function<void(Cycle, const MemoryLevels&)>;
  void set_level_sink(const LevelSink* sink) { level_sink_ = sink; }

  /// Fills the peaks and final values. Throws PlanError when the last cycle left more than the capacity.
  void measure(TileMeasurement& out);

 private:
  void before_change();
  void change(std::size_t memory_class, Bytes held);
  void close_cycle();
  [[noreturn]] void overflow(Bytes held, Bytes capacity, bool dram) const;

  void note_overflow();
  void access(Cycle cycles, Cycle at) const;
  void catch_up(Cycle cycle) const;
  void skip_to(Cycle cycle, Cycle next_at) const;

  const Calendar& calendar_;
  const models::HardwareModel& hardware_;
  const workloads::MemoryLayout layout_;
  std::array<Bytes, workloads::kMemoryClasses> held_{};
  std::array<Bytes, workloads::kMemoryClasses> peak_by_class_{};
  Bytes held_sram_ = 0;
  Bytes held_dram_ = 0;
  Bytes peak_sram_ = 0;
  Bytes peak_dram_ = 0;
  Bytes peak_ = 0;
  Bytes static_ = 0;
  MemoryTimeline* timeline_ = nullptr;
  const LevelSink* level_sink_ = nullptr;
  Cycle changed_at_ = 0;
  std::function<std::string()> context_;
  std::string overflow_context_;
  std::optional<PortRate> port_;  ///< empty = unlimited bandwidth
  // The port serves NIC accesses one after the other; everything from now to `nic_until_` is busy.
  // Those of trains are entered when somebody asks.
  mutable Cycle nic_total_ = 0;
  mutable Cycle nic_until_ = 0;
  std::vector<TrainAccesses*> trains_;
};

}  // namespace wafersim::sim
