#include "workloads/traffic_source.h"

#include <algorithm>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "base/random.h"
#include "workloads/schedule.h"

namespace wafersim::workloads {

RankSpans TrafficList::at(std::initializer_list<AxisSpan> ranks) const {
  RankSpans spans;
  for (int i = 0; i < kAxes; ++i)
    spans[static_cast<std::size_t>(i)] = {0, plan_->degree(static_cast<Axis>(i))};
  for (const auto& [axis, span] : ranks) spans[static_cast<std::size_t>(axis)] = span;
  return spans;
}

void TrafficList::add(AxisTraffic traffic) {
  traffic.cut = cut_;
  if (traffic.members() == 1 || traffic.bytes() == 0 || traffic.times == 0) return;
  traffic_.push_back(std::move(traffic));
}

namespace {

/// All of a traffic but its spans.
auto contents(const AxisTraffic& traffic) {
  return std::tie(traffic.axis, traffic.pattern, traffic.rows, traffic.row_bytes, traffic.parts, traffic.factors, traffic.times,
                  traffic.replicas, traffic.cut, traffic.block);
}

RankSpans other_spans(const AxisTraffic& traffic, std::size_t axis) {
  RankSpans spans = traffic.spans;
  spans[axis] = {};
  return spans;
}

bool differ_in_axis_only(const AxisTraffic& a, const AxisTraffic& b, std::size_t axis) {
  return contents(a) == contents(b) && other_spans(a, axis) == other_spans(b, axis);
}

std::uint64_t hash_without(const AxisTraffic& traffic, std::size_t axis) {
  std::uint64_t hash = 0;
  const auto add = [&hash](std::uint64_t value) { hash = mix_bits(hash ^ value) + 0x9e3779b97f4a7c15ULL; };
  add(static_cast<std::uint64_t>(traffic.axis) << 8 | static_cast<std::uint64_t>(traffic.pattern));
  add(traffic.rows);
  add(traffic.row_bytes);
  add(traffic.times);
  for (std::size_t i = 0; i < traffic.spans.size(); ++i) {
    const RankSpan& span = traffic.spans[i];
    if (i != axis) add(static_cast<std::uint64_t>(span.first) << 32 | static_cast<std::uint64_t>(span.count));
  }
  return hash;
}

}  // namespace

std::vector<AxisTraffic> TrafficList::take() {
  for (const Axis axis : default_order()) merge_spans(axis);
  const auto last = static_cast<std::size_t>(default_order().back());
  std::sort(traffic_.begin(), traffic_.end(), [last](const AxisTraffic& a, const AxisTraffic& b) {
    if (contents(a) != contents(b)) return contents(a) < contents(b);
    const RankSpans of_a = other_spans(a, last), of_b = other_spans(b, last);
    return of_a != of_b ? of_a < of_b : a.spans[last] < b.spans[last];
  });
  return std::move(traffic_);
}

/// Leaves the list in an order of its own.
void TrafficList::merge_spans(Axis axis) {
  const auto number = static_cast<std::size_t>(axis);
  struct Item {
    std::size_t group = 0;  ///< the first of those that differ in the axis only
    RankSpan span;
    std::size_t index = 0;
    auto operator<=>(const Item&) const = default;
  };
  std::vector<Item> items;
  std::unordered_multimap<std::uint64_t, std::size_t> groups;
  for (std::size_t i = 0; i < traffic_.size(); ++i) {
    const std::uint64_t hash = hash_without(traffic_[i], number);
    const auto [first, end] = groups.equal_range(hash);
    const auto known = std::find_if(first, end, [&](const auto& group) {
      return differ_in_axis_only(traffic_[group.second], traffic_[i], number);
    });
    if (known == end) groups.emplace(hash, i);
    items.push_back({known == end ? i : known->second, traffic_[i].spans[number], i});
  }
  std::sort(items.begin(), items.end());
  std::vector<AxisTraffic> merged;
  std::size_t group = 0;  // of the last one
  for (const Item& item : items) {
    const bool joins = !merged.empty() && item.group == group && merged.back().axis != axis &&
                       merged.back().span(axis).first + merged.back().span(axis).count == item.span.first;
    if (joins) {
      merged.back().spans[number].count += item.span.count;
    } else {
      merged.push_back(std::move(traffic_[item.index]));
    }
    group = item.group;
  }
  traffic_ = std::move(merged);
}

TrafficSource::TrafficSource(const models::TransformerSpec& the_model, const TrainingSpec& the_training,
                             const PlanSpec& the_plan, Cut the_cut, ParameterLayout the_layout)
    : model(the_model),
      training(the_training),
      plan(the_plan),
      cut(the_cut),
      layout(std::move(the_layout)),
      streams_inputs(streamed_inputs(the_model, the_training, the_plan)),
      element(element_bytes(the_training.precision)),
      gradient(gradient_bytes(the_training)),
      hidden(static_cast<std::uint64_t>(the_model.hidden)),
      microbatches(static_cast<std::uint64_t>(the_training.microbatches(the_plan.dp))),
      forwards(the_training.recompute == models::Recompute::full ? 2 : 1) {
  const int differing = streams_inputs[0] ? plan.tatp : 1;
  for (int tp = 0; tp < plan.tp; ++tp) {
    for (int tatp = 0; tatp < differing; ++tatp) shards_.push_back(make_shard(model, training, plan, {tp, tatp, 0}));
  }
  for (int sp = 0; sp < plan.sp_degree; ++sp) {
    for (int tatp = 0; tatp < plan.tatp; ++tatp) {
      tokens_.push_back(work_tokens(model, training, plan, sp, tatp).count());
    }
  }
}

std::uint64_t TrafficSource::layers(int stage) const {
  std::uint64_t total = 0;
  for (int chunk = 0; chunk < plan.virtual_stages; ++chunk) {
    total +=
        static_cast<std::uint64_t>(virtual_stage_layers(plan, model.layers, chunk * plan.pp + stage).count);
  }
  return total;
}

std::uint64_t TrafficSource::remade_layers(int stage) const {
  const int every = training.recompute_every;
  std::uint64_t groups = 0;
  for (int chunk = 0; chunk < plan.virtual_stages; ++chunk) {
    const int count = virtual_stage_layers(plan, model.layers, chunk * plan.pp + stage).count;
    groups += static_cast<std::uint64_t>(ceil_div(count, every));
  }
  return layers(stage) - groups;
}

std::vector<RankSpan> TrafficSource::alike_stages() const {
  std::vector<RankSpan> runs;
  std::tuple<bool, bool, std::uint64_t, std::uint64_t> before;
  for (int stage = 0; stage < plan.pp; ++stage) {
    const std::tuple here(is_first(stage), is_last(stage), layers(stage), remade_layers(stage));
    if (runs.empty() || here != before) runs.push_back({stage, 0});
    ++runs.back().count;
    before = here;
  }
  return runs;
}

}  // namespace wafersim::workloads
