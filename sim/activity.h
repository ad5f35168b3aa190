#pragma once

#include <memory>
#include <vector>

#include "sim/compiled_trace.h"
#include "sim/load_windows.h"
#include "sim/measurements.h"
#include "workloads/trace.h"

namespace wafersim::sim {

class Activity;

/// What a tile's core tells of itself. Those of a simulation add up in its Activity.
class TileActivity {
 public:
  TileActivity(Activity& all, std::size_t tile, std::int32_t stage) : all_(all), tile_(tile), stage_(stage) {
    between_steps();
  }

  void charge(CycleKind kind, Cycle from, Cycle to);
  /// Cycles charged from now on are those of such a step, or of none.
  void at_step(workloads::StepKind kind, workloads::Pass pass);
  void between_steps();
  void operation(workloads::OpKind kind, std::uint32_t work, Cycle cycles);
  void keep_spans(TileSpans& spans) { spans_ = &spans; }
  void keep_bubbles(GroupBubbles& bubbles) { bubbles_ = &bubbles; }

 private:
  friend class Activity;

  /// These return whether there was room.
  bool keep(const TileSpans::Span& span);
  bool add_span(const TileSpans::Span& span);
  bool add_bubble(Cycle from, Cycle to);
  void repeat_period(Cycle length, std::uint64_t times);

  Activity& all_;
  std::size_t tile_;  ///< among the used ones
  std::int32_t stage_;
  std::size_t step_ = 0;  ///< into the table of Activity
  TileSpans* spans_ = nullptr;
  GroupBubbles* bubbles_ = nullptr;
  std::vector<TileSpans::Span> period_;  ///< what was kept of the period that comes again
};

/// The times of operations of one work and kind.
struct OperationSum {
  std::uint64_t count = 0;
  Cycle cycles = 0;
  Cycle shortest = 0;
  Cycle longest = 0;
};

/// Collects what a run is asked to keep besides its sums: loads over time, cycles by kind of step,
/// operations, messages, and the spans of chosen tiles. Memory: 96 bytes for each work of
/// the trace, up to 64 KiB for each stage group and 2.5 MiB for each chosen tile. While a period is recorded that comes again
/// (Recorders): twice as much, and 64 MiB of messages of chosen tiles.
class Activity {
 public:
  /// `trace` and `windows`, in which cycles of tiles are charged, must outlive this. `chosen`: used tiles whose spans are kept.
  Activity(const CompiledTrace& trace, LoadWindows& windows, const std::vector<TileId>& chosen);

  /// By used tile.
  TileActivity& tile(std::size_t index) { return tiles_[index]; }
  void message(const MessageRecord& message);

  // Periods that come again, see Recorders.
  void begin_period(Cycle length, std::uint64_t times);
  /// Too many of chosen tiles were received in it for their spans to be kept; then it must be dropped.
  bool too_many_messages() const { return period_->message_spans.size() > kMostPeriodMessages; }
  void end_period();
  void drop_period();

  /// Where something lies in a replica, and where in another one.
  using Moves = std::vector<std::pair<std::size_t, std::size_t>>;
  /// The first replica is all that was recorded, and the others did the same: used tiles, as they are numbered here.
  void copy_first_replica(const Moves& tiles);

  ActivityMeasurement take();

 private:
  friend class TileActivity;
  struct MessageSpan {
    std::size_t tile = 0;  ///< among the chosen ones
    TileSpans::Span span;
  };
  /// What comes again, and what had been added up before it.
  struct Period {
    Cycle length = 0;
    std::uint64_t times = 0;
    std::vector<CyclesByKind> steps;
    std::vector<OperationSum> operations;
    std::array<MessageStatistics, workloads::kAxes + 1> messages;
    std::vector<MessageSpan> message_spans;  ///< in order of reception
  };
  static constexpr std::size_t kMostSpans = std::size_t{1} << 16;
  static constexpr std::size_t kMostBubbles = std::size_t{1} << 12;
  static constexpr std::size_t kMostPeriodMessages = std::size_t{1} << 21;

  TileSpans* spans_of(TileId tile);
  void repeat_sums(const Period& period);
  void add_message_span(const MessageSpan& added);
  std::vector<OperationMeasurement> take_operations() const;

  const workloads::Trace& trace_;
  LoadWindows& windows_;
  std::vector<TileActivity> tiles_;
  std::vector<CyclesByKind> steps_;       ///< [stage, step kind or none, pass]
  std::vector<OperationSum> operations_;  ///< [work, kind of operation]
  std::array<MessageStatistics, workloads::kAxes + 1> messages_;
  std::vector<TileSpans> spans_;       ///< ascending by tile
  std::vector<GroupBubbles> bubbles_;  ///< by group
  /// Messages of a chosen tile by axis, merged as they come, in order of reception.
  std::vector<std::array<std::vector<TileSpans::Span>, workloads::kAxes + 1>> message_spans_;
  std::vector<bool> messages_complete_;  ///< by chosen tile
  std::unique_ptr<Period> period_;       ///< that will come again
};

}  // namespace wafersim::sim
