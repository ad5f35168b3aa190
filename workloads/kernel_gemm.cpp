#include <algorithm>
#include <array>
#include <cstdlib>
#include <map>

#include "models/cost.h"
#include "workloads/even_parts.h"
#include "workloads/mesh_kernels.h"
#include "workloads/tile_program.h"

namespace wafersim::workloads {
namespace {

constexpr std::uint32_t kBlock = 0;  // channels
constexpr std::uint32_t kCredit = 1;
constexpr Bytes kCreditBytes = 4;

/// The ring along a row or column of `size` tiles: position to tile, and the other way round.
class ShiftRing {
 public:
  ShiftRing(GemmShift shift, int size) : tiles_(static_cast<std::size_t>(size)), positions_(tiles_.size()) {
    for (int position = 0; position < size; ++position) {
      // Even tiles on the way out, odd ones on the way back.
      const int out_and_back = 2 * position < size ? 2 * position : 2 * (size - 1 - position) + 1;
      const int tile = shift == GemmShift::ring ? position : out_and_back;
      tiles_[static_cast<std::size_t>(position)] = tile;
      positions_[static_cast<std::size_t>(tile)] = position;
    }
  }
  int position(int tile) const { return positions_[static_cast<std::size_t>(tile)]; }
  /// `step` positions on from `tile`.
  int from(int tile, int step) const {
    const int size = static_cast<int>(tiles_.size());
    return tiles_[static_cast<std::size_t>((position(tile) + step + size) % size)];
  }

 private:
  std::vector<int> tiles_;
  std::vector<int> positions_;
};

class GemmKernel : public MeshKernel {
 public:
  GemmKernel(const KernelSpec& spec, const models::HardwareModel& hardware, const topology::Mesh& mesh)
      : MeshKernel(spec, hardware, mesh), gemm_(*spec.gemm), side_(shape_.rows), ring_(gemm_.shift, side_) {}

  const char* name() const override { return "gemm"; }

  KernelWork work() const override {
    const auto extent = [](std::int64_t value) { return static_cast<std::uint64_t>(value); };
    return {.flops = 2 * extent(gemm_.m) * extent(gemm_.k) * extent(gemm_.n),
            .static_bytes = product_bytes(rows(0), cols(0)) + 2 * operand_bytes(rows(0), cols(0)),
            .on_matrix = true,
            .steps = side_};
  }

  Trace trace() const override {
    Trace trace;
    TilePrograms programs(trace);
    const auto first = launch_step(trace, launch_cycles(), hardware_);
    for (int y = 0; y < side_; ++y) {
      for (int x = 0; x < side_; ++x) {
        programs.begin(tile(x, y));
        programs.step(first);
        add_rounds(programs, x, y);
        std::array<Bytes, kMemoryClasses> holds{};
        holds[static_cast<std::size_t>(MemoryClass::activations)] =
            product_bytes(rows(y), cols(x)) + operand_bytes(rows(y), cols(x));
        holds[static_cast<std::size_t>(MemoryClass::stream_buffers)] = operand_bytes(rows(y), cols(x));
        programs.end(holds);
      }
    }
    return trace;
  }

  /// Rounds of the largest blocks, each as long as the product or the slower of the exchanges beside it.
  Cycle model_cycles() const override {
    const models::ComputeCost cost(hardware_);
    const Work largest = product(rows(0), depth(0), cols(0));
    const Cycle reading =
        hardware_.sram_bytes_per_cycle ? models::serialization(largest.sram_bytes, *hardware_.sram_bytes_per_cycle) : 0;
    const Cycle computing = std::max(cost.gemm(largest.gemm), reading);
    int hops = 1;
    for (int at = 0; at < side_; ++at) hops = std::max(hops, std::abs(at - ring_.from(at, -1)));
    const Bytes a = block_bytes(rows(0), depth(0));
    const Bytes b = block_bytes(depth(0), cols(0));
    const bool single = hardware_.nic_ports == models::NicPorts::single;
    Cycle moving = models::message_latency(hardware_, single ? a + b : std::max(a, b), hops);
    if (gemm_.flow == GemmFlow::credits)
      moving += models::message_latency(hardware_, single ? 2 * kCreditBytes : kCreditBytes, hops);
    return launch_cycles() + static_cast<Cycle>(side_ - 1) * std::max(computing, moving) + computing;
  }

 private:
  Bytes rows(int y) const { return even_part(gemm_.m, side_, y); }
  Bytes cols(int x) const { return even_part(gemm_.n, side_, x); }
  /// Of block `index` of the inner dimension.
  Bytes depth(int index) const { return even_part(gemm_.k, side_, index); }
  Bytes block_bytes(Bytes m, Bytes n) const { return m * n * element(); }
  Bytes product_bytes(Bytes m, Bytes n) const { return block_bytes(m, n); }
  /// The largest blocks of A and B that come to a tile.
  Bytes operand_bytes(Bytes m, Bytes n) const { return block_bytes(m, depth(0)) + block_bytes(depth(0), n); }

  Work product(Bytes m, Bytes k, Bytes n) const {
    Work work;
    work.gemm = {.batch = 1, .m = m, .n = n, .k = k};
    work.sram_bytes = block_bytes(m, k) + block_bytes(k, n) + 2 * block_bytes(m, n);
    return work;
  }

  /// In round t the tile has the blocks of A and B whose inner index is the sum of its positions and t.
  void add_rounds(TilePrograms& programs, int x, int y) const {
    const int start = ring_.position(x) + ring_.position(y);
    std::map<std::pair<Bytes, Bytes>, std::uint32_t> templates;  // by inner extent of this round and the next
    for (int t = 0; t < side_; ++t) {
      const Bytes now = depth((start + t) % side_);
      const Bytes next = t + 1 < side_ ? depth((start + t + 1) % side_) : 0;
      const auto [found, is_new] = templates.try_emplace({now, next}, 0);
      if (is_new) found->second = round(programs, x, y, now, next);
      programs.step(found->second);
    }
  }

  std::uint32_t round(TilePrograms& programs, int x, int y, Bytes now, Bytes next) const {
    StepBuilder builder(programs.trace(), "gemm");
    if (next != 0) {
      shift(programs, builder, tile(ring_.from(x, -1), y), tile(ring_.from(x, 1), y), block_bytes(rows(y), now),
            block_bytes(rows(y), next));
      shift(programs, builder, tile(x, ring_.from(y, -1)), tile(x, ring_.from(y, 1)), block_bytes(now, cols(x)),
            block_bytes(next, cols(x)));
    }
    builder.matrix(product(rows(y), now, cols(x)), {});
    return builder.finish();
  }

  void shift(TilePrograms& programs, StepBuilder& builder, TileId to, TileId from, Bytes sent, Bytes received) const {
    const std::uint32_t receiver = programs.peer(to);
    const std::uint32_t sender = programs.peer(from);
    std::vector<OpId> room;
    if (gemm_.flow == GemmFlow::credits) {
      builder.send(Axis::none, sender, kCredit, kCreditBytes, {});
      room = {builder.receive(Axis::none, receiver, kCredit, kCreditBytes, {})};
    }
    builder.send(Axis::none, receiver, kBlock, sent, room);
    builder.receive(Axis::none, sender, kBlock, received, {});
  }

  GemmSpec gemm_;
  int side_;
  ShiftRing ring_;
};

}  // namespace

std::unique_ptr<MeshKernel> make_gemm(const KernelSpec& spec, const models::HardwareModel& hardware, const topology::Mesh& mesh) {
  return std::make_unique<GemmKernel>(spec, hardware, mesh);
}

}  // namespace wafersim::workloads
