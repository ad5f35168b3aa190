#include "sim/activity.h"

/// What is recorded of periods and replicas that are not simulated.
namespace wafersim::sim {
namespace {

TileSpans::Span later(const TileSpans::Span& span, Cycle by) { return {span.from + by, span.to + by, span.what}; }

}  // namespace

void TileActivity::repeat_period(Cycle length, std::uint64_t times) {
  bool has_room = true;
  for (std::uint64_t k = 1; k <= times && has_room; ++k) {
    has_room = false;
    for (const TileSpans::Span& span : period_) has_room = keep(later(span, length * k)) || has_room;
  }
  period_ = {};
}

void Activity::begin_period(Cycle length, std::uint64_t times) {
  period_ = std::make_unique<Period>(Period{length, times, steps_, operations_, messages_, {}});
}

void Activity::end_period() {
  const std::unique_ptr<Period> period = std::move(period_);
  repeat_sums(*period);
  for (TileActivity& tile : tiles_) tile.repeat_period(period->length, period->times);
  for (std::uint64_t k = 1; k <= period->times && !period->message_spans.empty(); ++k) {
    for (const MessageSpan& added : period->message_spans) add_message_span({added.tile, later(added.span, period->length * k)});
  }
}

void Activity::repeat_sums(const Period& period) {
  for (std::size_t row = 0; row < steps_.size(); ++row) {
    for (std::size_t i = 0; i < steps_[row].size(); ++i) steps_[row][i] += (steps_[row][i] - period.steps[row][i]) * period.times;
  }
  for (std::size_t i = 0; i < operations_.size(); ++i) {
    operations_[i].count += (operations_[i].count - period.operations[i].count) * period.times;
    operations_[i].cycles += (operations_[i].cycles - period.operations[i].cycles) * period.times;
  }
  for (std::size_t i = 0; i < messages_.size(); ++i) {
    MessageStatistics& sum = messages_[i];
    const MessageStatistics& before = period.messages[i];
    sum.messages += (sum.messages - before.messages) * period.times;
    sum.bytes += (sum.bytes - before.bytes) * period.times;
    sum.latency_sum += (sum.latency_sum - before.latency_sum) * period.times;
    sum.queued_sum += (sum.queued_sum - before.queued_sum) * period.times;
    sum.latency.repeat_since(before.latency, period.times);
    sum.queued.repeat_since(before.queued, period.times);
  }
}

void Activity::drop_period() {
  period_.reset();
  for (TileActivity& tile : tiles_) tile.period_ = {};
}

void Activity::copy_first_replica(const Moves& tiles) {
  const auto others = static_cast<std::uint64_t>(trace_.replicas - 1);
  const Period none{0, others, std::vector<CyclesByKind>(steps_.size()), std::vector<OperationSum>(operations_.size()), {}, {}};
  repeat_sums(none);
  for (const auto& [from, to] : tiles) {
    tiles_[to].step_ = tiles_[from].step_;
    if (tiles_[to].bubbles_ != nullptr) tiles_[to].bubbles_->spans = tiles_[from].bubbles_->spans;
  }
}

}  // namespace wafersim::sim
