#pragma once

#include "workloads/layer.h"

namespace wafersim::workloads {

/// The token embedding, cut over the vocabulary: a rank looks up the tokens it holds, the sum over ranks has
/// them all. `forward` hands the residual stream on, `backward` takes the first layer's input gradient and
/// adds it to the rows of the table.
void emit_embedding_forward(StepEmitter& step);
void emit_embedding_backward(StepEmitter& step);

/// The token embedding with the whole table on every rank: each looks up the tokens of its own residual stream, and
/// nothing is summed. With sequence parallelism a rank has the gradients of its own tokens only, to be summed over
/// the tensor-parallel ranks with those of the norms; without, every rank has those of all tokens.
void emit_replicated_embedding_forward(StepEmitter& step);
void emit_replicated_embedding_backward(StepEmitter& step);

/// Final norm, logits of the rank's part of the vocabulary and softmax cross-entropy (the maximum and the sum
/// of each token's row are all-reduced as 4-byte values). Keeps the norm's output and the probabilities until
/// the backward step, which makes the last layer's output gradient and the head's weight gradient.
void emit_head_forward(StepEmitter& step);
void emit_head_backward(StepEmitter& step);

/// A run of parameters that a tile holds.
struct BucketPart {
  std::int32_t layer = 0;  ///< -1 the embedding, the number of layers the head
  Region region;
  bool token_sums = false;  ///< its gradient is made from the tokens of the rank's residual stream alone
  int kv_head = -1;         ///< k and v blocks that several tensor-parallel ranks hold: of which head
  bool counts = true;       ///< in the gradient norm: one of the tiles of a replica that hold it counts it
};

/// The weights that one gradient_sync or parameter_gather step is about.
struct Bucket {
  std::int32_t layer = 0;  ///< of its gradient_sync and parameter_gather steps
  std::vector<BucketPart> parts;
  std::uint64_t parameters() const;
};

/// Whether ranks of one replica have to sum gradients before the replicas do: of norms, output biases and positions,
/// where each has a part of the tokens; of k and v blocks that several tensor-parallel ranks hold; of everything
/// where the sequence is cut over ranks of its own.
bool needs_inner_sync(const StepEmitter& step, const Bucket& bucket);

/// Sums a bucket's gradients over the ranks of a replica that share them, then over the replicas: all-reduce, or
/// reduce-scatter with zero 1, of values of the training precision.
void emit_gradient_sync(StepEmitter& step, const Group& dp, const Bucket& bucket);

/// Sums the gradients of a bucket of tied weights, which the replicas have summed already, with the other end of
/// the pipeline: the tile's own shard only with zero 1.
void emit_tied_gradient_sync(StepEmitter& step, const Group& dp, const Group& tie, const Bucket& bucket);

/// The global gradient norm, of parts that count, and the optimizer on the parameters that the tile updates:
/// all of `buckets`, or its share of each with zero 1. `groups`: over which the norm is summed, in this
/// order.
void emit_optimizer(StepEmitter& step, const Group& dp, const std::vector<Bucket>& buckets,
                    const std::vector<Group>& groups);

/// Collects the updated weights of a bucket from the replicas (zero 1).
void emit_parameter_gather(StepEmitter& step, const Group& dp, const Bucket& bucket);

}  // namespace wafersim::workloads
