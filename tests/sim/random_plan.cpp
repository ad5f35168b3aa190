#include "tests/sim/random_plan.h"

#include <algorithm>

#include "base/random.h"

namespace wafersim::test {
namespace {

using workloads::LoweringFixture;

template <class T>
T pick(RandomStream& random, std::string& text, const char* name, const std::vector<T>& choices) {
  const std::size_t index = random.below(choices.size());
  text += std::string(name) + " #" + std::to_string(index) + ", ";
  return choices[index];
}

Bandwidth per_cycle(std::int64_t bytes) { return {Rational(bytes), true}; }

void draw_plan(LoweringFixture& fixture, RandomStream& random, std::string& text) {
  using workloads::Collective;
  workloads::PlanSpec& plan = fixture.plan;
  plan.dp = pick(random, text, "dp 1 2 4", std::vector{1, 2, 4});
  plan.tp = pick(random, text, "tp 1 2 4", std::vector{1, 2, 4});
  plan.pp = pick(random, text, "pp 1 2 3 4", std::vector{1, 2, 3, 4});
  plan.sp = pick(random, text, "sp",
                 std::vector{workloads::SequenceParallel::none, workloads::SequenceParallel::megatron});
  plan.zero = pick(random, text, "zero", std::vector{0, 1, 2, 3});
  plan.overlap_far = pick(random, text, "far 0 1 2", std::vector{0, 1, 2});
  using enum workloads::PipelineSchedule;
  plan.schedule =
      pick(random, text, "schedule", std::vector{gpipe, one_f_one_b, interleaved, zb_h1, zb_h2});
  plan.embedding = pick(random, text, "embedding",
                        std::vector{workloads::EmbeddingTable::sharded, workloads::EmbeddingTable::replicated});
  plan.pp_transfer_full = pick(random, text, "full transfer", std::vector<int>{0, 1}) != 0;
  plan.collectives = pick(random, text, "collective",
                          std::vector{Collective::automatic, Collective::ring, Collective::line,
                                      Collective::rows_cols, Collective::tree,
                                      Collective::halving_doubling, Collective::direct, workloads::Collective::multicast,
                                      workloads::Collective::router_multicast});
  plan.collective_chunks = pick(random, text, "chunks 1 3", std::vector{1, 3});
}

/// Half of the plans cut the sequence over tensor streams, a ring or exchanged heads, too; with few other ranks, so that
/// all fit the wafer.
void draw_streams(LoweringFixture& fixture, RandomStream& random, std::string& text) {
  using workloads::SequenceParallel;
  workloads::PlanSpec& plan = fixture.plan;
  if (pick(random, text, "streams", std::vector<int>{0, 1}) == 0) return;
  plan.embedding = workloads::EmbeddingTable::sharded;
  fixture.model.attention_kernel = models::AttentionKernel::fused;
  plan.dp = std::min(plan.dp, 2);
  plan.tp = std::min(plan.tp, 2);
  plan.pp = std::min(plan.pp, 2);
  plan.tatp = pick(random, text, "tatp 1 2 3", std::vector{1, 2, 3});
  plan.stream.variant = pick(random, text, "variant",
                             std::vector{workloads::StreamVariant::flood, workloads::StreamVariant::wrapped_ring,
                                         workloads::StreamVariant::interleaved_ring});
  plan.stream.relay = pick(
      random, text, "relay",
      std::vector{workloads::StreamRelay::cut_through, workloads::StreamRelay::store_and_forward});
  plan.stream.operand = pick(random, text, "operand",
                             std::vector{workloads::StreamOperand::weights, workloads::StreamOperand::inputs,
                                         workloads::StreamOperand::automatic});
  plan.overlap_near = pick(random, text, "near 1 2", std::vector{1, 2});
  const auto sp = pick(random, text, "sequence",
                       std::vector{plan.sp, SequenceParallel::ring, SequenceParallel::ulysses});
  plan.sp = sp;
  const bool own = sp == SequenceParallel::ring || sp == SequenceParallel::ulysses;
  plan.sp_degree = own ? 2 : 1;
  if (sp == SequenceParallel::ulysses && plan.stream.operand != workloads::StreamOperand::weights) {
    // Each rank of a line has at least two kv heads to exchange.
    plan.tp = 1;
    plan.tatp = std::min(plan.tatp, 2);
  }
  const bool heads = pick(random, text, "heads", std::vector<int>{0, 1}) != 0;
  if (heads && sp != SequenceParallel::ulysses && plan.tp * plan.tatp <= 4) {
    plan.stream.attention = workloads::StreamAttention::heads;
    plan.tatp = std::min(plan.tatp, 2);
  }
}

/// Layers, chunks and how they are split.
void draw_stages(LoweringFixture& fixture, RandomStream& random, std::string& text) {
  workloads::PlanSpec& plan = fixture.plan;
  const bool interleaved = plan.schedule == workloads::PipelineSchedule::interleaved;
  plan.virtual_stages = interleaved ? pick(random, text, "chunks of layers 2 3", std::vector{2, 3}) : 1;
  const int stages = plan.pp * plan.virtual_stages;
  fixture.model.layers = std::max(stages, 4);
  if (pick(random, text, "uneven", std::vector<int>{0, 1}) == 0) return;
  plan.layers_per_stage.assign(static_cast<std::size_t>(stages), 1);
  for (int rest = fixture.model.layers - stages + 1; rest > 0; --rest) {
    ++plan.layers_per_stage[random.below(plan.layers_per_stage.size())];
  }
  ++fixture.model.layers;
}

void draw_work(LoweringFixture& fixture, RandomStream& random, std::string& text, const std::vector<int>& microbatches,
               const std::vector<int>& iterations) {
  if (pick(random, text, "llama", std::vector<int>{0, 1}) != 0) fixture.make_llama();
  if (pick(random, text, "experts", std::vector<int>{0, 0, 1}) != 0) {
    fixture.make_mixtral();
    fixture.model.capacity_factor =
        pick(random, text, "capacity 1 5/4 1/2", std::vector{Rational(1), Rational(5, 4), Rational(1, 2)});
    fixture.plan.ep = std::min(fixture.plan.dp, pick(random, text, "ep 1 2 4", std::vector{1, 2, 4}));
  }
  fixture.model.tied_embeddings = pick(random, text, "tied", std::vector<int>{0, 1}) != 0 &&
                                  fixture.plan.embedding == workloads::EmbeddingTable::sharded;
  const auto kernel = pick(random, text, "attention",
                           std::vector{models::AttentionKernel::fused, models::AttentionKernel::materialized});
  const bool streams = fixture.plan.tatp * fixture.plan.sp_degree > 1;
  fixture.model.attention_kernel = streams ? models::AttentionKernel::fused : kernel;
  fixture.training.microbatch = 1;
  fixture.training.global_batch =
      fixture.plan.dp * pick(random, text, "microbatches", microbatches);
  fixture.training.iterations = pick(random, text, "iterations", iterations);
  fixture.training.recompute =
      pick(random, text, "recompute",
           std::vector{models::Recompute::none, models::Recompute::selective, models::Recompute::full});
  if (fixture.training.recompute == models::Recompute::full) {
    fixture.training.recompute_every = pick(random, text, "every 1 2 3", std::vector{1, 2, 3});
  }
  fixture.training.clip_grad = pick(random, text, "clip", std::vector<int>{0, 1}) != 0 &&
                               fixture.plan.schedule != workloads::PipelineSchedule::zb_h2;
}

void draw_machine(RandomPlan& out, RandomStream& random) {
  models::WaferSpec& wafer = out.fixture.wafer;
  wafer.mesh.shape = {8, 8};
  switch (pick(random, out.text, "sram", std::vector{0, 1, 2})) {
    case 1:
      wafer.sram.bandwidth = per_cycle(40);
      break;
    case 2:
      wafer.sram.bandwidth = Bandwidth{Rational(200, 3), true};
      break;
    default:
      break;
  }
  if (pick(random, out.text, "dram", std::vector<int>{0, 1}) != 0) {
    wafer.dram = models::DramSpec{{1ULL << 30}, per_cycle(30), {2, 2}};
    out.fixture.placement[workloads::MemoryClass::optimizer] = workloads::MemoryPlace::dram;
    if (pick(random, out.text, "activations in dram", std::vector<int>{0, 1}) != 0) {
      out.fixture.placement[workloads::MemoryClass::activations] = workloads::MemoryPlace::dram;
    }
    // What does not fit is split.
    wafer.sram.capacity = {pick(random, out.text, "sram 1 GiB 512 KiB 64 KiB", std::vector<Bytes>{1 << 30, 1 << 19, 1 << 16})};
  }
  wafer.link.bandwidth = pick(random, out.text, "link",
                              std::vector{per_cycle(256), per_cycle(16), {Rational(53687, 1000), true}});
  wafer.nic.ports =
      pick(random, out.text, "ports", std::vector{models::NicPorts::per_direction, models::NicPorts::single});
  wafer.nic.message_overhead = Duration::of_cycles(pick(random, out.text, "overhead 0 3", std::vector{0, 3}));
  out.router.virtual_channels = pick(random, out.text, "vcs 1 2", std::vector{1, 2});
  out.router.pipeline = Duration::of_cycles(pick(random, out.text, "pipeline 0 1 3", std::vector{0, 1, 3}));
  out.router.routing = pick(random, out.text, "routing", std::vector<std::string>{"xy", "yx", "table"});
  // Routes of a table may part and meet again, which routers cannot copy along.
  const bool copied = out.fixture.plan.collectives == workloads::Collective::router_multicast;
  if (copied && out.router.routing == "table") out.router.routing = "xy";
  if (random.below(8) == 0) {
    out.network.fidelity = models::Fidelity::ideal;
    out.text += "ideal network, ";
  }
  out.network.packet_bytes = {pick(random, out.text, "packet", std::vector<std::uint64_t>{300, 1024, 65536})};
}

}  // namespace

models::HardwareModel RandomPlan::hardware() const { return models::resolve_hardware(fixture.wafer, router, network); }

workloads::LoweredPlan RandomPlan::lower(const models::HardwareModel& hardware, const topology::Mesh& mesh) const {
  return workloads::lower({fixture.model, fixture.training, fixture.plan, fixture.placement, hardware, mesh});
}

RandomPlan draw_random_plan(std::uint64_t seed, const std::vector<int>& microbatches, const std::vector<int>& iterations) {
  RandomPlan out;
  RandomStream random(seed, "random_plans");
  draw_plan(out.fixture, random, out.text);
  draw_streams(out.fixture, random, out.text);
  draw_stages(out.fixture, random, out.text);
  draw_work(out.fixture, random, out.text, microbatches, iterations);
  draw_machine(out, random);
  return out;
}

RandomPlan without_copies(RandomPlan plan) {
  if (plan.fixture.plan.collectives == workloads::Collective::router_multicast) plan.fixture.plan.collectives = workloads::Collective::multicast;
  return plan;
}

}  // namespace wafersim::test
