#pragma once

#include <array>
#include <string>
#include <vector>

#include "workloads/collectives.h"
#include "workloads/lowering.h"
#include "workloads/parameter_layout.h"
#include "workloads/reshard.h"
#include "workloads/shard.h"
#include "workloads/step_builder.h"
#include "workloads/stream_schedule.h"

namespace wafersim::workloads {

/// Operations that must be complete before something else starts.
using Deps = std::vector<OpId>;
Deps join(Deps first, const Deps& second);
Views operator+(Views first, const Views& second);
Views with_terms(Views views, const Terms& terms);

/// The bytes that an operation reads and writes, by what they belong to. All of them pass through SRAM; what of a
/// class lies in DRAM passes through DRAM as well. `scratch` is made and used up within a step and
/// stays in SRAM.
struct Traffic {
  Bytes scratch = 0;
  Bytes saved = 0;  ///< activations kept from a forward to a backward step
  Bytes parameters = 0;
  Bytes gradients = 0;
  Bytes optimizer = 0;
  Bytes streamed = 0;  ///< blocks of other ranks, in stream buffers
};
Traffic operator+(const Traffic& a, const Traffic& b);
/// Bytes that are saved for the backward step, or used up in this one.
Traffic kept(Bytes bytes, bool keep);

/// What all steps of one inner rank have in common: as the plan cuts it, or as an operator with degrees of its own does.
struct RankContext {
  const LoweringInput& input;
  const ParameterLayout& layout;
  Shard shard;
  Group tp;
  Group tatp;
  Group sp;
  Group ep{};
  std::vector<Range> kv_sharers{};   ///< by kv head: the tensor-parallel ranks that hold it, when there are several
  std::uint32_t previous_stage = 0;  ///< peer with the same ranks on the neighbouring stages
  std::uint32_t next_stage = 0;
  /// Where operators have degrees of their own: what the tile is in each cut, this context for that of the plan; how rows get
  /// from one to another; and the tiles of its model group.
  std::array<const RankContext*, kCuts> cuts{};
  const Reshards* reshards = nullptr;
  Group block{};
};

/// Which neighbours a step of a stage's edge exchanges the boundary tensor with.
enum class Boundary { forward, backward };
/// Of the pipeline transfers, which match by microbatch. A chunk's boundaries have channels of their own: with two stages the way
/// on and the way back to the first stage join the same tiles.
std::uint32_t boundary_channel(Boundary boundary, int chunk);

/// Names of tensors that more than one file knows.
namespace tensors {
inline constexpr const char* kStream = "stream";  ///< the residual stream; of layer l: its input
inline constexpr const char* kStreamGradient = "stream.gradient";
inline constexpr const char* kWeights = "weights";
inline constexpr const char* kGradients = "gradients";
inline constexpr const char* kMicrobatchGradients = "gradients.microbatch";
}  // namespace tensors

/// A tensor of the step's layer, or of a layer further on.
struct TensorName {
  TensorName(const char* tensor) : name(tensor) {}
  TensorName(std::string tensor, int further = 0) : name(std::move(tensor)), layer(further) {}
  std::string name;
  int layer = 0;
};

/// Writes the operations of one step in the terms of a transformer. A thin layer over StepBuilder: it turns
/// traffic into works, knows the rank's groups and names its tensors.
class StepEmitter {
 public:
  StepEmitter(Trace& trace, std::string name, const RankContext& context);

  const Shard& shard() const { return context_->shard; }
  const models::TransformerSpec& model() const { return context_->input.model; }
  const PlanSpec& plan() const { return context_->input.plan; }
  const TrainingSpec& training() const { return context_->input.training; }
  const ParameterLayout& layout() const { return context_->layout; }
  const RankContext& context() const { return *context_; }

  /// What comes next is of the rank in this cut; that of the plan from the start.
  void enter(Cut cut);
  Cut cut() const { return cut_; }
  /// How rows get from the present cut to another; null when all tiles have what they need.
  const Reshard* reshard(Cut to) const;
  /// All tiles of the model group.
  const Group& block() const { return base_.block; }

  /// Rows of the tokens that the rank works on, or of those of its residual stream, and columns `columns`.
  Views work(const std::string& tensor, const Range& columns) { return view(tensor, shard().work, columns); }
  Views local(const std::string& tensor, const Range& columns) { return view(tensor, shard().local, columns); }
  /// Rows of the tokens between the two products of a pair (see Shard::inner).
  Views inner(int pair, const std::string& tensor, const Range& columns) {
    return view(tensor, shard().inner[static_cast<std::size_t>(pair)], columns);
  }
  /// The first two of the hidden width.
  Views work(const std::string& tensor) { return work(tensor, {0, shard().hidden}); }
  Views local(const std::string& tensor) { return local(tensor, {0, shard().hidden}); }
  Views view(const std::string& tensor, const TokenSet& tokens, const Range& columns);
  /// The rank's part of the residual stream `layer` layers on (0: the input of the step's layer), or of its
  /// gradient. stream_of() is that of a layer by its number.
  Views stream(int layer) { return shifted(local(tensors::kStream), layer); }
  Views stream_gradient(int layer) { return shifted(local(tensors::kStreamGradient), layer); }
  /// Of views of all rows that the rank works on, those that are not of its residual stream.
  Views others(const Views& views) const;
  static Views shifted(Views views, int layer);
  static Views of_layer(Views views, int layer);
  Views weights(const std::vector<Region>& regions);
  /// What a backward pass adds to: the sums over microbatches, or a microbatch's own when replicas share out gradients.
  Views gradients(const std::vector<Region>& regions);
  /// Always the sums over microbatches.
  Views summed_gradients(const std::vector<Region>& regions);

  /// A product after `after`; with `result_bytes` its result is allocated first.
  Deps gemm(const models::GemmShape& shape, const Traffic& traffic, const Deps& after, Meaning meaning,
            Bytes result_bytes = 0);
  /// An element-wise operation, as gemm().
  Deps vector(std::uint64_t flops, const Traffic& traffic, const Deps& after, Meaning meaning,
              Bytes result_bytes = 0);

  /// Activations of `bytes` from now on, or until released. Nothing for 0 bytes: returns `after`. `meaning`: what
  /// the buffer holds from the start.
  Deps hold(Bytes bytes, const Deps& after, Meaning meaning = {});
  /// Frees after all operations so far that use what is discarded, sends of it among them.
  void release(Bytes bytes, const Deps& after, Views discards = {});

  /// All-gathers `own`, the rows of the rank's residual stream, over the tensor-parallel group into the tensor
  /// `whole`, a new buffer.
  Deps gather(const Views& own, const std::string& whole, const Deps& after);
  /// The same for a tensor by name into `tensor`.gathered, to be released by release_gathered, when the rank
  /// holds a part of its tokens only; returns `after` otherwise.
  Deps gather_tokens(const std::string& tensor, const Deps& after);
  /// What an operation reads after that.
  Views gathered(const std::string& tensor);
  TensorName gathered_name(const std::string& tensor) const;
  void release_gathered(const std::string& tensor, const Deps& after);
  /// Sums the partial results of the group in place: reduce-scatter over tokens with sequence parallelism,
  /// all-reduce without.
  Deps reduce_tokens(const Views& sums, const Deps& after);
  /// Combines 4-byte values, one for each token.
  Deps reduce_token_scalars(const std::string& tensor, Kernel combine, const Deps& after);

  /// Receives the residual stream (or its gradient) from the neighbouring stage into a new buffer of
  /// local_stream_bytes(). The rank's own shard with sequence parallelism; without it a slice that is then
  /// all-gathered, or the whole tensor. `chunk`: of the stage before the boundary, the chunk that lies before it.
  Deps receive_boundary(Boundary boundary, int chunk);
  /// Sends it, detached, and frees the buffer of local_stream_bytes() that holds it.
  void send_boundary(Boundary boundary, int chunk, const Deps& after);

  /// The tensor-stream group as a line.
  StreamLine tatp_line() const { return stream_line(context_->tatp, plan().stream); }

  /// The ranks that cut the sequence, along a cycle of neighbours where their shape has one.
  StreamLine sp_ring() const { return stream_ring(context_->sp); }

  /// Any other collective over any group. `vector.tensor` is set from its views. Starts after all operations
  /// so far that use them: an earlier collective may still be sending them.
  Deps collective(CollectiveKind kind, const Group& group, CollectiveVector vector, const Deps& after);
  std::uint32_t finish() { return builder_.finish(); }
  StepTemplate take() { return builder_.take(); }

  StepBuilder& builder() { return builder_; }
  Work work_of(const Traffic& traffic) const;
  Operand operand(Meaning meaning);

 private:
  Views gathered_source(const std::string& tensor);
  Bytes boundary_bytes() const;
  bool boundary_is_sliced() const;
  Views boundary_views(Boundary boundary, int layer);

  StepBuilder builder_;
  const RankContext& base_;
  const RankContext* context_;
  Cut cut_ = Cut::plan;
};

}  // namespace wafersim::workloads
