#include <algorithm>
#include <array>

#include "models/cost.h"
#include "models/spatial_cost.h"
#include "workloads/even_parts.h"
#include "workloads/mesh_kernels.h"
#include "workloads/reduction_tree.h"
#include "workloads/tile_program.h"

namespace wafersim::workloads {
namespace {

constexpr std::uint32_t kSums = 0;  // channels
constexpr std::uint32_t kProduct = 1;

class GemvKernel : public MeshKernel {
 public:
  GemvKernel(const KernelSpec& spec, const models::HardwareModel& hardware, const topology::Mesh& mesh)
      : MeshKernel(spec, hardware, mesh),
        gemv_(*spec.gemv),
        root_(gemv_.root == StreamedRoot::corner ? 0 : shape_.rows / 2),
        group_(group_of()),
        tree_(ReductionTree::line(gemv_.reduction, shape_.rows, root_, group_)) {}

  const char* name() const override { return "gemv"; }
  std::optional<int> group() const override { return in_groups(gemv_.reduction) ? std::optional<int>(group_) : std::nullopt; }

  KernelWork work() const override {
    const auto elements = static_cast<std::uint64_t>(gemv_.rows) * static_cast<std::uint64_t>(gemv_.cols);
    return {.flops = 2 * elements,
            .static_bytes = parameters(largest_rows(), largest_cols()) + vectors(largest_rows(), largest_cols()),
            .on_matrix = gemv_.engine == GemvEngine::matrix,
            .steps = 1};
  }

  Trace trace() const override {
    Trace trace;
    TilePrograms programs(trace);
    const Work launch = busy_work(launch_cycles(), hardware_);
    for (int y = 0; y < shape_.rows; ++y) {
      const auto rows = even_part(gemv_.rows, shape_.rows, y);
      for (int x = 0; x < shape_.cols; ++x) {
        const auto cols = even_part(gemv_.cols, shape_.cols, x);
        programs.begin(tile(x, y));
        StreamedStep step(programs, "gemv", StreamRelay::cut_through, {});
        step.first_vector(launch);
        if (gemv_.engine == GemvEngine::matrix) {
          step.first_matrix(block(rows, cols));
        } else {
          step.first_vector(block(rows, cols));
        }
        sum(step, x, y, cols * element());
        programs.step(step.finish());
        std::array<Bytes, kMemoryClasses> holds{};
        holds[static_cast<std::size_t>(MemoryClass::parameters)] = parameters(rows, cols);
        holds[static_cast<std::size_t>(MemoryClass::activations)] = vectors(rows, cols);
        programs.end(holds);
      }
    }
    return trace;
  }

  /// The largest block's product, and the sum and its way back by models::spatial_cost().
  Cycle model_cycles() const override {
    const models::ComputeCost cost(hardware_);
    const Work local = block(largest_rows(), largest_cols());
    const Cycle computing = gemv_.engine == GemvEngine::matrix ? cost.gemm(local.gemm) : cost.vector(local.vector_flops);
    const Cycle reading =
        hardware_.sram_bytes_per_cycle ? models::serialization(local.sram_bytes, *hardware_.sram_bytes_per_cycle) : 0;
    const Rational bytes(static_cast<std::int64_t>(largest_cols() * element()));
    Cycle cycles = launch_cycles() + std::max(computing, reading);
    if (shape_.rows == 1) return cycles;
    cycles += models::spatial_cost(hardware_, tree_.terms(bytes));
    if (gemv_.result == GemvResult::root) return cycles;
    const std::int64_t links = shape_.rows - 1;
    return cycles +
           models::spatial_cost(hardware_, {bytes, bytes * Rational(links), links, std::max(root_, shape_.rows - 1 - root_), 1});
  }

 private:
  int group_of() const {
    if (!in_groups(gemv_.reduction)) return 0;
    if (gemv_.group) return *gemv_.group;
    return best_group(gemv_.reduction, hardware_, std::max(root_ + 1, shape_.rows - root_), largest_cols() * element());
  }

  Bytes largest_rows() const { return even_part(gemv_.rows, shape_.rows, 0); }
  Bytes largest_cols() const { return even_part(gemv_.cols, shape_.cols, 0); }
  Bytes parameters(Bytes rows, Bytes cols) const { return rows * cols * element(); }
  Bytes vectors(Bytes rows, Bytes cols) const { return (rows + cols) * element(); }

  Work block(Bytes rows, Bytes cols) const {
    Work work;
    if (gemv_.engine == GemvEngine::matrix) {
      work.gemm = {.batch = 1, .m = 1, .n = cols, .k = rows};
    } else {
      work.vector_flops = 2 * rows * cols;
    }
    work.sram_bytes = parameters(rows, cols) + vectors(rows, cols);
    return work;
  }

  /// Of the products of a column of tiles, and back.
  void sum(StreamedStep& step, int x, int y, Bytes bytes) const {
    if (shape_.rows == 1) return;
    std::vector<OpId> sums;
    for (const int child : tree_.children(y)) sums.push_back(step.receive(tile(x, child), kSums, bytes));
    if (y != root_) {
      step.send({tile(x, tree_.parent(y))}, kSums, bytes, sums);
      if (gemv_.result == GemvResult::all) step.receive(tile(x, root_), kProduct, bytes);
    } else if (gemv_.result == GemvResult::all) {
      std::vector<TileId> others;
      for (int other = 0; other < shape_.rows; ++other) {
        if (other != root_) others.push_back(tile(x, other));
      }
      step.send(others, kProduct, bytes, sums);
    }
  }

  GemvSpec gemv_;
  int root_;
  int group_;
  ReductionTree tree_;
};

}  // namespace

std::unique_ptr<MeshKernel> make_gemv(const KernelSpec& spec, const models::HardwareModel& hardware, const topology::Mesh& mesh) {
  return std::make_unique<GemvKernel>(spec, hardware, mesh);
}

}  // namespace wafersim::workloads
