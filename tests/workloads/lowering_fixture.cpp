#include "tests/workloads/lowering_fixture.h"

namespace wafersim::workloads {

LoweringFixture::LoweringFixture() {
  model.name = "small";
  model.layers = 4;
  model.hidden = 64;
  model.heads = model.kv_heads = 8;
  model.head_dim = 8;
  model.ffn = 256;
  model.vocab = 128;
  model.context = model.sequence = 32;
  model.attention = models::AttentionMask::full;
  model.attention_kernel = models::AttentionKernel::materialized;
  training.global_batch = 16;
  training.microbatch = 2;
  plan.collectives = Collective::ring;
  wafer.mesh.shape = {16, 16};
  wafer.sram.capacity = {1ULL << 30};
}

void LoweringFixture::set_degrees(int dp, int tp, int pp) {
  plan.dp = dp;
  plan.tp = tp;
  plan.pp = pp;
}

void LoweringFixture::make_llama() {
  model.kv_heads = 4;
  model.ffn = 192;
  model.mlp = models::Mlp::swiglu;
  model.norm = models::Norm::rmsnorm;
  model.positions = models::Positions::rotary;
  model.linear_bias = false;
}

void LoweringFixture::make_mixtral() {
  make_llama();
  model.experts = 4;
  model.top_k = 2;
}

Bytes LoweringFixture::stream_bytes() const {
  return static_cast<Bytes>(training.microbatch * model.sequence * model.hidden) *
         element_bytes(training.precision);
}

LoweredPlan LoweringFixture::lower() const {
  const topology::Mesh tiles = mesh();
  const models::HardwareModel hardware = models::resolve_hardware(wafer, {}, {});
  return workloads::lower({model, training, plan, placement, hardware, tiles});
}

void for_each_op(const Trace& trace,
                 const std::function<void(const TileBinding&, const Step&, const Op&)>& visit) {
  for (const TileBinding& tile : trace.tiles) {
    for (const Step& step : trace.programs[tile.program].steps) {
      for (const Op& op : trace.templates[step.step_template].ops) visit(tile, step, op);
    }
  }
}

std::uint64_t gemm_flops(const Trace& trace) {
  std::uint64_t total = 0;
  for_each_op(trace, [&](const TileBinding&, const Step&, const Op& op) {
    if (op.kind == OpKind::matrix) total += trace.works[op.work].gemm.flops();
  });
  return total;
}

std::array<Bytes, kAxes> sent_bytes(const Trace& trace) {
  std::array<Bytes, kAxes> total{};
  for_each_op(trace, [&](const TileBinding&, const Step&, const Op& op) {
    if (op.kind == OpKind::send) total[static_cast<std::size_t>(op.axis)] += op.bytes;
  });
  return total;
}

std::int64_t net_bytes(const StepTemplate& step) {
  std::int64_t net = 0;
  for (const Op& op : step.ops) {
    if (op.kind == OpKind::allocate) net += static_cast<std::int64_t>(op.bytes);
    if (op.kind == OpKind::free) net -= static_cast<std::int64_t>(op.bytes);
  }
  return net;
}

bool memory_returns(const Trace& trace) {
  for (const Program& program : trace.programs) {
    std::int64_t held = 0;
    for (const Step& step : program.steps) {
      held += net_bytes(trace.templates[step.step_template]);
      if (held < 0) return false;
    }
    if (held != 0) return false;
  }
  return true;
}

}  // namespace wafersim::workloads
