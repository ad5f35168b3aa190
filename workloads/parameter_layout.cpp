#include "workloads/parameter_layout.h"

namespace wafersim::workloads {

namespace {

std::uint64_t count(std::int64_t value) { return static_cast<std::uint64_t>(value); }

Region column(std::uint64_t first, std::uint64_t rows) { return {first, rows, 0, 1}; }

}  // namespace

std::uint64_t WeightSlice::width() const {
  std::uint64_t total = 0;
  for (const Range& each : columns) total += each.count;
  return total;
}

std::uint64_t parameters_in(const std::vector<Region>& regions) {
  std::uint64_t total = 0;
  for (const Region& region : regions) total += region.rows;
  return total;
}

ParameterLayout::ParameterLayout(const models::TransformerSpec& model, const TrainingSpec& training,
                                 const PlanSpec& plan, const Part& part)
    : model_(model),
      tp_(plan.tp),
      tatp_(plan.tatp),
      chunks_(plan.tatp > 1 ? plan.overlap_near : 1),
      streams_inputs_(streamed_inputs(model, training, plan)),
      hidden_(count(model.hidden)),
      replicated_(part.cut != Cut::mlp && replicates_kv_heads(model, plan, streams_inputs_[0])) {
  if (streams_inputs_[0] || streams_inputs_[1]) kept_ = tatp_;
  for (int tp = 0; tp < tp_; ++tp) {
    for (int tatp = 0; tatp < kept_; ++tatp) shards_.push_back(make_shard(model, training, plan, {tp, tatp, 0}));
  }
  norm_ = hidden_ * (model.norm == models::Norm::layernorm ? 2 : 1);
  biases_ = 2 * norm_;
  router_ = biases_ + (model.linear_bias ? 2 * hidden_ : 0);
  kv_ = router_ + hidden_ * count(model.experts);
  std::uint64_t next = kv_;
  if (replicated_) next = kv_first(slices());
  if (part.first != 0) next = part.first;
  constexpr auto kMlp = static_cast<std::size_t>(Weight::mlp_up);
  blocks_ = make_blocks(next, part.cut == Cut::mlp ? kMlp : 0, model.routes() || part.cut == Cut::attention ? kMlp : kWeights);
  experts_ = next;
  if (model.routes()) expert_blocks_ = make_blocks(expert_size_, kMlp, kWeights);
}

/// The blocks of some weights, from `next` on, which is then behind them.
std::vector<ParameterLayout::Block> ParameterLayout::make_blocks(std::uint64_t& next, std::size_t first_weight,
                                                                 std::size_t end_weight) const {
  std::vector<Block> blocks;
  for (int tp = 0; tp < tp_; ++tp) {
    for (int slice = 0; slice < slices(); ++slice) {
      Block& block = blocks.emplace_back();
      block.first = next;
      for (std::size_t w = 0; w < kWeights; ++w) {
        const auto weight = static_cast<Weight>(w);
        std::uint64_t width = 0;
        for (const Range& each : columns(weight, tp, slice)) width += each.count;
        if (weight == Weight::qkv && replicated_) width = columns(weight, tp, slice).front().count;
        const bool here = w >= first_weight && w < end_weight;
        block.offset[w + 1] = block.offset[w] + (here ? rows(weight, tp, slice) * width : 0);
      }
      next += block.offset[kWeights];
    }
  }
  return blocks;
}

/// Parameters of a slice of the k and v columns of one kv head. Where inputs travel all of a head's columns are one.
std::uint64_t ParameterLayout::kv_block(int slice) const {
  const std::uint64_t all = count(model_.head_dim);
  const std::uint64_t own = !streams_inputs_[0] ? share(all, slices(), slice) : slice == 0 ? all : 0;
  return 2 * rows(Weight::qkv, 0, 0) * own;
}

/// Where the replicated blocks of a slice stand.
std::uint64_t ParameterLayout::kv_first(int slice) const {
  std::uint64_t first = kv_;
  for (int before = 0; before < slice; ++before) first += count(model_.kv_heads) * kv_block(before);
  return first;
}

bool ParameterLayout::has_bias(Weight weight) const {
  if (weight == Weight::qkv) return model_.has_qkv_bias();
  return weight == Weight::mlp_up && model_.linear_bias;
}

Range ParameterLayout::input_columns(Weight weight, int tp, int tatp) const {
  const Shard& own = shard(tp, tatp * chunks_);
  if (weight == Weight::attention_output) return {own.heads.first * own.head_dim, own.q_width};
  if (weight == Weight::mlp_down) return own.ffn;
  return {0, hidden_};
}

std::uint64_t ParameterLayout::input_width(Weight weight) const {
  if (weight == Weight::attention_output) return count(model_.q_width());
  return weight == Weight::mlp_down ? count(model_.ffn) : hidden_;
}

/// Of a weight's block, its bias included.
std::uint64_t ParameterLayout::rows(Weight weight, int tp, int slice) const {
  return input_columns(weight, tp, slice / chunks_).count + (has_bias(weight) ? 1 : 0);
}

std::vector<Range> ParameterLayout::columns(Weight weight, int tp, int slice) const {
  const Shard& own = shard(tp, slice);
  const bool whole = streams_inputs(weight), none = vacant(weight, slice);
  const auto cut = [&](std::uint64_t first, std::uint64_t width) {
    if (whole) return Range{first, none ? 0 : width};
    const Range part = share_range(width, slices(), slice);
    return Range{first + part.first, part.count};
  };
  if (weight == Weight::attention_output || weight == Weight::mlp_down) return {cut(0, hidden_)};
  if (weight == Weight::mlp_up) {
    std::vector<Range> result{cut(own.ffn.first, own.ffn.count)};
    if (model_.mlp == models::Mlp::swiglu) {
      result.push_back(cut(count(model_.ffn) + own.ffn.first, own.ffn.count));
    }
    return result;
  }
  const std::uint64_t d = own.head_dim, q = count(model_.q_width()), kv = count(model_.kv_width());
  std::vector<Range> result{cut(own.heads.first * d, own.q_width)};
  if (!replicated_) {
    result.push_back(cut(q + own.kv_heads.first * d, own.kv_width));
    result.push_back(cut(q + kv + own.kv_heads.first * d, own.kv_width));
    return result;
  }
  for (std::uint64_t head = own.kv_heads.first; head < own.kv_heads.end(); ++head) {
    result.push_back(cut(q + head * d, d));
    result.push_back(cut(q + kv + head * d, d));
  }
  return result;
}

WeightSlice ParameterLayout::weight(Weight weight, int tp, int number, std::uint64_t expert) const {
  const bool of_expert = model_.routes() && (weight == Weight::mlp_up || weight == Weight::mlp_down);
  const Block& own = of_expert ? expert_block(tp, number) : block(tp, number);
  const auto w = static_cast<std::size_t>(weight);
  WeightSlice slice{{}, columns(weight, tp, number)};
  const bool apart = weight == Weight::qkv && replicated_;
  std::uint64_t next = own.first + own.offset[w] + (of_expert ? experts_ + expert * expert_size_ : 0);
  for (const Range& each : slice.columns) {
    const std::uint64_t size = rows(weight, tp, number) * each.count;
    slice.regions.push_back(column(next, size));
    next += size;
    if (apart) break;
  }
  if (!apart) return slice;
  for (const Region& pair : kv_slice(tp, number)) {
    slice.regions.push_back(column(pair.row, pair.rows / 2));
    slice.regions.push_back(column(pair.row + pair.rows / 2, pair.rows / 2));
  }
  return slice;
}

/// By kv head of the rank.
std::vector<Region> ParameterLayout::kv_slice(int tp, int slice) const {
  std::vector<Region> result;
  const Range heads = shard(tp, slice).kv_heads;
  const bool none = vacant(Weight::qkv, slice);
  // Of all ranks of a line the blocks of the first slice, where that is all of a head.
  const int stands = streams_inputs_[0] ? 0 : slice;
  for (std::uint64_t head = heads.first; head < heads.end(); ++head) {
    const std::uint64_t first = kv_first(stands) + head * kv_block(stands);
    result.push_back(column(first, none ? 0 : kv_block(stands)));
  }
  return result;
}

std::vector<ParameterLayout::SharedHead> ParameterLayout::replicated_kv(int tp, int tatp) const {
  std::vector<SharedHead> result;
  if (!replicated_) return result;
  for (int slice = tatp * chunks_; slice < (tatp + 1) * chunks_; ++slice) {
    if (vacant(Weight::qkv, slice)) continue;
    std::uint64_t head = shard(tp, slice).kv_heads.first;
    for (const Region& region : kv_slice(tp, slice)) result.push_back({static_cast<int>(head++), region});
  }
  return result;
}

std::vector<Range> ParameterLayout::line_sharers(int tp) const {
  std::vector<Range> result;
  if (!replicated_ || !streams_inputs_[0]) return result;
  result.resize(count(model_.kv_heads));
  for (int tatp = 0; tatp < tatp_; ++tatp) {
    const Range& heads = shard(tp, tatp * chunks_).kv_heads;
    for (std::uint64_t head = heads.first; head < heads.end(); ++head) {
      if (result[head].count++ == 0) result[head].first = static_cast<std::uint64_t>(tatp);
    }
  }
  return result;
}

ParameterLayout operator_parameters(const models::TransformerSpec& model, const TrainingSpec& training, const PlanSpec& plan,
                                    Cut cut) {
  ParameterLayout attention(model, training, cut_plan(plan, Cut::attention), {Cut::attention, 0});
  if (cut == Cut::attention) return attention;
  return {model, training, cut_plan(plan, Cut::mlp), {Cut::mlp, attention.layer_end()}};
}

Region ParameterLayout::norm(int which) const { return column(count(which) * norm_, norm_); }

Region ParameterLayout::output_bias(int which) const {
  return column(biases_ + (model_.linear_bias ? count(which) * hidden_ : 0), model_.linear_bias ? hidden_ : 0);
}

Region ParameterLayout::router() const { return column(router_, kv_ - router_); }

Region ParameterLayout::positions() const {
  return column(0, model_.positions == models::Positions::learned ? count(model_.context) * hidden_ : 0);
}

Region ParameterLayout::final_norm() const { return column(0, model_.final_norm ? norm_ : 0); }

Range ParameterLayout::vocabulary(int tp, int tatp) const {
  const Range all = shard(tp, 0).vocab;
  const Range part = share_range(all.count, tatp_, tatp);
  return {all.first + part.first, part.count};
}

std::uint64_t ParameterLayout::padded_vocabulary() const {
  return shards_.back().vocab.end();
}

Region ParameterLayout::table(bool of_head, int tp, int tatp) const {
  const Range rows = vocabulary(tp, tatp);
  const std::uint64_t before = of_head ? final_norm().rows : positions().rows;
  return column(before + rows.first * hidden_, rows.count * hidden_);
}

Region ParameterLayout::whole_table() const {
  return column(positions().rows, padded_vocabulary() * hidden_);
}

std::vector<Region> ParameterLayout::layer(int tp, int tatp) const {
  std::vector<Region> result{column(0, kv_)};
  for (const SharedHead& each : replicated_kv(tp, tatp)) result.push_back(each.region);
  std::uint64_t size = 0;
  for (int slice = tatp * chunks_; slice < (tatp + 1) * chunks_; ++slice) size += block(tp, slice).offset[kWeights];
  result.push_back(column(block(tp, tatp * chunks_).first, size));
  return result;
}

std::vector<Region> ParameterLayout::experts(int tp, int tatp, const Range& experts) const {
  std::vector<Region> result;
  if (!model_.routes()) return result;
  std::uint64_t size = 0;
  for (int slice = tatp * chunks_; slice < (tatp + 1) * chunks_; ++slice) {
    size += expert_block(tp, slice).offset[kWeights];
  }
  const std::uint64_t first = experts_ + expert_block(tp, tatp * chunks_).first;
  for (std::uint64_t expert = experts.first; expert < experts.end(); ++expert) {
    result.push_back(column(first + expert * expert_size_, size));
  }
  return result;
}

}  // namespace wafersim::workloads
