#pragma once

#include <array>
#include <span>
#include <vector>

#include "sim/state_archive.h"
#include "sim/tile.h"

namespace wafersim::sim {

/// State in a form in which equal states have equal futures, up to when and for which microbatch they come.
struct RelativeState {
  std::vector<char> bytes;
  std::vector<std::uint64_t> counters;
  NamedRecords named;
  std::size_t events = 0;  ///< to come
};

/// State as it is.
struct ExactState {
  std::vector<char> bytes;
  NamedRecords named;
};

/// The state of tiles of a wafer with everything that is under way on them, between two cycles. Tiles that exchange
/// messages, and those that share a DRAM, are taken together. Packet and ideal networks with cores that run the trace.
class WaferState final : public OpenSlots {
 public:
  /// All must outlive this.
  WaferState(const Wafer& wafer, NetworkContext& network, Calendar& calendar);

  /// All live tiles.
  const std::vector<Tile*>& tiles() const { return tiles_; }

  ExactState save(std::span<Tile* const> tiles) const;
  /// With `recorded` equal states also have equal records to come.
  RelativeState relative(std::span<Tile* const> tiles, std::int32_t microbatch, std::int32_t iteration, bool recorded) const;
  /// Of some tiles among others, whose state may be of any time. What they hold of classes that only have to fit is left out.
  /// `names` are those of tiles.
  RelativeState relative_part(std::span<Tile* const> tiles, std::int32_t microbatch, std::int32_t iteration,
                              std::span<const TileId> names) const;

  /// Puts all tiles into a state saved behind cycle `now`; everything under way is replaced. Returns what it is now.
  NamedRecords load(std::span<const char> bytes, Cycle now, std::span<Tile* const> tiles, const StateShift& shift = {});
  /// Puts `tiles` into the state saved in this cycle of other tiles, which shift.tiles makes into these in the same order;
  /// nothing may be under way on them. Returns what then is.
  NamedRecords add(std::span<const char> bytes, std::span<Tile* const> tiles, const StateShift& shift);
  /// Forgets what the calendar holds for tiles.
  void drop_events(std::span<Tile* const> tiles) { take_events(tiles); }
  /// Takes it out.
  std::vector<Calendar::Pending> take_events(std::span<Tile* const> tiles);
  /// Puts `tiles`, whose state with `events` is forgotten, into a state that was saved of them behind cycle `now`. Returns the
  /// events of that state.
  std::vector<Calendar::Pending> exchange(std::span<Tile* const> tiles, std::span<const Calendar::Pending> events,
                                          std::span<const char> bytes, Cycle now, const StateShift& shift);

 private:
  std::uint32_t rank(TileId tile, std::uint32_t slot) const override;
  template <class Archive>
  void visit_parts(Archive& archive, std::span<Tile* const> tiles) const;
  std::size_t write_events(StateWriter& writer, std::span<Tile* const> tiles) const;
  void sort(std::vector<Calendar::Pending>& events) const;
  void write_event(StateWriter& writer, const Calendar::Pending& event) const;
  void read_events(StateReader& reader, std::vector<Calendar::Pending>& events) const;
  std::vector<bool> selection(std::span<Tile* const> tiles) const;
  TileId place_of(const Calendar::Pending& event) const { return places_[event.lane][event.event.client()]; }
  ClientHandle client_at(std::uint8_t lane, TileId place) const;

  const Wafer& wafer_;
  NetworkContext& network_;
  Calendar& calendar_;
  std::vector<Tile*> tiles_;
  std::array<std::vector<TileId>, Calendar::kLanes> places_;  ///< by lane and client: its tile, of a DRAM the corner of its die
};

}  // namespace wafersim::sim
