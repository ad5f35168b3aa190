#pragma once

#include <functional>
#include <vector>

#include "base/units.h"

namespace wafersim::sim {

/// What a router shows at the end of a cycle. Flits in a flit network, else packets and bytes.
struct RouterSample {
  std::vector<std::uint32_t> held;    ///< by input port, then VC: flits in its buffer, or packets that wait to be granted an output
  std::vector<Bytes> bytes;           ///< the same in bytes; of packets only
  std::vector<Bytes> room;            ///< by mesh output, then VC: free flits or bytes behind it
  std::vector<bool> granted;          ///< by output: a flit or packet was granted it in this cycle
  std::vector<std::uint64_t> grants;  ///< by output: a number that changes with each of them
};

/// Whom to watch, and who is told. Each time all routers are sampled, in their order, in cycles that ascend; a cycle in which
/// none of them changes may be left out.
struct WatchOptions {
  std::vector<TileId> tiles;
  std::function<void(Cycle at, TileId tile, const RouterSample& sample)> on_sample;
};

/// Makes samples of the watched routers.
class RouterWatch {
 public:
  /// Fills all of a sample of a router but `granted`.
  using Look = std::function<void(TileId tile, Cycle at, RouterSample& sample)>;

  /// Takes the first sample, of cycle 0 before anything happens. `options` must outlive this.
  RouterWatch(const WatchOptions& options, Look look);
  void sample(Cycle at);

 private:
  const WatchOptions& options_;
  Look look_;
  RouterSample sample_;
  std::vector<std::vector<std::uint64_t>> grants_;  ///< by watched router, of the sample before
};

}  // namespace wafersim::sim
