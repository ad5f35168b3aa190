#pragma once

#include <cstring>
#include <span>
#include <type_traits>
#include <vector>

#include "sim/network.h"
#include "workloads/trace.h"

/// The state of a simulation as plain data. A part's state is described once, by its `visit(archive)` (sim/state_visit.h),
/// field by field with what kind of thing each is; the archives give the description its uses. An exact writer and a reader
/// make checkpoints, move state in time or to other tiles; a relative writer makes equal what has the same future.
namespace wafersim::sim {

template <class Archive>
void visit_record(Archive& archive, Message& message);
template <class Archive>
void visit_record(Archive& archive, Packet& packet);

/// Messages and packets by their numbers in the pools, in the order in which state has them. Those of a state written and of the
/// same state read stand in the same order.
struct NamedRecords {
  std::vector<std::uint32_t> messages;
  std::vector<std::uint32_t> packets;
};

/// What relative state is told from.
struct StateOrigin {
  Cycle charged = 0;  ///< all tiles have charged their cycles before this one
  std::int32_t microbatch = 0;
  std::int32_t iteration = 0;
  bool recorded = false;  ///< what recorders read counts, too
  /// Kept apart: what memory classes hold of which the amount only decides whether it fits.
  bool levels_apart = false;
  std::span<const TileId> names = {};  ///< of tiles; empty: their numbers
};

/// The rank of an operation's slot among the open steps of a tile.
class OpenSlots {
 public:
  virtual ~OpenSlots() = default;
  virtual std::uint32_t rank(TileId tile, std::uint32_t slot) const = 0;
};

class StateWriter {
 public:
  static constexpr bool kReads = false;

  /// Exact state behind cycle `now`.
  StateWriter(NetworkContext& network, Cycle now) : network_(network), now_(now) {}
  /// Relative state: times since `now`, microbatches and iterations since the origin's, steps since the next of their
  /// program, messages and packets by order of visit; what nothing can depend on any more is left out, counters are kept apart.
  StateWriter(NetworkContext& network, Cycle now, const StateOrigin& origin, const OpenSlots& slots)
      : network_(network), now_(now), origin_(origin), slots_(&slots) {}

  NetworkContext& network() { return network_; }
  Cycle now() const { return now_; }
  bool relative() const { return slots_ != nullptr; }
  bool levels_apart() const { return relative() && origin_.levels_apart; }
  const std::vector<char>& bytes() const { return bytes_; }
  std::vector<char> take_bytes() { return std::move(bytes_); }
  std::vector<std::uint64_t> take_counters() { return std::move(counters_); }

  /// A number, flag or enumerator as it is.
  template <class T>
  void plain(const T& value) {
    static_assert(std::has_unique_object_representations_v<T>);
    put(&value, sizeof value);
  }
  /// Records without pointers, in exact state only.
  template <class Vector>
  void records(const Vector& values) {
    static_assert(std::is_trivially_copyable_v<typename Vector::value_type>);
    size(values.size());
    put(values.data(), values.size() * sizeof(values[0]));
  }
  /// Returns the number of items that follow.
  std::size_t size(std::size_t count) {
    plain(std::uint64_t{count});
    return count;
  }
  /// A value that only reports read.
  template <class T>
  void detail(const T& value) {
    if (!relative()) plain(value);
  }
  void detail_time(const Cycle& at) {
    if (!relative()) plain(at);
  }
  /// A value that recorders read.
  template <class T>
  void recorded(const T& value) {
    if (!relative() || origin_.recorded) plain(value);
  }
  void recorded_time(const Cycle& at) {
    if (!relative() || origin_.recorded) time(at);
  }
  /// A cycle; kNever is none.
  void time(const Cycle& at) { plain(relative() && at != kNever ? at - now_ : at); }
  /// A cycle that is only asked whether it is later than a coming one.
  void expiring(const Cycle& at) {
    if (relative() && at <= now_) return plain(kNever);
    time(at);
  }
  void expiring(const ExactTime& at) {
    if (relative() && at.whole <= now_) return plain(kNever);
    time(at.whole);
    plain(at.part);
  }
  /// A sum that nothing depends on.
  void counter(const std::uint64_t& value) {
    if (relative()) {
      counters_.push_back(value);
    } else {
      plain(value);
    }
  }
  void tile(const TileId& id) { plain(origin_.names.empty() || id == kNoTile ? id : origin_.names[id]); }
  void key(std::uint64_t key);
  void wait(const WaitInterval& wait);
  /// The next step of a program, and an open one.
  void next_step(const std::uint32_t& next) {
    if (!relative()) plain(next);
  }
  void step(const std::uint32_t& step, std::uint32_t next) { plain(relative() ? next - step : step); }
  /// What an open step is, which follows from its number.
  void identity(const workloads::Step& step);
  /// A slot of open steps, and an operation in one.
  void slot(const std::uint32_t& slot, TileId tile) { plain(relative() ? slots_->rank(tile, slot) : slot); }
  void token(const std::uint64_t& token, TileId tile);

  void message(const std::uint32_t& index) { pooled(index, network_.messages, message_names_, named_.messages); }
  void packet(const std::uint32_t& index) { pooled(index, network_.packets, packet_names_, named_.packets); }
  const NamedRecords& named() const { return named_; }

 private:
  void put(const void* from, std::size_t count) {
    const auto* const first = static_cast<const char*>(from);
    bytes_.insert(bytes_.end(), first, first + count);
  }
  void microbatch(std::int32_t microbatch);
  template <class T>
  void pooled(std::uint32_t index, Pool<T>& pool, std::vector<std::uint32_t>& names, std::vector<std::uint32_t>& named) {
    if (index >= names.size()) names.resize(std::size_t{index} + 1, kNil);
    if (names[index] != kNil) return plain(names[index]);
    plain(names[index] = next_name_++);
    named.push_back(index);
    visit_record(*this, pool[index]);
  }

  NetworkContext& network_;
  Cycle now_;
  StateOrigin origin_;
  const OpenSlots* slots_ = nullptr;
  std::vector<char> bytes_;
  std::vector<std::uint64_t> counters_;
  std::vector<std::uint32_t> message_names_;  ///< by index
  std::vector<std::uint32_t> packet_names_;
  std::uint32_t next_name_ = 0;
  NamedRecords named_;
};

/// Written as the exact state is, to give back to the pools what the state holds of them: credits are at once, messages and
/// packets are named().
class StateRelease : public StateWriter {
 public:
  static constexpr bool kReleases = true;
  using StateWriter::StateWriter;
};

/// What a reader changes in the state that it reads: moves it on in time and program, or to other tiles.
struct StateShift {
  Cycle cycles = 0;  ///< back: modulo 2^64
  std::int32_t microbatches = 0;
  std::int32_t iterations = 0;
  std::span<const std::uint64_t> counters = {};  ///< added to each, in order of visit; empty = nothing
  std::span<const std::uint32_t> steps = {};     ///< by tile; empty = none
  std::span<const TileId> tiles = {};            ///< by tile: which it becomes; empty = itself
};

/// Reads exact state. Throws InternalError where the bytes cannot be state.
class StateReader {
 public:
  static constexpr bool kReads = true;

  /// The state read is one behind cycle `now`, before the shift.
  StateReader(NetworkContext& network, Cycle now, std::span<const char> bytes, const StateShift& shift = {})
      : network_(network), now_(now + shift.cycles), bytes_(bytes), shift_(shift) {}

  NetworkContext& network() { return network_; }
  Cycle now() const { return now_; }
  static constexpr bool relative() { return false; }
  static constexpr bool levels_apart() { return false; }
  bool at_end() const { return bytes_.empty(); }

  template <class T>
  void plain(T& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    get(&value, sizeof value);
  }
  template <class Vector>
  void records(Vector& values) {
    values.resize(size(0));
    get(values.data(), values.size() * sizeof(values[0]));
  }
  std::size_t size(std::size_t /*count*/) {
    std::uint64_t count = 0;
    plain(count);
    require_invariant(count <= bytes_.size(), "the state of a simulation is damaged");
    return count;
  }
  template <class T>
  void detail(T& value) {
    plain(value);
  }
  void detail_time(Cycle& at) { time(at); }
  template <class T>
  void recorded(T& value) {
    plain(value);
  }
  void recorded_time(Cycle& at) { time(at); }
  /// What was before the first cycle after a shift back was long ago, and stays so.
  void time(Cycle& at) {
    plain(at);
    if (at == kNever) return;
    const bool back = static_cast<std::int64_t>(shift_.cycles) < 0;
    at = back && at < Cycle{0} - shift_.cycles ? 0 : at + shift_.cycles;
  }
  void expiring(Cycle& at) { time(at); }
  void expiring(ExactTime& at) {
    time(at.whole);
    plain(at.part);
  }
  void counter(std::uint64_t& value) {
    plain(value);
    if (!shift_.counters.empty()) value += shift_.counters[counters_read_++];
  }
  void tile(TileId& id) {
    plain(id);
    if (!shift_.tiles.empty() && id != kNoTile) id = shift_.tiles[id];
  }
  void key(std::uint64_t& key);
  void wait(WaitInterval& wait);
  /// The tile whose program the next steps are of, after the shift.
  void at_tile(TileId tile) { steps_ = shift_.steps.empty() ? 0 : shift_.steps[tile]; }
  void next_step(std::uint32_t& next) {
    plain(next);
    next += steps_;
  }
  void step(std::uint32_t& step, std::uint32_t /*next*/) {
    plain(step);
    step += steps_;
  }
  void identity(const workloads::Step& /*step*/) {}
  void slot(std::uint32_t& slot, TileId /*tile*/) { plain(slot); }
  void token(std::uint64_t& token, TileId /*tile*/) { plain(token); }

  void message(std::uint32_t& index) { pooled(index, network_.messages, named_.messages); }
  void packet(std::uint32_t& index) { pooled(index, network_.packets, named_.packets); }
  const NamedRecords& named() const { return named_; }

 private:
  void get(void* to, std::size_t count) {
    require_invariant(count <= bytes_.size(), "the state of a simulation is damaged");
    if (count != 0) std::memcpy(to, bytes_.data(), count);
    bytes_ = bytes_.subspan(count);
  }
  template <class T>
  void pooled(std::uint32_t& index, Pool<T>& pool, std::vector<std::uint32_t>& named) {
    std::uint32_t name = 0;
    plain(name);
    if (name < places_.size()) {
      index = places_[name];
      return;
    }
    require_invariant(name == places_.size(), "the state of a simulation is damaged");
    index = pool.take();
    places_.push_back(index);
    named.push_back(index);
    T record{};
    visit_record(*this, record);
    pool[index] = record;
  }

  NetworkContext& network_;
  Cycle now_;
  std::span<const char> bytes_;
  StateShift shift_;
  std::uint32_t steps_ = 0;
  std::size_t counters_read_ = 0;
  std::vector<std::uint32_t> places_;  ///< of messages and packets, by name
  NamedRecords named_;
};

}  // namespace wafersim::sim
