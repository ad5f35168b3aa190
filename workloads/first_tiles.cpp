#include "workloads/first_tiles.h"

#include <algorithm>
#include <iterator>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

#include "workloads/memory_plan.h"
#include "workloads/slot_templates.h"
#include "workloads/stream_operand.h"

namespace wafersim::workloads {

namespace {

/// A list of values as bytes, each of a width of its own type.
class KeyBuilder {
 public:
  template <class Value>
  KeyBuilder& add(const Value& value) {
    static_assert(std::is_arithmetic_v<Value> || std::is_enum_v<Value>);
    text_.append(reinterpret_cast<const char*>(&value), sizeof value);
    return *this;
  }
  KeyBuilder& add(const std::string& text) {
    add(text.size());
    text_ += text;
    return *this;
  }
  template <class First, class... Rest>
  KeyBuilder& add_all(const First& first, const Rest&... rest) {
    add(first);
    (add(rest), ...);
    return *this;
  }
  std::string take() { return std::move(text_); }

 private:
  std::string text_;
};

/// What the templates of all steps are made from: the degrees, the mapping, and how parameters are stored.
void add_common(KeyBuilder& key, const LoweringInput& input) {
  const PlanSpec& plan = input.plan;
  const TrainingSpec& training = input.training;
  key.add_all(plan.dp, plan.tp, plan.tatp, plan.pp, plan.ep, plan.sp, plan.sp_degree);
  for (const Cut cut : {Cut::attention, Cut::mlp}) key.add_all(plan.degrees(cut).tp, plan.degrees(cut).tatp);
  key.add_all(plan.stream.operand, plan.stream.attention, plan.stream.variant, plan.stream.relay);
  key.add_all(plan.embedding, plan.pp_transfer_full, plan.collectives, plan.collective_chunks, plan.overlap_near);
  key.add(plan.mapping.size());
  for (const auto& [axis, mapping] : plan.mapping) {
    const topology::Shape shape = mapping.shape.value_or(topology::Shape{});
    key.add_all(axis, mapping.placement, mapping.shape.has_value(), shape.rows, shape.cols);
  }
  key.add(plan.order.size());
  for (const Axis axis : plan.order) key.add(axis);
  key.add_all(training.precision, training.gradient_precision.has_value(),
              training.gradient_precision.value_or(training.precision), training.optimizer, training.clip_grad);
  key.add(input.hardware.routing);
}

/// Steps of the model share out nothing of what zero 1 does.
int zero_of_model(const PlanSpec& plan) { return plan.zero < 2 ? 0 : plan.zero; }

/// What else the steps of the model are made from: not the order of passes, nor how many there are.
std::string model_key(const LoweringInput& input) {
  const TrainingSpec& training = input.training;
  KeyBuilder key;
  add_common(key, input);
  key.add_all(zero_of_model(input.plan), splits_backward(input.plan.schedule), training.microbatch, training.recompute,
              training.recompute_every);
  return key.take();
}

/// What else the other steps are made from, which are about parameters: not what a microbatch is, but for the weights that are
/// cut because their inputs travel.
std::string parameter_key(const LoweringInput& input) {
  KeyBuilder key;
  add_common(key, input);
  key.add(input.plan.zero);
  for (const Cut cut : {Cut::attention, Cut::mlp}) {
    for (const bool travels : streamed_inputs(input.model, input.training, cut_plan(input.plan, cut))) key.add(travels);
  }
  return key.take();
}

/// Of a slot of a stage, what is not in the plan.
std::string slot_key(const OutlineSlot& slot, int stage, const models::TransformerSpec& model) {
  KeyBuilder key;
  // Layers are alike, and so are the stages that have such a step of the model or of a layer.
  const bool of_layer = slot.number >= 0 && slot.number < model.layers;
  const bool anywhere = slot.what == OutlineSlot::What::model ||
                        (of_layer && (slot.what == OutlineSlot::What::sync || slot.what == OutlineSlot::What::gather));
  const ModelStepKind& step = slot.step;
  key.add_all(slot.what, of_layer ? 0 : slot.number, anywhere ? -1 : stage);
  // The numbers of the chunks before and behind a layer decide the channels of its transfers alone.
  key.add_all(step.kind, step.pass, step.edges.input, step.edges.output, step.place.first, step.place.last);
  return key.take();
}

Ranks first_of_stage(int stage) {
  Ranks ranks;
  ranks.pp = stage;
  return ranks;
}

/// The layers of a stage, ascending.
std::vector<std::int32_t> layers_of(const PlanStages& plan, int stage) {
  std::vector<std::int32_t> all;
  for (int chunk = 0; chunk < plan.plan().virtual_stages; ++chunk) {
    const LayerRange range = plan.layers(first_of_stage(stage), chunk);
    for (std::int32_t layer = range.first; layer < range.end(); ++layer) all.push_back(layer);
  }
  std::sort(all.begin(), all.end());
  return all;
}

/// The buckets of these layers besides others.
std::vector<std::int32_t> with_layers(const std::vector<std::int32_t>& others, const std::vector<std::int32_t>& layers) {
  std::vector<std::int32_t> all;
  std::merge(others.begin(), others.end(), layers.begin(), layers.end(), std::back_inserter(all));
  return all;
}

Bytes bytes_of(const std::vector<std::int32_t>& list) { return list.size() * sizeof(std::int32_t); }

}  // namespace

/// A plan as it is asked for: laid out and lowered as far as something of it is new.
class FirstTiles::Plan {
 public:
  explicit Plan(const LoweringInput& input)
      : stages(input),
        model(model_key(input)),
        parameters(parameter_key(input)) {}

  const PlanRanks& ranks() {
    if (ranks_ == nullptr) {
      mapping_.emplace(stages.plan(), stages.input().mesh);
      ranks_ = std::make_unique<PlanRanks>(stages.input(), *mapping_);
      templates_ = std::make_unique<SlotTemplates>(trace_, *ranks_);
    }
    return *ranks_;
  }
  const std::map<std::int32_t, std::uint32_t>& syncs(int stage) {
    ranks();
    const auto [known, fresh] = syncs_.try_emplace(stage);
    if (fresh) known->second = templates_->syncs(first_of_stage(stage));
    return known->second;
  }
  const StepTemplate& step(const OutlineSlot& slot, int stage) {
    const bool sums = slot.what == OutlineSlot::What::sync;
    const std::map<std::int32_t, std::uint32_t> none;
    ranks();
    return trace_.templates[templates_->of(slot, first_of_stage(stage), sums ? syncs(stage) : none)];
  }

  const PlanStages stages;
  const std::string model, parameters;  ///< keys of what the steps of the model are made from, and the others

 private:
  std::optional<Mapping> mapping_;
  std::unique_ptr<PlanRanks> ranks_;
  Trace trace_;
  std::unique_ptr<SlotTemplates> templates_;
  std::map<int, std::map<std::int32_t, std::uint32_t>> syncs_;  ///< by stage
};

template <class Value, class Make>
Value FirstTiles::recall(std::unordered_map<std::string, Value>& known, const std::string& key, const Make& make) {
  {
    const std::lock_guard lock(mutex_);
    const auto found = known.find(key);
    if (found != known.end()) return found->second;
  }
  Value made = make();
  Bytes bytes = 2 * sizeof(Value) + key.size();
  if constexpr (std::is_same_v<Value, Stage>) bytes += bytes_of(made.others.all) + bytes_of(made.others.summed);
  if constexpr (std::is_same_v<Value, std::vector<std::int32_t>>) bytes += bytes_of(made);
  const std::lock_guard lock(mutex_);
  if (remembered_ + bytes > kMostBytes) {
    slots_.clear();
    stages_.clear();
    in_flight_.clear();
    remembered_ = 0;
  }
  if (known.emplace(key, made).second) remembered_ += bytes;
  return made;
}

Bytes FirstTiles::remembered() const {
  const std::lock_guard lock(mutex_);
  return remembered_;
}

FirstTiles::Stage FirstTiles::stage(Plan& plan, int number, std::size_t layers) {
  return recall(stages_, KeyBuilder().add_all(plan.parameters, number, layers).take(), [&] {
    const Ranks ranks = first_of_stage(number);
    const PlanRanks& placed = plan.ranks();
    Stage made{placed.tile(ranks), held_buckets(placed, ranks, plan.syncs(number)), false, resident_bytes(placed, ranks)};
    const auto of_layer = [&placed](std::int32_t bucket) { return bucket >= 0 && bucket < placed.input().model.layers; };
    std::erase_if(made.others.all, of_layer);
    made.sums_layers = std::erase_if(made.others.summed, of_layer) != 0;
    return made;
  });
}

FirstTiles::Slot FirstTiles::slot(Plan& plan, int number, std::size_t layers, const OutlineSlot& slot) {
  KeyBuilder key;
  key.add(slot_key(slot, number, plan.stages.input().model));
  // The optimizer takes all that a stage holds.
  if (slot.what == OutlineSlot::What::optimizer) key.add(layers);
  key.add(slot.what == OutlineSlot::What::model ? plan.model : plan.parameters);
  return recall(slots_, key.take(), [&] {
    const StepTemplate& made = plan.step(slot, number);
    return Slot{made.name, step_memory(made)};
  });
}

std::vector<std::int32_t> FirstTiles::in_flight(const PipelineShape& shape) {
  KeyBuilder key;
  key.add_all(shape.schedule, shape.stages, shape.microbatches, shape.chunks);
  return recall(in_flight_, key.take(), [&shape] { return passes_in_flight(shape); });
}

MemoryBound FirstTiles::bound(Plan& plan, int stages) {
  const LoweringInput& input = plan.stages.input();
  Trace trace;
  trace.pipeline_stages = input.plan.pp;
  trace.iterations = input.training.iterations;
  std::vector<StepMemory> memories;
  for (int number = 0; number < stages; ++number) {
    const std::vector<std::int32_t> layers = layers_of(plan.stages, number);
    const Stage of = stage(plan, number, layers.size());
    const HeldBuckets held{with_layers(of.others.all, layers),
                           of.sums_layers ? with_layers(of.others.summed, layers) : of.others.summed};
    const ProgramOutline outline = make_outline(plan.stages, first_of_stage(number), held);
    const auto first = static_cast<std::uint32_t>(memories.size());
    for (const OutlineSlot& each : outline.slots) {
      Slot known = slot(plan, number, layers.size(), each);
      trace.templates.push_back({std::move(known.name), {}, {}});
      memories.push_back(known.memory);
    }
    Program& program = trace.programs.emplace_back(outline.program);
    for (Step& step : program.steps) step.step_template += first;
    TileBinding binding;
    binding.tile = of.tile;
    binding.program = binding.statics = static_cast<std::uint32_t>(number);
    binding.stage = binding.group = number;
    trace.tiles.push_back(binding);
    trace.statics.push_back({of.resident});
  }
  std::sort(trace.tiles.begin(), trace.tiles.end(),
            [](const TileBinding& a, const TileBinding& b) { return a.tile < b.tile; });
  const std::vector<TileBound> bounds =
      bound_tiles(trace, in_flight(pipeline_shape(input.plan, input.training)), memories);
  place_memory(trace, bounds, input.placement, input.hardware);
  return memory_bound(trace, bounds, input.hardware);
}

MemoryBound FirstTiles::bound(const LoweringInput& input) {
  Plan plan(input);
  const MemoryBound first = bound(plan, 1);
  return first.fits && input.plan.pp > 1 ? bound(plan, input.plan.pp) : first;
}

}  // namespace wafersim::workloads
