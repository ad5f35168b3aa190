#include "tests/workloads/schedule_player.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>

namespace wafersim::workloads {

namespace {

/// A pass through a virtual stage.
using PassKey = std::tuple<Pass, int, std::int32_t>;

std::optional<PassKey> needed_by(const PipelineShape& shape, int stage, const ScheduleSlot& slot) {
  const int at = slot.chunk * shape.stages + stage;
  const int last = shape.stages * shape.chunks - 1;
  if (slot.pass == Pass::weight) return PassKey{Pass::backward, at, slot.microbatch};
  if (slot.pass == Pass::backward) {
    return at == last ? PassKey{Pass::forward, at, slot.microbatch} : PassKey{Pass::backward, at + 1, slot.microbatch};
  }
  if (at == 0) return std::nullopt;
  return PassKey{Pass::forward, at - 1, slot.microbatch};
}

class Player {
 public:
  Player(const PipelineShape& shape, const PassCycles& cycles) : shape_(shape), cycles_(cycles) {
    for (int stage = 0; stage < shape.stages; ++stage) orders_.push_back(schedule_order(shape, stage));
    stages_.resize(orders_.size());
  }

  Played run() {
    for (bool progress = true; progress;) {
      progress = false;
      for (int stage = 0; stage < shape_.stages; ++stage) progress = advance(stage) || progress;
    }
    Played result;
    result.passes = ends_.size();
    for (const Stage& stage : stages_) {
      result.makespan = std::max(result.makespan, stage.now);
      result.idle.push_back(stage.now - stage.start - stage.busy);
    }
    return result;
  }

 private:
  struct Stage {
    std::size_t next = 0;
    Cycle start = 0, now = 0, busy = 0;
  };

  Cycle duration(Pass pass) const {
    const auto chunks = static_cast<Cycle>(shape_.chunks);
    if (pass == Pass::forward) return cycles_.forward / chunks;
    if (pass == Pass::weight) return cycles_.weight / chunks;
    return (cycles_.backward + (splits_backward(shape_.schedule) ? 0 : cycles_.weight)) / chunks;
  }

  bool advance(int number) {
    Stage& stage = stages_[static_cast<std::size_t>(number)];
    const auto& order = orders_[static_cast<std::size_t>(number)];
    const std::size_t before = stage.next;
    for (; stage.next < order.size(); ++stage.next) {
      const ScheduleSlot& slot = order[stage.next];
      const auto needed = needed_by(shape_, number, slot);
      if (needed && !ends_.contains(*needed)) break;
      const Cycle start = std::max(stage.now, needed ? ends_.at(*needed) : 0);
      if (stage.next == 0) stage.start = start;
      stage.now = start + duration(slot.pass);
      stage.busy += duration(slot.pass);
      ends_[{slot.pass, slot.chunk * shape_.stages + number, slot.microbatch}] = stage.now;
    }
    return stage.next > before;
  }

  const PipelineShape& shape_;
  const PassCycles& cycles_;
  std::vector<std::vector<ScheduleSlot>> orders_;
  std::vector<Stage> stages_;
  std::map<PassKey, Cycle> ends_;
};

}  // namespace

Played play(const PipelineShape& shape, const PassCycles& cycles) { return Player(shape, cycles).run(); }

std::vector<PipelineShape> small_shapes(int stages, std::int32_t microbatches, int chunks) {
  using enum PipelineSchedule;
  std::vector<PipelineShape> shapes;
  for (const auto schedule : {gpipe, one_f_one_b, interleaved, zb_h1, zb_h2}) {
    for (int p = 1; p <= stages; ++p) {
      for (std::int32_t m = 1; m <= microbatches; ++m) {
        for (int v = 1; v <= (schedule == interleaved ? chunks : 1); ++v) shapes.push_back({schedule, p, m, v});
      }
    }
  }
  return shapes;
}

std::string describe(const PipelineShape& shape) {
  return fmt::format("{} p {}, m {}, v {} ", to_string(shape.schedule), shape.stages, shape.microbatches, shape.chunks);
}

}  // namespace wafersim::workloads
