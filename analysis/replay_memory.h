#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <vector>

#include "analysis/step_replay.h"

namespace wafersim::analysis {

/// What came of steps that were played, on one machine with one set of routes, for whatever plan: by a 128-bit digest of all
/// that a play depends on. May be used by many threads.
class ReplayMemory {
 public:
  using Key = std::array<std::uint64_t, 2>;

  std::optional<Played> recall(const Key& key) const;
  void remember(const Key& key, const Played& played);
  std::size_t plays() const;
  /// What would exceed this makes all be forgotten.
  static constexpr Bytes kMostBytes = Bytes{1} << 28;

 private:
  mutable std::mutex mutex_;
  std::map<Key, Played> known_;
  Bytes bytes_ = 0;
};

/// Makes the keys of the plays of one trace.
class ReplayKeys {
 public:
  /// Both must outlive this.
  ReplayKeys(const sim::CompiledTrace& trace, const models::HardwareModel& hardware) : trace_(trace), hardware_(hardware) {}

  /// `sharers`: by tile, how many tiles of the plan have a die with it. Nothing for tiles that exchange transfers between stages:
  /// these have channels by chunk, which keys leave out.
  std::optional<ReplayMemory::Key> of(const std::vector<PlayedTile>& tiles, Cycle outside,
                                      const std::vector<std::uint32_t>& sharers);

 private:
  /// A template as a play sees it: its peers by number in the order of their use.
  struct Content {
    ReplayMemory::Key digest{};
    std::vector<std::uint32_t> peers;           ///< by number
    std::vector<std::uint32_t> boundary_peers;  ///< of transfers between stages
    std::array<bool, workloads::kMemoryClasses> moves{};  ///< reads or writes something of the class
  };
  const Content& content(std::uint32_t step_template);
  void add_memory(const workloads::TileBinding& binding, const std::array<bool, workloads::kMemoryClasses>& moves);
  void add_order(const PlayedTile& tile);

  const sim::CompiledTrace& trace_;
  const models::HardwareModel& hardware_;
  std::unordered_map<std::uint32_t, Content> contents_;  ///< by template
  std::vector<std::uint64_t> values_;                    ///< of the key in the making
  std::unordered_map<std::uint64_t, std::uint64_t> step_numbers_;  ///< by what messages of a step match by
};

}  // namespace wafersim::analysis
