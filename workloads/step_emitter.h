#pragma once

#include <array>
#include <string>
#include <vector>

#include "workloads/collectives.h"
#include "workloads/lowering.h"
#include "workloads/shard.h"
#include "workloads/step_builder.h"

namespace wafersim::workloads {

/// Operations that must be complete before something else starts.
using Deps = std::vector<OpId>;
Deps join(Deps first, const Deps& second);

/// The bytes that an operation reads and writes, by what they belong to. All of them pass through SRAM; those
/// of a class that lives in DRAM pass through DRAM as well. `scratch` is made and used up within a step and
/// stays in SRAM.
struct Traffic {
  Bytes scratch = 0;
  Bytes saved = 0;  ///< activations kept from a forward to a backward step
  Bytes parameters = 0;
  Bytes gradients = 0;
  Bytes optimizer = 0;
};
Traffic operator+(const Traffic& a, const Traffic& b);

/// What all steps of one tensor-parallel rank have in common.
struct RankContext {
  const LoweringInput& input;
  Shard shard;
  Group tp;
  std::uint32_t previous_stage = 0;  ///< peer with the same ranks on the neighbouring stages
  std::uint32_t next_stage = 0;
  std::array<bool, kMemoryClasses> in_dram{};
};

/// Which neighbours a step of a stage's edge exchanges the boundary tensor with.
enum class Boundary { forward, backward };

/// Writes the operations of one step in the terms of a transformer. A thin layer over StepBuilder: it turns
/// traffic into works by the placement of the memory classes and knows the rank's group.
class StepEmitter {
 public:
  StepEmitter(Trace& trace, std::string name, const RankContext& context);

  const Shard& shard() const { return context_.shard; }
  const models::TransformerSpec& model() const { return context_.input.model; }
  const PlanSpec& plan() const { return context_.input.plan; }

  /// A product after `after`, which makes the tensor `name`; with `result_bytes` its result is allocated
  /// first.
  Deps gemm(const std::string& name, const models::GemmShape& shape, const Traffic& traffic,
            const Deps& after, Bytes result_bytes = 0);
  /// An element-wise operation, as gemm().
  Deps vector(const std::string& name, std::uint64_t flops, const Traffic& traffic, const Deps& after,
              Bytes result_bytes = 0);

  /// Activations of `bytes` from now on, or until released. Nothing for 0 bytes: returns `after`.
  Deps hold(Bytes bytes, const Deps& after);
  void release(Bytes bytes, const Deps& after);

  /// All-gathers the residual stream over the tensor-parallel group into a buffer of its own (to be released
  /// by release_gathered) when the rank holds a part of its tokens only; returns `after` otherwise.
  Deps gather_tokens(const std::string& name, const Deps& after);
  void release_gathered(const Deps& after);
  /// Sums the partial results of the group in place: reduce-scatter over tokens with sequence parallelism,
  /// all-reduce without.
  Deps reduce_tokens(const std::string& name, const Deps& after);
  /// Sums 4-byte values, one for each token.
  Deps reduce_token_scalars(const std::string& name, const Deps& after);

  /// Receives the residual stream (or its gradient) from the neighbouring stage into a new buffer of
  /// local_stream_bytes(). The rank's own shard with sequence parallelism; without it a slice that is then
  /// all-gathered, or the whole tensor.
  Deps receive_boundary(Boundary boundary);
  /// Sends it, detached, and frees the buffer of local_stream_bytes() that holds it.
  void send_boundary(Boundary boundary, const Deps& after);

  /// Any other collective over any group.
  Deps collective(CollectiveKind kind, const std::string& name, const Group& group, Bytes bytes,
                  std::uint64_t elements, const Deps& after);
  std::uint32_t finish() { return builder_.finish(); }

 private:
  Work work(const Traffic& traffic) const;
  Operand operand(const std::string& name);
  Bytes boundary_bytes() const;
  bool boundary_is_sliced() const;

  StepBuilder builder_;
  const RankContext& context_;
};

}  // namespace wafersim::workloads
