#include <array>

#include "models/cost.h"
#include "workloads/even_parts.h"
#include "workloads/mesh_kernels.h"
#include "workloads/stencil_block.h"

namespace wafersim::workloads {
namespace {

class StencilKernel : public MeshKernel {
 public:
  StencilKernel(const KernelSpec& spec, const models::HardwareModel& hardware, const topology::Mesh& mesh)
      : MeshKernel(spec, hardware, mesh), stencil_(*spec.stencil) {
    // At most two sizes, the larger one first.
    for (int i = 0; i < stencil_.blocks; ++i) {
      const int z = static_cast<int>(even_part(stencil_.z, stencil_.blocks, i));
      if (blocks_.empty() || blocks_.back().z() != z) blocks_.emplace_back(stencil_, z, shape_, element());
    }
  }

  const char* name() const override { return "stencil"; }

  KernelWork work() const override {
    const std::uint64_t step = points() * flops_of_point(stencil_) * static_cast<std::uint64_t>(shape_.size());
    return {.flops = step * static_cast<std::uint64_t>(stencil_.steps),
            .static_bytes = array_bytes() + blocks_.front().halo_bytes({shape_.cols / 2, shape_.rows / 2}),
            .on_matrix = false,
            .steps = stencil_.steps};
  }

  Trace trace() const override {
    Trace trace;
    TilePrograms programs(trace);
    const auto first = launch_step(trace, launch_cycles(), hardware_);
    for (int y = 0; y < shape_.rows; ++y) {
      for (int x = 0; x < shape_.cols; ++x) {
        programs.begin(tile(x, y));
        programs.step(first);
        add_steps(programs, {x, y});
        std::array<Bytes, kMemoryClasses> holds{};
        holds[static_cast<std::size_t>(MemoryClass::activations)] = array_bytes();
        holds[static_cast<std::size_t>(MemoryClass::stream_buffers)] = blocks_.front().halo_bytes({x, y});
        programs.end(holds);
      }
    }
    return trace;
  }

  Cycle model_cycles() const override {
    Cycle step = 0;
    for (int i = 0; i < stencil_.blocks; ++i) step += block(i).model_cycles({shape_.cols / 2, shape_.rows / 2}, hardware_);
    return launch_cycles() + static_cast<Cycle>(stencil_.steps) * step;
  }

 private:
  std::uint64_t points() const {
    return static_cast<std::uint64_t>(stencil_.x) * static_cast<std::uint64_t>(stencil_.y) *
           static_cast<std::uint64_t>(stencil_.z);
  }
  Bytes array_bytes() const { return static_cast<Bytes>(stencil_.arrays) * points() * element(); }
  const StencilBlock& block(int index) const {
    const int z = static_cast<int>(even_part(stencil_.z, stencil_.blocks, index));
    return z == blocks_.front().z() ? blocks_.front() : blocks_.back();
  }

  void add_steps(TilePrograms& programs, topology::Coord at) const {
    const auto tile_of = [this](topology::Coord other) { return tile(other.x, other.y); };
    std::vector<std::uint32_t> templates;
    for (const StencilBlock& each : blocks_) templates.push_back(each.lower(programs, at, tile_of));
    for (int step = 0; step < stencil_.steps; ++step) {
      for (int i = 0; i < stencil_.blocks; ++i)
        programs.step(&block(i) == &blocks_.front() ? templates.front() : templates.back());
    }
  }

  StencilSpec stencil_;
  std::vector<StencilBlock> blocks_;
};

}  // namespace

std::unique_ptr<MeshKernel> make_stencil(const KernelSpec& spec, const models::HardwareModel& hardware,
                                         const topology::Mesh& mesh) {
  return std::make_unique<StencilKernel>(spec, hardware, mesh);
}

}  // namespace wafersim::workloads
