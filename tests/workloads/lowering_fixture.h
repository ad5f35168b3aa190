#pragma once

#include <array>
#include <functional>

#include "workloads/lowering.h"

namespace wafersim::workloads {

/// A small model on a mesh that is large enough for every plan of these tests, all of it to be changed before
/// lower().
struct LoweringFixture {
  models::TransformerSpec model;
  TrainingSpec training;
  PlanSpec plan;
  PlacementSpec placement;
  models::WaferSpec wafer;

  LoweringFixture();
  void set_degrees(int dp, int tp, int pp);
  /// LLaMA-like: grouped-query attention, SwiGLU, RMSNorm, rotary positions, no biases.
  void make_llama();
  /// The same as a mixture of four experts, two of which a token passes.
  void make_mixtral();
  /// Bytes of the residual stream of one microbatch.
  Bytes stream_bytes() const;
  void layers_alone() { model.embedding = model.head = false; }
  LoweredPlan lower() const;
  topology::Mesh mesh() const { return topology::Mesh(models::mesh_spec(wafer)); }
};

/// Calls `visit` for each operation that a trace's tiles execute.
void for_each_op(const Trace& trace,
                 const std::function<void(const TileBinding&, const Step&, const Op&)>& visit);

std::uint64_t gemm_flops(const Trace& trace);
/// Bytes sent by all tiles, by axis.
std::array<Bytes, kAxes> sent_bytes(const Trace& trace);

/// Bytes that a template allocates more than it frees.
std::int64_t net_bytes(const StepTemplate& step);

/// Whether the steps of every program free what they allocate, and nothing before it was allocated.
bool memory_returns(const Trace& trace);

}  // namespace wafersim::workloads
