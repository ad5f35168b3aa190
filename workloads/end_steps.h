#pragma once

#include "workloads/buckets.h"
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

/// Whether ranks of one replica have to sum gradients before the replicas do: of norms, output biases and positions,
/// where each has a part of the tokens; of k and v blocks that several tensor-parallel ranks hold; of everything
/// where the sequence is cut over ranks of its own.
bool needs_inner_sync(StepEmitter& step, const Bucket& bucket);

/// Sums a bucket's gradients over the ranks of a replica that share them, then over the replicas (of experts over those
/// that hold them): all-reduce, or reduce-scatter with zero 1 and more, of values of the gradient precision. With zero 2 and 3 the replica's share is
/// added to that of earlier microbatches.
void emit_gradient_sync(StepEmitter& step, const Replicas& replicas, const Bucket& bucket);

/// Sums the gradients of a bucket of tied weights, which the replicas have summed already, with the other end of
/// the pipeline: the tile's own shard only with zero 1 and more.
void emit_tied_gradient_sync(StepEmitter& step, const Replicas& replicas, const Group& tie, const Bucket& bucket);

/// The global gradient norm, of parts that count, and the optimizer on the parameters that the tile updates:
/// all of `buckets`, or its share of each with zero 1 and more. `groups`: over which the norm is summed, in this
/// order.
void emit_optimizer(StepEmitter& step, const Replicas& replicas, const std::vector<Bucket>& buckets,
                    const std::vector<Group>& groups);

/// A buffer for the gradients of one microbatch (zero 2 and 3), from the start of the first step that writes them to
/// the end of their gradient_sync.
void hold_gradients(StepEmitter& step, const Bucket& bucket);

/// Collects the weights of a bucket from the replicas: updated ones (zero 1 and 2), or before a step that uses them, in
/// a buffer of their own (zero 3).
void emit_parameter_gather(StepEmitter& step, const Replicas& replicas, const Bucket& bucket);

/// Gives up the parameters of other replicas after all uses in a step (zero 3).
void release_parameters(StepEmitter& step, const Replicas& replicas, const Bucket& bucket, SeenFrom from);

}  // namespace wafersim::workloads
