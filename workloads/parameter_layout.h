#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "workloads/shard.h"

namespace wafersim::workloads {

/// The four weights of a layer; with a mixture of experts every expert has an MLP pair of its own. Columns are cut over
/// tp for the first of each pair, rows for the second (Shoeybi et al. 2019). Of what a tp rank holds tatp cuts the
/// columns, or where inputs travel once more the columns of the first and the rows of the second.
enum class Weight : std::uint8_t { qkv, attention_output, mlp_up, mlp_down };
inline constexpr std::size_t kWeights = 4;
/// Of attention (0) or the MLP (1).
constexpr int pair_of(Weight weight) { return weight == Weight::qkv || weight == Weight::attention_output ? 0 : 1; }

/// A slice of the columns of a weight: blocks of (input width, plus one row for a bias) x columns, one region for
/// each run of output columns, row-major within it.
struct WeightSlice {
  std::vector<Region> regions;
  std::vector<Range> columns;   ///< of the output tensor, by region
  std::uint64_t width() const;  ///< columns
};

/// Where each parameter of a layer, of the embedding and of the head stands in the one-column matrix of its
/// bucket. A parameter that several ranks hold stands in one place for all of them. The columns of what a tp rank
/// holds are cut into slices: `chunks` for each tatp rank, those of rank j being j chunks .. (j + 1) chunks - 1. Where
/// inputs travel the first slice of a rank is all that it holds of a weight.
///   layer:     norms, output biases, router (hidden x experts), replicated k and v blocks, then the blocks of each tp
///              rank and slice in turn; with experts these have attention's weights only, and the blocks of each
///              expert follow, tp rank by tp rank and slice by slice
///   embedding: learned positions (context x hidden), then the table (padded vocabulary x hidden)
///   head:      final norm, then the table, unless it is tied to an embedding on the same stage
class ParameterLayout {
 public:
  ParameterLayout(const models::TransformerSpec& model, const TrainingSpec& training, const PlanSpec& plan)
      : ParameterLayout(model, training, plan, {}) {}
  /// Which weights of a layer the layout places, and from where on: those of one operator, or all behind what all ranks hold.
  struct Part {
    Cut cut = Cut::plan;
    std::uint64_t first = 0;
  };
  ParameterLayout(const models::TransformerSpec& model, const TrainingSpec& training, const PlanSpec& plan, const Part& part);

  /// Gain (and bias) of the norm before attention (0) or the MLP (1).
  Region norm(int which) const;
  /// Of the attention output (0) or the MLP output (1); no rows without biases.
  Region output_bias(int which) const;
  /// Of every rank alike; no rows without experts.
  Region router() const;
  /// `expert`: of the weights of an MLP, whose.
  WeightSlice weight(Weight weight, int tp, int slice, std::uint64_t expert = 0) const;
  /// Slices of a tatp rank.
  int chunks() const { return chunks_; }
  bool streams_inputs(Weight weight) const { return streams_inputs_[static_cast<std::size_t>(pair_of(weight))]; }
  /// Input columns of a weight: of all ranks, and those of one tp and tatp rank.
  Range input_columns(Weight weight, int tp, int tatp) const;
  std::uint64_t input_width(Weight weight) const;
  bool row_parallel(Weight weight) const {
    return weight == Weight::attention_output || weight == Weight::mlp_down;
  }
  bool has_bias(Weight weight) const;

  Region positions() const;
  Region final_norm() const;
  /// Table rows of a tatp rank, in the embedding or in a head with a table of its own.
  Region table(bool of_head, int tp, int tatp) const;
  /// Of the embedding, all ranks' rows.
  Region whole_table() const;
  Range vocabulary(int tp, int tatp) const;
  std::uint64_t padded_vocabulary() const;

  /// All that a rank holds of a layer but its experts. The first region are norms, output biases and router.
  std::vector<Region> layer(int tp, int tatp) const;
  /// All parameters of a layer, or those that stand before the end of an operator's.
  std::uint64_t layer_end() const { return experts_; }
  /// What a rank holds of some experts, one region for each.
  std::vector<Region> experts(int tp, int tatp, const Range& experts) const;
  /// k and v blocks that may stand on several ranks; none unless there are more ranks that cut heads than kv heads.
  struct SharedHead {
    int kv_head = 0;
    Region region;
  };
  std::vector<SharedHead> replicated_kv(int tp, int tatp) const;
  /// By kv head: the tatp ranks of a line that hold the same block of it. None where each holds its own slice.
  std::vector<Range> line_sharers(int tp) const;

 private:
  struct Block {
    std::uint64_t first = 0;
    std::array<std::uint64_t, kWeights + 1> offset{};
  };
  const Shard& shard(int tp, int slice) const {
    return shards_[static_cast<std::size_t>(tp * kept_ + (kept_ > 1 ? slice / chunks_ : 0))];
  }
  /// A slice that a rank has nothing in, because its first one is all of its weight.
  bool vacant(Weight weight, int slice) const { return streams_inputs(weight) && slice % chunks_ != 0; }
  std::uint64_t kv_block(int slice) const;
  std::uint64_t kv_first(int slice) const;
  std::vector<Region> kv_slice(int tp, int slice) const;
  const Block& block(int tp, int slice) const {
    return blocks_[static_cast<std::size_t>(tp * slices() + slice)];
  }
  const Block& expert_block(int tp, int slice) const {
    return expert_blocks_[static_cast<std::size_t>(tp * slices() + slice)];
  }
  std::vector<Block> make_blocks(std::uint64_t& next, std::size_t first_weight, std::size_t end_weight) const;
  int slices() const { return tatp_ * chunks_; }
  std::vector<Range> columns(Weight weight, int tp, int slice) const;
  std::uint64_t rows(Weight weight, int tp, int slice) const;

  const models::TransformerSpec& model_;
  int tp_;
  int tatp_;
  int chunks_;
  std::array<bool, kPairs> streams_inputs_;
  int kept_ = 1;  ///< tatp ranks of a line that differ in what they hold of a layer's heads and MLP
  std::vector<Shard> shards_;  ///< by tp rank, then such a tatp rank
  std::uint64_t hidden_ = 0;
  std::uint64_t norm_ = 0;      ///< parameters of one norm
  std::uint64_t biases_ = 0;    ///< where the output biases stand
  std::uint64_t router_ = 0;    ///< where the router stands
  std::uint64_t kv_ = 0;        ///< where the replicated k and v blocks stand
  bool replicated_ = false;
  std::vector<Block> blocks_;
  std::uint64_t experts_ = 0;      ///< where the first expert stands
  std::uint64_t expert_size_ = 0;  ///< parameters of one
  std::vector<Block> expert_blocks_;  ///< of one expert, from its beginning
};

/// Where operators have degrees of their own (PlanSpec::splits_operators): the layout of one of them, by the ranks of its
/// cut. Its norm and output bias stand where they do in every layout, then come the weights of attention, and those of the MLP.
ParameterLayout operator_parameters(const models::TransformerSpec& model, const TrainingSpec& training, const PlanSpec& plan,
                                    Cut cut);

std::uint64_t parameters_in(const std::vector<Region>& regions);

}  // namespace wafersim::workloads
