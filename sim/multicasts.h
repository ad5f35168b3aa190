#pragma once

#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "sim/pool.h"
#include "topology/multicast_tree.h"

namespace wafersim::sim {

/// Messages that routers copy on their way to several tiles. Each receiver has a Message of its own, which is received as any
/// other. What is injected are carriers: messages without a receiver, one for each port by which the tree leaves its source,
/// whose packets name the multicast.
class Multicasts {
 public:
  /// `routing` is null where place and destination do not decide a packet's way; `name` is that of the policy.
  Multicasts(const topology::Mesh& mesh, const std::string& name, const topology::Routing* routing)
      : mesh_(mesh), name_(name), routing_(routing) {}

  /// The tree from a tile to `receivers`, made when it is first asked for. Throws as topology::MulticastTree does, and PlanError
  /// when there is no routing function.
  std::uint32_t tree_to(TileId source, std::span<const TileId> receivers);
  /// A multicast along that tree.
  std::uint32_t open(TileId source, std::span<const TileId> receivers);
  const topology::MulticastTree& tree(std::uint32_t multicast) const { return trees_[pool_[multicast].tree]; }

  /// In the order of the receivers.
  void add_message(std::uint32_t multicast, std::uint32_t message) { pool_[multicast].messages.push_back(message); }
  std::uint32_t message_at(std::uint32_t multicast, TileId tile) const {
    return pool_[multicast].messages[tree(multicast).receiver_at(tile)];
  }

  void add_carrier(std::uint32_t multicast, std::uint32_t message) { pool_[multicast].carriers.push_back(message); }
  /// The first packet of a carrier is injected.
  void injected(std::uint32_t multicast, Cycle now) {
    if (pool_[multicast].injected == kNever) pool_[multicast].injected = now;
  }
  Cycle injected_at(std::uint32_t multicast) const { return pool_[multicast].injected; }
  /// A carrier has left its NIC. True when all have.
  bool carrier_left(std::uint32_t multicast) {
    UnderWay& it = pool_[multicast];
    return ++it.carriers_gone == it.carriers.size();
  }

  /// A receiver has taken its message. When all have, returns the carriers, which are to be given back, and forgets the
  /// multicast.
  std::vector<std::uint32_t> taken(std::uint32_t multicast);

 private:
  struct UnderWay {
    std::uint32_t next = kNil;
    std::uint32_t tree = 0;
    std::size_t carriers_gone = 0;
    std::size_t taken = 0;
    Cycle injected = kNever;
    std::vector<std::uint32_t> messages;
    std::vector<std::uint32_t> carriers;
  };

  const topology::Mesh& mesh_;
  std::string name_;
  const topology::Routing* routing_;
  std::vector<topology::MulticastTree> trees_;
  std::map<std::pair<TileId, std::vector<TileId>>, std::uint32_t> known_;
  Pool<UnderWay> pool_;
};

}  // namespace wafersim::sim
