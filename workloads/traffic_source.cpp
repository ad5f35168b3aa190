#include "workloads/traffic_source.h"

#include <algorithm>
#include <tuple>

#include "workloads/schedule.h"

namespace wafersim::workloads {

RankSpans TrafficList::at(std::initializer_list<std::pair<Axis, int>> ranks) const {
  RankSpans spans;
  for (int i = 0; i < kAxes; ++i)
    spans[static_cast<std::size_t>(i)] = {0, plan_.degree(static_cast<Axis>(i))};
  for (const auto& [axis, rank] : ranks) spans[static_cast<std::size_t>(axis)] = {rank, 1};
  return spans;
}

void TrafficList::add(AxisTraffic traffic) {
  if (traffic.members() == 1 || traffic.bytes() == 0 || traffic.times == 0) return;
  traffic_.push_back(std::move(traffic));
}

std::vector<AxisTraffic> TrafficList::take() {
  for (const Axis axis : default_order()) merge_spans(axis);
  return std::move(traffic_);
}

void TrafficList::merge_spans(Axis axis) {
  const auto number = static_cast<std::size_t>(axis);
  const auto others = [number](const AxisTraffic& traffic) {
    RankSpans spans = traffic.spans;
    spans[number] = {};
    return std::pair(std::tie(traffic.axis, traffic.pattern, traffic.rows, traffic.row_bytes, traffic.parts,
                              traffic.factors, traffic.times, traffic.replicas),
                     spans);
  };
  std::stable_sort(traffic_.begin(), traffic_.end(), [&](const AxisTraffic& a, const AxisTraffic& b) {
    const auto of_a = others(a), of_b = others(b);
    return of_a != of_b ? of_a < of_b : a.spans[number] < b.spans[number];
  });
  std::vector<AxisTraffic> merged;
  for (AxisTraffic& traffic : traffic_) {
    const bool joins =
        !merged.empty() && traffic.axis != axis && others(merged.back()) == others(traffic) &&
        merged.back().span(axis).first + merged.back().span(axis).count == traffic.span(axis).first;
    if (joins) {
      merged.back().spans[number].count += traffic.span(axis).count;
    } else {
      merged.push_back(std::move(traffic));
    }
  }
  traffic_ = std::move(merged);
}

TrafficSource::TrafficSource(const models::TransformerSpec& the_model, const TrainingSpec& the_training,
                             const PlanSpec& the_plan)
    : model(the_model),
      training(the_training),
      plan(the_plan),
      layout(the_model, the_training, the_plan),
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

}  // namespace wafersim::workloads
