// Kernels on a mesh against closed forms, and what their traces move.
#include <gtest/gtest.h>

#include <set>

#include "models/cost.h"
#include "tests/sim/isolated.h"
#include "tests/sim/machine.h"
#include "workloads/mesh_kernel.h"

namespace wafersim::test {
namespace {

using workloads::GemmFlow;
using workloads::GemmShift;
using workloads::GemvResult;
using workloads::KernelSpec;
using workloads::OpKind;
using workloads::StencilExchange;
using workloads::StencilForm;
using workloads::StencilOverlap;
using workloads::StencilSpec;
using workloads::StreamedAlgorithm;
using workloads::StreamedRoot;

/// Tiles of a WSE-2, as its preset has them.
models::HardwareModel wse(Bytes packet_bytes, models::NicPorts ports = models::NicPorts::single) {
  models::WaferSpec wafer;
  wafer.clock = {Rational(850'000'000)};
  wafer.core.matrix = {{1, 4}, {}, 1, models::Dataflow::output_stationary};
  wafer.core.vector.peak = {Rational(8), true};
  wafer.sram = {{48'000}, Bandwidth{Rational(24), true}};
  wafer.link = {{Rational(4), true}, Duration::of_cycles(1)};
  wafer.nic.ports = ports;
  wafer.nic.injection_latency = wafer.nic.ejection_latency = Duration::of_cycles(2);
  models::RouterSpec router;
  router.pipeline = Duration::of_cycles(0);
  models::NetworkSpec network;
  network.packet_bytes = {packet_bytes};
  return models::resolve_hardware(wafer, router, network);
}

/// The same with a port for each direction and an SRAM that no packet holds up.
models::HardwareModel without_waiting(Bytes packet_bytes) {
  models::HardwareModel hardware = wse(packet_bytes, models::NicPorts::per_direction);
  hardware.sram_bytes_per_cycle = std::nullopt;
  return hardware;
}

struct Timing {
  Cycle cycles = 0;
  Cycle model = 0;
};

Timing run(const KernelSpec& spec, const topology::Shape& shape, const models::HardwareModel& hardware, bool shuffle = false) {
  const topology::Mesh mesh({shape, {}, {}});
  const auto kernel = workloads::make_mesh_kernel(spec, hardware, mesh);
  sim::SimulationOptions options;
  options.shuffle = shuffle;
  return {isolated_number([&] { return run_trace(mesh, hardware, kernel->trace(), options).cycles; }), kernel->model_cycles()};
}

KernelSpec stencil(const StencilSpec& spec) {
  KernelSpec kernel;
  kernel.stencil = spec;
  return kernel;
}

std::vector<StencilSpec> stencils() {
  std::vector<StencilSpec> specs = {
      {.x = 4, .y = 4, .steps = 3, .flops = {}},
      {.x = 5, .y = 3, .form = StencilForm::box, .radius = 2, .steps = 2, .flops = {}, .overlap = StencilOverlap::interior},
      {.x = 6, .y = 8, .z = 3, .radius = 2, .steps = 3, .flops = {}, .overlap = StencilOverlap::interior},
      {.z = 40, .steps = 3, .flops = 12, .overlap = StencilOverlap::arrivals},
      {.z = 20, .radius = 4, .steps = 2, .blocks = 3, .flops = {}, .overlap = StencilOverlap::arrivals},
      {.x = 2, .y = 1, .z = 6, .radius = 3, .steps = 3, .flops = {}},
      {.x = 3, .y = 3, .z = 3, .form = StencilForm::box, .steps = 3, .flops = {}}};
  specs.push_back(specs[4]);
  specs.back().exchange = StencilExchange::multicast;
  return specs;
}

/// A tile whose halo is whole, and whose neighbours' are, takes as long on any wafer. Messages that go farther meet others on the
/// way, in turns that depend on where they are; then that holds where they are hidden by the tile's own terms.
TEST(Kernels, AStencilStepDoesNotDependOnTheNumberOfTiles) {
  for (const models::NicPorts ports : {models::NicPorts::single, models::NicPorts::per_direction}) {
    const models::HardwareModel hardware = wse(64, ports);
    int at = 0;
    for (StencilSpec spec : stencils()) {
      spec.steps = std::min(spec.steps, 2);
      if (spec.radius > std::min(spec.x, spec.y)) {
        spec.overlap = StencilOverlap::arrivals;
        spec.flops = 1000;
      }
      const int reach = std::max((spec.radius + spec.x - 1) / spec.x, (spec.radius + spec.y - 1) / spec.y);
      const int side = 2 * reach * spec.steps + 1;
      const Cycle cycles = run(stencil(spec), {side, side}, hardware).cycles;
      EXPECT_EQ(run(stencil(spec), {side + 2, side + 5}, hardware).cycles, cycles) << at;
      ++at;
    }
  }
}

/// Neighbours one hop away: one message through each port, then what is computed.
TEST(Kernels, StencilsOfNextNeighboursTakeTheClosedForm) {
  for (const Bytes packet : {4, 64, 4096}) {
    for (const StencilSpec& spec : stencils()) {
      if (spec.radius > std::min(spec.x, spec.y)) continue;
      for (const StencilOverlap overlap : {StencilOverlap::none, StencilOverlap::interior}) {
        StencilSpec each = spec;
        each.overlap = overlap;
        const Timing result = run(stencil(each), {7, 9}, without_waiting(packet));
        EXPECT_EQ(result.cycles, result.model) << spec.x << "x" << spec.y << "x" << spec.z << " packet " << packet;
      }
    }
  }
}

/// y = x A: the block's product, then what the collective of a column takes by itself.
TEST(Kernels, AGemvIsItsProductAndACollectiveOfEachColumn) {
  const models::HardwareModel hardware = wse(4);
  for (const StreamedAlgorithm reduction : {StreamedAlgorithm::chain, StreamedAlgorithm::tree, StreamedAlgorithm::two_phase,
                                            StreamedAlgorithm::k_tree, StreamedAlgorithm::star}) {
    for (const StreamedRoot root : {StreamedRoot::corner, StreamedRoot::center}) {
      for (const GemvResult result : {GemvResult::root, GemvResult::all}) {
        KernelSpec spec;
        spec.gemv = workloads::GemvSpec{
            .rows = 19 * 6, .cols = 5 * 8, .reduction = reduction, .group = {}, .root = root, .result = result};
        if (workloads::in_groups(reduction)) spec.gemv->group = 4;
        workloads::CollectiveSpec sum;
        sum.kind = result == GemvResult::all ? workloads::StreamedKind::all_reduce : workloads::StreamedKind::reduce;
        sum.algorithm = reduction;
        sum.root = root;
        sum.group = spec.gemv->group;
        sum.bytes = {16};
        const topology::Mesh column({{19, 1}, {}, {}});
        const workloads::StreamedCollective collective(sum, hardware, column);
        const Cycle summed = isolated_number([&] { return run_trace(column, hardware, collective.trace()).cycles; });
        const Cycle product = models::ComputeCost(hardware).gemm({1, 1, 8, 6});
        EXPECT_EQ(product, 1U + 2 * 6 + 3);
        EXPECT_EQ(run(spec, {19, 5}, hardware).cycles, product + summed) << static_cast<int>(reduction);
      }
    }
  }
}

TEST(Kernels, AGemvByAChainTakesTheClosedForm) {
  for (const auto& [rows, cols] : {std::pair(2, 1), std::pair(16, 3), std::pair(64, 2)}) {
    KernelSpec spec;
    spec.gemv = workloads::GemvSpec{.rows = rows * 8,
                                    .cols = cols * 32,
                                    .reduction = StreamedAlgorithm::chain,
                                    .group = {},
                                    .root = StreamedRoot::corner,
                                    .result = GemvResult::root};
    const Timing result = run(spec, {rows, cols}, wse(4));
    const auto stages = static_cast<Cycle>(rows - 1);
    EXPECT_EQ(result.cycles, 1U + 8 * 8 + 3 + 16 + 6 * stages);
    EXPECT_EQ(result.cycles, result.model);
  }
}

/// In a group of S of a K-tree half of the tiles come from either side: fewer stages than in two_phase, and no fewer hops.
TEST(Kernels, AKTreeHalvesTheStagesOfItsGroups) {
  const models::HardwareModel hardware = wse(4);
  for (const auto& [tiles, group] : {std::pair(33, 8), std::pair(65, 16), std::pair(129, 16)}) {
    const topology::Mesh line({{1, tiles}, {}, {}});
    const auto cycles = [&, count = group](StreamedAlgorithm algorithm) {
      workloads::CollectiveSpec spec;
      spec.algorithm = algorithm;
      spec.root = StreamedRoot::center;
      spec.group = count;
      spec.bytes = {4};
      const workloads::StreamedCollective collective(spec, hardware, line);
      return isolated_number([&] { return run_trace(line, hardware, collective.trace()).cycles; });
    };
    EXPECT_LT(cycles(StreamedAlgorithm::k_tree), cycles(StreamedAlgorithm::two_phase)) << tiles;
  }
}

/// Rounds as long as the product or the exchange beside it, whatever the number of tiles.
TEST(Kernels, AnInterleavedGemmTakesTheLongerOfProductAndShiftEachRound) {
  for (const int block : {2, 4, 12, 16}) {
    for (const int side : {4, 7, 12}) {
      KernelSpec spec;
      spec.gemm = workloads::GemmSpec{.m = block * side, .k = block * side, .n = block * side};
      for (const GemmFlow flow : {GemmFlow::credits, GemmFlow::free}) {
        spec.gemm->flow = flow;
        const Timing result = run(spec, {side, side}, without_waiting(4));
        EXPECT_GE(result.cycles, result.model) << block << " on " << side;
        // Credits and blocks share ports: with small blocks they are in each other's way.
        const bool shared = flow == GemmFlow::credits && block < 12;
        EXPECT_LE(result.cycles, shared ? result.model * 21 / 20 : result.model) << block << " on " << side;
      }
    }
  }
}

/// With blocks that leave the product less time than a credit and a block need across all tiles, a plain ring is slower.
TEST(Kernels, APlainRingWaitsForItsLongestWay) {
  KernelSpec spec;
  spec.gemm = workloads::GemmSpec{.m = 64, .k = 64, .n = 64};
  const Cycle interleaved = run(spec, {16, 16}, wse(4)).cycles;
  spec.gemm->shift = GemmShift::ring;
  const Timing ring = run(spec, {16, 16}, wse(4));
  EXPECT_GT(ring.cycles, interleaved);
  EXPECT_LE(ring.cycles, ring.model);
}

/// All of them on ragged shapes: sound traces that end, the same in any order of visits.
TEST(Kernels, AllOfThemEndOnAnyRectangle) {
  std::vector<KernelSpec> specs;
  for (const StencilSpec& spec : stencils()) specs.push_back(stencil(spec));
  for (const GemmShift shift : {GemmShift::ring, GemmShift::interleaved}) {
    specs.emplace_back();
    specs.back().gemm = workloads::GemmSpec{.m = 23, .k = 31, .n = 17, .shift = shift};
    specs.back().launch = Duration::of_cycles(7);
  }
  specs.emplace_back();
  specs.back().gemv = workloads::GemvSpec{.rows = 23, .cols = 31, .group = {}};
  for (const KernelSpec& spec : specs) {
    for (const topology::Shape shape : {topology::Shape{2, 2}, {1, 5}, {4, 1}, {3, 3}, {5, 4}}) {
      if (workloads::fault_of(spec, shape)) continue;
      const topology::Mesh mesh({shape, {}, {}});
      const models::HardwareModel hardware = wse(64);
      const auto kernel = workloads::make_mesh_kernel(spec, hardware, mesh);
      EXPECT_EQ(workloads::check_trace(kernel->trace(), mesh), std::vector<std::string>{});
      const Cycle cycles = run(spec, shape, hardware).cycles;
      EXPECT_EQ(run(spec, shape, hardware, true).cycles, cycles);
      EXPECT_GT(cycles, 0U);
    }
  }
}

/// FLOPs of a trace, by its programs.
std::uint64_t flops_of(const workloads::Trace& trace) {
  std::uint64_t flops = 0;
  for (const workloads::TileBinding& binding : trace.tiles) {
    for (const workloads::Step& step : trace.programs[binding.program].steps) {
      for (const workloads::Op& op : trace.templates[step.step_template].ops) {
        if (op.kind == OpKind::matrix) flops += trace.works[op.work].gemm.flops();
        if (op.kind == OpKind::vector || op.kind == OpKind::reduce) flops += trace.works[op.work].vector_flops;
      }
    }
  }
  return flops;
}

TEST(Kernels, AllWorkIsDoneOnceHoweverItIsCut) {
  const topology::Mesh mesh({{5, 5}, {}, {}});
  const models::HardwareModel hardware = wse(64);
  std::vector<KernelSpec> specs;
  for (const StencilSpec& spec : stencils()) specs.push_back(stencil(spec));
  specs.emplace_back();
  specs.back().gemm = workloads::GemmSpec{.m = 23, .k = 31, .n = 17};
  specs.emplace_back();
  specs.back().gemv = workloads::GemvSpec{.rows = 23, .cols = 31, .group = {}};
  for (const KernelSpec& spec : specs) {
    const auto kernel = workloads::make_mesh_kernel(spec, hardware, mesh);
    EXPECT_EQ(flops_of(kernel->trace()), kernel->work().flops);
  }
}

/// Blocks handed on as the trace says, from where Cannon's algorithm has them at first: in each round a tile has blocks of A and
/// B of the same inner index, and in the end it had all of them.
TEST(Kernels, BlocksOfAGemmMeetOnceEach) {
  for (const GemmShift shift : {GemmShift::ring, GemmShift::interleaved}) {
    for (const int side : {2, 3, 4, 5, 8}) {
      const topology::Mesh mesh({{side, side}, {}, {}});
      KernelSpec spec;
      spec.gemm = workloads::GemmSpec{.m = side, .k = side, .n = side, .shift = shift};
      const models::HardwareModel hardware = wse(64);
      const workloads::Trace trace = workloads::make_mesh_kernel(spec, hardware, mesh)->trace();
      // Where each tile sends its blocks: A to its row, B to its column.
      std::vector<TileId> row_to(trace.tiles.size()), column_to(trace.tiles.size());
      for (const workloads::TileBinding& binding : trace.tiles) {
        const auto& first = trace.templates[trace.programs[binding.program].steps.front().step_template];
        for (const workloads::Op& op : first.ops) {
          if (op.kind != OpKind::send || op.channel != 0) continue;
          const TileId to = trace.peer(binding, op.peer);
          (mesh.coord(to).y == mesh.coord(binding.tile).y ? row_to : column_to)[binding.tile] = to;
        }
      }
      // Position in the ring: rounds until a block of tile 0's place has come.
      const auto rank = [&](const std::vector<TileId>& to, TileId tile, TileId home) {
        int steps = 0;
        for (; tile != home; tile = to[tile]) ++steps;
        return steps;
      };
      std::vector<int> a(trace.tiles.size()), b(trace.tiles.size());
      for (TileId tile = 0; tile < trace.tiles.size(); ++tile) {
        const topology::Coord at = mesh.coord(tile);
        const int inner = rank(row_to, tile, mesh.tile_at({0, at.y})) + rank(column_to, tile, mesh.tile_at({at.x, 0}));
        a[tile] = b[tile] = inner % side;
      }
      std::vector<std::set<int>> met(trace.tiles.size());
      for (int round = 0; round < side; ++round) {
        std::vector<int> next_a(a.size()), next_b(b.size());
        for (TileId tile = 0; tile < trace.tiles.size(); ++tile) {
          EXPECT_EQ(a[tile], b[tile]) << side << " round " << round;
          EXPECT_TRUE(met[tile].insert(a[tile]).second);
          next_a[row_to[tile]] = a[tile];
          next_b[column_to[tile]] = b[tile];
          if (shift == GemmShift::interleaved) {
            EXPECT_LE(mesh.distance(tile, row_to[tile]), 2);
            EXPECT_LE(mesh.distance(tile, column_to[tile]), 2);
          }
        }
        a = next_a;
        b = next_b;
      }
    }
  }
}

/// The halo of a tile, point by point: what the points up to the radius away are, and whose.
TEST(Kernels, AStencilReceivesEachPointThatItNeeds) {
  const topology::Shape shape{7, 7};
  const topology::Mesh mesh({shape, {}, {}});
  const models::HardwareModel hardware = wse(64);
  for (const StencilSpec& spec : stencils()) {
    if (spec.exchange == StencilExchange::multicast) continue;  // which sends whole columns
    const workloads::Trace trace = workloads::make_mesh_kernel(stencil(spec), hardware, mesh)->trace();
    const int width = spec.x * shape.cols;
    const int height = spec.y * shape.rows;
    for (const workloads::TileBinding& binding : trace.tiles) {
      const topology::Coord at = mesh.coord(binding.tile);
      std::set<std::pair<int, int>> needed;
      for (int y = at.y * spec.y; y < (at.y + 1) * spec.y; ++y) {
        for (int x = at.x * spec.x; x < (at.x + 1) * spec.x; ++x) {
          for (int dy = -spec.radius; dy <= spec.radius; ++dy) {
            for (int dx = -spec.radius; dx <= spec.radius; ++dx) {
              if (spec.form == StencilForm::star && dx != 0 && dy != 0) continue;
              const int px = x + dx, py = y + dy;
              if (px < 0 || py < 0 || px >= width || py >= height) continue;
              if (px / spec.x == at.x && py / spec.y == at.y) continue;
              needed.insert({px, py});
            }
          }
        }
      }
      Bytes received = 0;
      for (int block = 0; block < spec.blocks; ++block) {
        const workloads::Step& step = trace.programs[binding.program].steps[static_cast<std::size_t>(block)];
        for (const workloads::Op& op : trace.templates[step.step_template].ops) {
          if (op.kind == OpKind::receive) received += op.bytes;
        }
      }
      EXPECT_EQ(received, needed.size() * static_cast<Bytes>(spec.z) * 2)
          << spec.x << "x" << spec.y << " at " << at.x << "," << at.y;
    }
  }
}

}  // namespace
}  // namespace wafersim::test
