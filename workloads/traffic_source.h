#pragma once

#include <array>
#include <initializer_list>
#include <utility>
#include <vector>

#include "workloads/axis_traffic.h"
#include "workloads/parameter_layout.h"

namespace wafersim::workloads {

/// One rank of an axis, or some of them.
struct AxisSpan {
  AxisSpan(Axis of, int rank) : axis(of), span{rank, 1} {}
  AxisSpan(Axis of, RankSpan ranks) : axis(of), span(ranks) {}
  Axis axis;
  RankSpan span;
};

/// The traffic of a plan while it is counted.
class TrafficList {
 public:
  explicit TrafficList(const PlanSpec& plan) : plan_(&plan) {}

  /// What comes next is in the ranks of this cut, whose plan has to outlive that.
  void enter(Cut cut, const PlanSpec& plan) {
    cut_ = cut;
    plan_ = &plan;
  }

  /// All groups, but those of the given ranks only.
  RankSpans at(std::initializer_list<AxisSpan> ranks) const;
  /// Unless it is nothing: a group of one, no bytes, no times.
  void add(AxisTraffic traffic);
  /// All that was added; what differs in neighbouring spans only is joined.
  std::vector<AxisTraffic> take();

 private:
  void merge_spans(Axis axis);

  const PlanSpec* plan_;
  Cut cut_ = Cut::plan;
  std::vector<AxisTraffic> traffic_;
};

/// What the formulas of all kinds of traffic have in common.
struct TrafficSource {
  TrafficSource(const models::TransformerSpec& the_model, const TrainingSpec& the_training,
                const PlanSpec& the_plan)
      : TrafficSource(the_model, the_training, the_plan, Cut::plan, {the_model, the_training, the_plan}) {}
  /// Of the operators of a cut: `the_layout` places their weights, the plan has their degrees.
  TrafficSource(const models::TransformerSpec& the_model, const TrainingSpec& the_training, const PlanSpec& the_plan,
                Cut the_cut, ParameterLayout the_layout);

  const models::TransformerSpec& model;
  const TrainingSpec& training;
  const PlanSpec& plan;
  Cut cut;  ///< that of the plan: all of a layer
  ParameterLayout layout;
  std::array<bool, kPairs> streams_inputs;  ///< by pair of products, see streams_inputs()
  Bytes element = 2;          ///< bytes of an activation or weight
  Bytes gradient = 2;         ///< bytes of a gradient of a weight
  std::uint64_t hidden = 0;
  std::uint64_t microbatches = 0;
  std::uint64_t forwards = 1;  ///< of a layer for one backward: recomputation makes them two

  bool has_pair(int pair) const { return cut == Cut::plan || (cut == Cut::attention) == (pair == 0); }
  bool sequence_parallel() const { return plan.sp == SequenceParallel::megatron; }
  bool is_first(int stage) const { return stage == 0; }
  bool is_last(int stage) const { return stage == plan.pp - 1; }
  bool has_embedding(int stage) const { return model.embedding && is_first(stage); }
  bool has_head(int stage) const { return model.head && is_last(stage); }
  bool replicates_table() const { return plan.embedding == EmbeddingTable::replicated; }
  bool ties_across_stages() const {
    return model.tied_embeddings && model.embedding && model.head && plan.pp > 1;
  }
  /// Layers of all of a stage's chunks, and times microbatches.
  std::uint64_t layers(int stage) const;
  /// Of them, those that recompute steps of their own make again.
  std::uint64_t remade_layers(int stage) const;
  std::uint64_t layer_passes(int stage) const { return layers(stage) * microbatches; }
  /// All stages, in runs of neighbours that do the same.
  std::vector<RankSpan> alike_stages() const;
  /// That a rank works on.
  std::uint64_t tokens(int sp, int tatp) const {
    return tokens_[static_cast<std::size_t>(sp * plan.tatp + tatp)];
  }
  /// Of the first sp rank: its heads are those of all.
  const Shard& shard(int tp, int tatp) const {
    return shards_[static_cast<std::size_t>(streams_inputs[0] ? tp * plan.tatp + tatp : tp)];
  }

 private:
  std::vector<Shard> shards_;  ///< by tp rank, and by tatp rank where it cuts heads
  std::vector<std::uint64_t> tokens_;
};

/// What streams over tatp: blocks of weights, and sums of their gradients; or rows of the residual stream, and their
/// sums. `stages` are alike.
void add_product_streams(const TrafficSource& source, TrafficList& list, RankSpan stages);
/// The same of the head's table.
void add_head_stream(const TrafficSource& source, TrafficList& list, RankSpan stages);

/// What attention sends where the sequence is cut: streams of keys and values and of their gradients over
/// tatp, over a ring of sp ranks, or both; exchanges of heads for tokens. `stages` are alike.
void add_attention_traffic(const TrafficSource& source, TrafficList& list, RankSpan stages);

}  // namespace wafersim::workloads
