#include "sim/activity.h"

#include <algorithm>
#include <bit>
#include <set>
#include <string_view>

#include "base/text.h"

namespace wafersim::sim {
namespace {

using workloads::Axis;
using workloads::OpKind;
using workloads::Pass;
using workloads::StepKind;

constexpr std::size_t kPasses = static_cast<std::size_t>(Pass::none) + 1;
constexpr std::size_t kStepKinds = static_cast<std::size_t>(StepKind::custom) + 1;
constexpr std::size_t kBetween = kStepKinds * kPasses;  ///< no step
constexpr std::size_t kStepRows = kBetween + 1;
constexpr std::size_t kComputeKinds = static_cast<std::size_t>(OpKind::reduce) + 1;

std::size_t step_row(std::int32_t stage, std::size_t row) {
  return static_cast<std::size_t>(stage) * kStepRows + row;
}

/// Makes the last of spans longer by one that goes on with the same.
bool extend(std::vector<TileSpans::Span>& spans, const TileSpans::Span& more) {
  if (spans.empty() || spans.back().what != more.what || spans.back().to != more.from) return false;
  spans.back().to = more.to;
  return true;
}

/// `span` begins when it likes and ends last of all so far; spans that it touches become one with it.
void merge(std::vector<TileSpans::Span>& spans, TileSpans::Span span) {
  while (!spans.empty() && spans.back().to >= span.from) {
    span.from = std::min(span.from, spans.back().from);
    spans.pop_back();
  }
  spans.push_back(span);
}

}  // namespace

std::string to_string(CycleKind kind) {
  switch (kind) {
    case CycleKind::compute:
      return "compute";
    case CycleKind::bubble:
      return "bubble";
    case CycleKind::memory_stall:
      return "memory_stall";
    case CycleKind::idle:
      return "idle";
    default:
      break;
  }
  const auto axis = static_cast<unsigned>(kind) - static_cast<unsigned>(CycleKind::first_exposed);
  return std::string("exposed_") + workloads::to_string(static_cast<Axis>(axis));
}

CyclesByKind by_kind(const CycleBreakdown& cycles) {
  CyclesByKind result{};
  const auto at = [&result](CycleKind kind) -> Cycle& { return result[static_cast<std::size_t>(kind)]; };
  at(CycleKind::compute) = cycles.compute;
  for (std::size_t axis = 0; axis < cycles.exposed.size(); ++axis) {
    at(exposed_by(static_cast<Axis>(axis))) = cycles.exposed[axis];
  }
  at(CycleKind::bubble) = cycles.bubble;
  at(CycleKind::memory_stall) = cycles.memory_stall;
  at(CycleKind::idle) = cycles.idle;
  return result;
}

namespace {

/// Classes of a histogram: values below 2 x kSplit are exact; each power of two from there on is cut into
/// kSplit.
constexpr unsigned kSplitBits = 3;
constexpr Cycle kSplit = Cycle{1} << kSplitBits;

std::size_t class_of(Cycle value) {
  if (value < 2 * kSplit) return static_cast<std::size_t>(value);
  const unsigned shift = static_cast<unsigned>(std::bit_width(value)) - 1 - kSplitBits;
  return static_cast<std::size_t>(shift * kSplit + (value >> shift));
}

Cycle first_of_class(std::size_t index) {
  if (index < 2 * kSplit) return index;
  const std::size_t shift = index / kSplit - 1;
  return (index % kSplit + kSplit) << shift;
}

}  // namespace

void CycleHistogram::add(Cycle value) {
  const std::size_t index = class_of(value);
  if (index >= counts_.size()) counts_.resize(index + 1);
  ++counts_[index];
}

void CycleHistogram::repeat_since(const CycleHistogram& before, std::uint64_t times) {
  for (std::size_t i = 0; i < counts_.size(); ++i) {
    counts_[i] += (counts_[i] - (i < before.counts_.size() ? before.counts_[i] : 0)) * times;
  }
}

std::vector<CycleHistogram::Class> CycleHistogram::classes() const {
  std::vector<Class> result;
  for (std::size_t i = 0; i < counts_.size(); ++i) {
    if (counts_[i] != 0) result.push_back({first_of_class(i), first_of_class(i + 1) - 1, counts_[i]});
  }
  return result;
}

void TileActivity::charge(CycleKind kind, Cycle from, Cycle to) {
  if (from >= to) return;
  all_.windows_.charge(tile_, kind, from, to);
  all_.steps_[step_][static_cast<std::size_t>(kind)] += to - from;
  if (spans_ != nullptr || (bubbles_ != nullptr && kind == CycleKind::bubble)) {
    const TileSpans::Span span{from, to, static_cast<std::uint8_t>(kind)};
    if (keep(span) && all_.period_ && !extend(period_, span)) period_.push_back(span);
  }
}

bool TileActivity::keep(const TileSpans::Span& span) {
  const bool is_bubble = bubbles_ != nullptr && span.what == static_cast<std::uint8_t>(CycleKind::bubble);
  const bool bubble = is_bubble && add_bubble(span.from, span.to);
  return (spans_ != nullptr && add_span(span)) || bubble;
}

void TileActivity::at_step(StepKind kind, Pass pass) {
  step_ = step_row(stage_, static_cast<std::size_t>(kind) * kPasses + static_cast<std::size_t>(pass));
}

void TileActivity::between_steps() { step_ = step_row(stage_, kBetween); }

void TileActivity::operation(OpKind kind, std::uint32_t work, Cycle cycles) {
  OperationSum& sum = all_.operations_[work * kComputeKinds + static_cast<std::size_t>(kind)];
  sum.shortest = sum.count == 0 ? cycles : std::min(sum.shortest, cycles);
  sum.longest = std::max(sum.longest, cycles);
  sum.cycles += cycles;
  ++sum.count;
}

bool TileActivity::add_span(const TileSpans::Span& span) {
  std::vector<TileSpans::Span>& spans = spans_->core;
  if (extend(spans, span)) return true;
  spans_->complete = spans_->complete && spans.size() < Activity::kMostSpans;
  if (spans_->complete) spans.push_back(span);
  return spans_->complete;
}

bool TileActivity::add_bubble(Cycle from, Cycle to) {
  std::vector<GroupBubbles::Span>& spans = bubbles_->spans;
  if (!spans.empty() && spans.back().to == from) {
    spans.back().to = to;
    return true;
  }
  if (spans.size() == Activity::kMostBubbles) return false;
  spans.push_back({from, to});
  return true;
}

Activity::Activity(const CompiledTrace& compiled, LoadWindows& windows, const std::vector<TileId>& chosen)
    : trace_(compiled.trace()),
      windows_(windows),
      operations_(trace_.works.size() * kComputeKinds) {
  const workloads::Trace& trace = trace_;
  std::int32_t stages = 1;
  std::int32_t groups = 0;
  for (const workloads::TileBinding& binding : trace.tiles) {
    stages = std::max(stages, binding.stage + 1);
    groups = std::max(groups, binding.group + 1);
  }
  bubbles_.resize(static_cast<std::size_t>(groups), {-1, 0, {}});
  steps_.resize(static_cast<std::size_t>(stages) * kStepRows);
  for (std::size_t i = 0; i < trace.tiles.size(); ++i) tiles_.emplace_back(*this, i, trace.tiles[i].stage);
  for (std::size_t axis = 0; axis < messages_.size(); ++axis) messages_[axis].axis = static_cast<Axis>(axis);

  std::vector<TileId> ascending = chosen;
  std::sort(ascending.begin(), ascending.end());
  ascending.erase(std::unique(ascending.begin(), ascending.end()), ascending.end());
  for (const TileId tile : ascending) spans_.push_back({tile, {}, {}, true});
  message_spans_.resize(spans_.size());
  messages_complete_.resize(spans_.size(), true);
  for (std::size_t i = 0; i < trace.tiles.size(); ++i) {
    if (TileSpans* const spans = spans_of(trace.tiles[i].tile)) tiles_[i].keep_spans(*spans);
    GroupBubbles& bubbles = bubbles_[static_cast<std::size_t>(trace.tiles[i].group)];
    if (bubbles.group >= 0) continue;  // it is not the first tile of its group
    bubbles.group = trace.tiles[i].group;
    bubbles.stage = trace.tiles[i].stage;
    tiles_[i].keep_bubbles(bubbles);
  }
}

TileSpans* Activity::spans_of(TileId tile) {
  const auto at = std::lower_bound(spans_.begin(), spans_.end(), tile,
                                   [](const TileSpans& spans, TileId id) { return spans.tile < id; });
  return at == spans_.end() || at->tile != tile ? nullptr : &*at;
}

void Activity::message(const MessageRecord& message) {
  MessageStatistics& sum = messages_[static_cast<std::size_t>(message.axis)];
  const Cycle latency = message.received - message.posted;
  ++sum.messages;
  sum.bytes += message.bytes;
  sum.latency_sum += latency;
  sum.queued_sum += message.queued;
  sum.latency.add(latency);
  sum.queued.add(message.queued);
  if (spans_.empty() || latency == 0) return;
  for (const TileId end : {message.source, message.destination}) {
    TileSpans* const spans = spans_of(end);
    if (spans == nullptr) continue;
    const MessageSpan added{static_cast<std::size_t>(spans - spans_.data()),
                            {message.posted, message.received, static_cast<std::uint8_t>(message.axis)}};
    if (period_ && !too_many_messages()) period_->message_spans.push_back(added);
    add_message_span(added);
    if (message.source == message.destination) break;
  }
}

void Activity::add_message_span(const MessageSpan& added) {
  auto& kept = message_spans_[added.tile][added.span.what];
  merge(kept, added.span);
  if (kept.size() <= kMostSpans) return;
  kept.pop_back();
  messages_complete_[added.tile] = false;
}

std::vector<OperationMeasurement> Activity::take_operations() const {
  std::vector<std::set<std::string_view>> names(operations_.size());
  for (const workloads::StepTemplate& step : trace_.templates) {
    for (const workloads::Op& op : step.ops) {
      const auto kind = static_cast<std::size_t>(op.kind);
      if (kind < kComputeKinds) names[op.work * kComputeKinds + kind].insert(step.name);
    }
  }
  std::vector<OperationMeasurement> result;
  for (std::size_t i = 0; i < operations_.size(); ++i) {
    const OperationSum& sum = operations_[i];
    if (sum.count == 0) continue;
    result.push_back({static_cast<OpKind>(i % kComputeKinds), trace_.works[i / kComputeKinds],
                      join({names[i].begin(), names[i].end()}, " "), sum.count, sum.cycles, sum.shortest,
                      sum.longest});
  }
  return result;
}

ActivityMeasurement Activity::take() {
  ActivityMeasurement result;
  for (std::size_t row = 0; row < steps_.size(); ++row) {
    if (steps_[row] == CyclesByKind{}) continue;
    const std::size_t step = row % kStepRows;
    StepCycles cycles{static_cast<std::int32_t>(row / kStepRows), step == kBetween, StepKind::custom,
                      Pass::none, steps_[row]};
    if (!cycles.between) {
      cycles.kind = static_cast<StepKind>(step / kPasses);
      cycles.pass = static_cast<Pass>(step % kPasses);
    }
    result.steps.push_back(cycles);
  }
  result.operations = take_operations();
  for (const MessageStatistics& axis : messages_) {
    if (axis.messages != 0) result.messages.push_back(axis);
  }
  for (std::size_t i = 0; i < spans_.size(); ++i) {
    spans_[i].complete = spans_[i].complete && messages_complete_[i];
    for (const auto& axis : message_spans_[i]) {
      spans_[i].messages.insert(spans_[i].messages.end(), axis.begin(), axis.end());
    }
  }
  result.tiles = std::move(spans_);
  result.bubbles = std::move(bubbles_);
  return result;
}

}  // namespace wafersim::sim
