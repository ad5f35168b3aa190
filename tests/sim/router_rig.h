#pragma once

#include <array>
#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "sim/router.h"
#include "topology/mesh.h"

namespace wafersim::test {

/// Ports of the router in the rig; local inputs and outputs follow.
enum Port : unsigned { north, east, south, west, local };

/// One router, in the middle of a 3x3 mesh, with neighbours and a NIC that record what they are told and do
/// what the test has scheduled. One rig in a process.
class RouterRig {
 public:
  explicit RouterRig(models::HardwareModel hardware);
  ~RouterRig();

  static constexpr TileId kHere = 4;
  static constexpr std::array<TileId, 4> kNeighbours = {1, 5, 7, 3};  ///< north, east, south, west

  /// A packet sent on, or ejected.
  struct Sent {
    std::uint32_t packet = 0;
    unsigned port = 0;  ///< `local` for every ejection port
    Cycle at = 0;       ///< cycle of the grant
    Cycle head_at = 0;  ///< not for ejections
    sim::ExactTime tail_at;
  };
  /// A credit handed back for a packet that came in by `input`.
  struct Credit {
    unsigned input = 0;
    unsigned vc = 0;
    Bytes bytes = 0;
    Cycle told_at = 0;
    Cycle at = 0;
  };

  /// A packet whose head reaches an input in cycle `head_at`, and its tail not before `tail_at`. Packets are
  /// numbered from 0. Input local + i is the injection port for output i.
  void arrive(Cycle head_at, Cycle tail_at, unsigned input, unsigned vc, TileId destination,
              Bytes bytes = 64);
  /// The neighbour behind `output` says in cycle `told_at` that a credit will be there at `at`.
  void credit(Cycle told_at, unsigned output, unsigned vc, Bytes bytes, Cycle at);
  void run();

  const std::vector<Sent>& sent() const { return sent_; }
  const std::vector<Credit>& credits() const { return credits_; }
  std::uint64_t scale() const { return network_->time_scale; }
  /// Packets in the order in which they were granted.
  std::vector<std::uint32_t> order() const;
  /// The cycles in which they were.
  std::vector<Cycle> grants() const;
  const sim::RouterEngine& engine() const { return router_->engine(); }

 private:
  class Script;
  class Neighbour;
  class LocalNic;

  models::HardwareModel hardware_;
  topology::Mesh mesh_;
  std::unique_ptr<topology::Routing> routing_;
  std::unique_ptr<sim::Calendar> calendar_;
  std::unique_ptr<sim::NetworkContext> network_;
  std::unique_ptr<sim::Router> router_;
  std::unique_ptr<Script> script_;
  std::vector<std::unique_ptr<Neighbour>> neighbours_;
  std::unique_ptr<LocalNic> nic_;
  std::vector<Sent> sent_;
  std::vector<Credit> credits_;
};

}  // namespace wafersim::test
