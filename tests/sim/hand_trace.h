#pragma once

#include <functional>
#include <map>
#include <vector>

#include "workloads/step_builder.h"
#include "workloads/trace.h"

namespace wafersim::test {

/// Builds a trace operation by operation. The peers of every tile are all tiles of the mesh: peer i is tile
/// i.
class HandTrace {
 public:
  using Build = std::function<void(workloads::StepBuilder&)>;

  explicit HandTrace(TileId mesh_tiles);

  /// Adds a step to the program of `tile`, which waits for the results of earlier steps of the same tile.
  /// Returns its index.
  std::uint32_t step(TileId tile, const Build& build, const std::vector<std::uint32_t>& waits = {},
                     workloads::Step step = {});
  /// Puts a tile that has steps on a pipeline stage.
  void set_stage(TileId tile, std::int32_t stage);
  /// Resident memory of a tile that has steps.
  void set_resident(TileId tile, workloads::MemoryClass memory_class, Bytes bytes);
  /// On all tiles.
  void set_quota(workloads::MemoryClass memory_class, Bytes in_sram);

  workloads::Trace& trace() { return trace_; }
  /// Tiles ascending, as a trace must have them.
  workloads::Trace take();

 private:
  workloads::TileBinding& binding(TileId tile);

  workloads::Trace trace_;
  std::map<TileId, workloads::TileBinding> bindings_;
};

/// Vector work of `cycles` on a machine of plain_hardware(), which moves `sram_bytes`, and `optimizer_bytes` of optimizer
/// states.
workloads::Work vector_work(Cycle cycles, Bytes sram_bytes = 0, Bytes optimizer_bytes = 0);

}  // namespace wafersim::test
