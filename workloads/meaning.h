#pragma once

#include <cstdint>
#include <string>
#include <vector>

/// What the operations of a trace mean: which parts of which tensors they read and write. The simulator knows
/// nothing of it; the verifier (verify.h) proves with it that a trace computes what it should, and a numeric
/// executor can run it on real matrices.
namespace wafersim::workloads {

/// What the instances of a tensor belong to; together with the tensor they say which matrix is meant.
enum class TensorScope : std::uint8_t {
  parameter,   ///< a layer: weights and optimizer states, resident
  gradient,    ///< a layer and an iteration: sums over microbatches and replicas
  microbatch_gradient,  ///< as gradient, of one microbatch
  activation,           ///< a layer, a microbatch and an iteration
};

/// Whether what is written to a tensor adds to what is there, by addends of one microbatch of one replica.
constexpr bool is_gradient(TensorScope scope) {
  return scope == TensorScope::gradient || scope == TensorScope::microbatch_gradient;
}

struct Tensor {
  std::string name;
  TensorScope scope = TensorScope::activation;
  bool operator==(const Tensor&) const = default;
};

/// A rectangle of a tensor's matrix, in rows and columns of the whole tensor (all members of all groups count
/// in the same matrix). Activations have a row for each token of the microbatch, position-major: row =
/// position x sequences + sequence. The parameters of a layer are one matrix of a single column, see
/// ParameterLayout.
struct Region {
  std::uint64_t row = 0;
  std::uint64_t rows = 0;
  std::uint64_t col = 0;
  std::uint64_t cols = 1;
  std::uint64_t row_end() const { return row + rows; }
  std::uint64_t col_end() const { return col + cols; }
  std::uint64_t area() const { return rows * cols; }
  bool operator==(const Region&) const = default;
};

inline bool overlap(const Region& a, const Region& b) {
  return a.row < b.row_end() && b.row < a.row_end() && a.col < b.col_end() && b.col < a.col_end();
}

/// Which of the `total` addends of a sum a value has: first .. first + count - 1. One of one: it is complete.
struct Terms {
  std::uint64_t first = 0;
  std::uint64_t count = 1;
  std::uint64_t total = 1;
  bool operator==(const Terms&) const = default;
};

/// A region of a tensor's instance of the step's microbatch, and of the step's layer plus `layer` or, when
/// `absolute`, of the layer `layer`. Layer -1 is the embedding, the number of layers the head. The residual
/// stream of layer l is the input of layer l.
struct View {
  std::uint32_t tensor = 0;  ///< index into Trace::tensors
  std::int32_t layer = 0;
  bool absolute = false;
  /// Of gradients: of which replica's tokens the addends are, counted from the tile's own replica.
  std::int16_t replica = 0;
  Region region;
  /// Of what is written there. Of gradients: which addends of one microbatch of one replica. Of what is read there by
  /// a kernel that is linear in it: which addends it must have, all of them unless said otherwise.
  Terms terms{};
  bool operator==(const View&) const = default;
};
/// A region may come more than once in what an operation writes, with other terms each time.
using Views = std::vector<View>;

/// The mathematics of an operation. Letters: X input, W weight (input width x output width), Y output, d
/// gradients; operands in this order, widths from the regions. "Adds" operations are marked by Meaning::adds.
enum class Kernel : std::uint8_t {
  none,      ///< no mathematics: nothing is read or written
  transfer,  ///< the regions that a message carries, in Meaning::writes at both of its ends
  land,      ///< as transfer, for partial sums: the receiver keeps them apart until `add` takes them
  pass,      ///< as transfer or land, by a member that only passes the message on
  add,       ///< what has landed is added to the regions in Meaning::writes
  maximum,   ///< as add, with the larger of two values
  memory,    ///< allocates what it writes (model input from outside), frees what it discards
  norm,             ///< Y <- X, gain (, bias)
  norm_backward,    ///< dX, dgain (, dbias) <- dY, X, gain, residual path's gradient (added to dX)
  linear,           ///< Y <- X, W
  linear_input,     ///< dX <- dY, W
  linear_weight,    ///< dW (, dbias) <- X, dY
  bias_gradient,    ///< dbias <- dY
  logits,           ///< Y <- X, table of output width x input width; -infinity for vocabulary padding
  logits_input,     ///< dX <- dY, table
  logits_weight,    ///< dtable <- X, dY
  rotary,           ///< q and k turned in place
  rotary_backward,  ///< dq and dk turned back in place
  scores,           ///< S <- q, k: scaled and masked; a column for each head, a cell is a row over all keys
  softmax,          ///< P <- S
  values,           ///< O <- P, v
  attend,           ///< O <- q, k, v of some keys: their part of the softmax-weighted sum, with running row statistics
  row_products,     ///< row sums of O dO, for each head
  attend_backward,  ///< dq, dk, dv <- q, k, v, dO, row products: of some keys
  value_gradient,   ///< dv <- P, dO
  softmax_gradient,  ///< dP <- dO, v
  score_gradient,    ///< dS <- P, dP
  query_gradient,    ///< dq <- dS, k
  key_gradient,      ///< dk <- dS, q
  activation,           ///< A <- up (, gate: the columns from the MLP's width on)
  activation_backward,  ///< dup (, dgate) <- dA, up (, gate)
  route,              ///< G <- logits: the softmax over the experts that each token's choices go to, a column for each
  route_backward,     ///< dlogits <- dG, G
  dispatch,           ///< Z <- X: rows of experts' inputs from those of tokens, zeros where a slot is padding
  dispatch_backward,  ///< dX <- dZ: sums over a token's choices
  combine,            ///< Y <- Z, G: sums of the experts' outputs for a token, times its G
  combine_backward,   ///< dZ, dG <- dY, Z, G
  residual,             ///< Y <- X, F (, bias): the sum
  copy,                 ///< Y <- X; also dropout and its gradient, without the mask
  embed,                ///< the rows of the table that this rank holds, zero for other tokens
  embed_positions,      ///< as embed, and the positions of those tokens
  embed_backward,       ///< dtable <- dY
  position_gradient,    ///< dpositions <- dY
  row_maximum,          ///< of the rank's logits
  row_sum,              ///< of exp(logits - maximum)
  probabilities,        ///< <- logits, maximum, sum; also the loss of each token whose label is here
  loss_gradient,        ///< dlogits <- probabilities, labels; scaled by 1 / tokens of the global batch
  accumulate,           ///< what is read is added to what is written, region by region
  square_sum,           ///< of the gradients that this tile counts
  update                ///< weights and states <- weights, states, gradients
};
const char* to_string(Kernel kernel);

struct Meaning {
  Kernel kernel = Kernel::none;
  bool adds = false;  ///< to the activations that are there already; otherwise they are replaced. Gradients always add.
  Views reads{};
  Views writes{};
  Views discards{};  ///< not to be used after this operation
  bool operator==(const Meaning&) const = default;
};

/// The rows `first` .. `first + count - 1` of the views put one below the other.
Views slice_rows(const Views& views, std::uint64_t first, std::uint64_t count);
std::uint64_t total_rows(const Views& views);

}  // namespace wafersim::workloads
