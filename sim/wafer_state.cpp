#include "sim/wafer_state.h"

#include <algorithm>
#include <tuple>

#include "base/error.h"
#include "sim/path_recorder.h"
#include "sim/state_visit.h"

namespace wafersim::sim {
namespace {

/// The calendar's lanes. DRAMs are its only clients without a fleet.
enum Lane : std::uint8_t {
  kDramLane = 0,
  kCoreLane = 1 + static_cast<unsigned>(Rank::core),
  kNicLane = 1 + static_cast<unsigned>(Rank::nic),
  kRouterLane = 1 + static_cast<unsigned>(Rank::router)
};

void set_place(std::array<std::vector<TileId>, Calendar::kLanes>& places, const Client& client, TileId place) {
  const ClientHandle handle = Calendar::handle(client);
  std::vector<TileId>& of_lane = places[handle.lane];
  if (of_lane.size() <= handle.id) of_lane.resize(std::size_t{handle.id} + 1, kNoTile);
  of_lane[handle.id] = place;
}

}  // namespace

WaferState::WaferState(const Wafer& wafer, NetworkContext& network, Calendar& calendar)
    : wafer_(wafer), network_(network), calendar_(calendar) {
  for (Tile* const tile : wafer.tiles()) {
    tiles_.push_back(tile);
    if (tile->router) set_place(places_, tile->router->engine(), tile->id());
    if (!tile->used()) continue;
    set_place(places_, *tile->nic, tile->id());
    set_place(places_, *tile->trace_core(), tile->id());
  }
  for (const auto& [corner, dram] : wafer.drams()) set_place(places_, *dram, corner);
}

std::uint32_t WaferState::rank(TileId tile, std::uint32_t slot) const {
  return wafer_.tile(tile).trace_core()->rank_of_slot(slot);
}

std::vector<bool> WaferState::selection(std::span<Tile* const> tiles) const {
  std::vector<bool> selected(network_.flights.size());
  for (const Tile* tile : tiles) selected[tile->id()] = true;
  return selected;
}

template <class Archive>
void WaferState::visit_parts(Archive& archive, std::span<Tile* const> tiles) const {
  std::vector<Dram*> drams;
  for (Tile* tile : tiles) {
    if (tile->router) tile->router->engine().visit(archive);
    if (!tile->used()) continue;
    tile->nic->visit(archive);
    tile->sram->visit(archive);
    tile->trace_core()->visit(archive, tile->sram->nic_total());
    if (tile->dram != nullptr && std::find(drams.begin(), drams.end(), tile->dram) == drams.end()) {
      drams.push_back(tile->dram);
    }
  }
  for (Dram* dram : drams) dram->visit(archive);
}

void WaferState::write_event(StateWriter& writer, const Calendar::Pending& pending) const {
  const std::uint32_t payload = pending.event.payload;
  const unsigned kind = pending.event.kind();
  writer.time(pending.at);
  writer.plain(pending.lane);
  writer.tile(place_of(pending));
  writer.plain(static_cast<std::uint8_t>(kind));
  if (kind == Event::kEvaluate) return;
  if (pending.lane == kDramLane) {
    writer.tile(Dram::tile_of(payload));
    writer.plain(Dram::engine_of(payload));
  } else if (pending.lane == kNicLane && Nic::names_message(kind)) {
    writer.message(payload);
    const Message& message = network_.messages[payload];
    if (writer.relative() && Nic::ends_send(kind)) writer.token(message.send_token, message.source);
  } else if (pending.lane == kRouterLane && RouterEngine::names_packet(kind)) {
    writer.packet(payload);
  } else {
    writer.plain(payload);
  }
}

/// In an order in which those of a cycle do not come as they were posted, of which nothing depends: updates of a cycle may be
/// made in any order. Alike ones of one client are told apart by what they are about.
void WaferState::sort(std::vector<Calendar::Pending>& events) const {
  const auto subject = [this](const Calendar::Pending& pending) {
    const unsigned kind = pending.event.kind();
    std::uint32_t number = pending.event.payload;
    std::uint8_t vc = 0;
    const bool packet = pending.lane == kRouterLane && kind != Event::kEvaluate && RouterEngine::names_packet(kind);
    const bool message = pending.lane == kNicLane && kind != Event::kEvaluate && Nic::names_message(kind);
    if (packet) {
      vc = network_.packets[number].vc;
      number = network_.packets[number].message;
    }
    if (!packet && !message) return std::tuple(std::uint64_t{number}, TileId{0}, TileId{0}, vc);
    const Message& about = network_.messages[number];
    return std::tuple(about.key, about.source, about.destination, vc);
  };
  std::stable_sort(events.begin(), events.end(), [&](const Calendar::Pending& a, const Calendar::Pending& b) {
    const auto one = std::tie(a.at, a.lane, a.event.client_and_kind);
    const auto other = std::tie(b.at, b.lane, b.event.client_and_kind);
    return one != other ? one < other : subject(a) < subject(b);
  });
}

std::size_t WaferState::write_events(StateWriter& writer, std::span<Tile* const> tiles) const {
  const std::vector<bool> selected = selection(tiles);
  std::vector<Calendar::Pending> events = calendar_.pending();
  const auto elsewhere = [&](const Calendar::Pending& event) { return !selected[place_of(event)]; };
  events.erase(std::remove_if(events.begin(), events.end(), elsewhere), events.end());
  if (writer.relative()) sort(events);
  writer.size(events.size());
  for (const Calendar::Pending& event : events) write_event(writer, event);
  return events.size();
}

ClientHandle WaferState::client_at(std::uint8_t lane, TileId place) const {
  switch (lane) {
    case kDramLane:
      return Calendar::handle(*wafer_.drams().at(place));
    case kCoreLane:
      return Calendar::handle(*wafer_.tile(place).trace_core());
    case kNicLane:
      return Calendar::handle(*wafer_.tile(place).nic);
    case kRouterLane:
      return Calendar::handle(wafer_.tile(place).router->engine());
    default:
      throw InternalError("the state of a simulation is damaged");
  }
}

void WaferState::read_events(StateReader& reader, std::vector<Calendar::Pending>& events) const {
  const std::size_t count = reader.size(0);
  for (std::size_t i = 0; i < count; ++i) {
    Calendar::Pending pending;
    TileId place = kNoTile;
    std::uint8_t kind = 0;
    reader.time(pending.at);
    reader.plain(pending.lane);
    reader.tile(place);
    reader.plain(kind);
    std::uint32_t& payload = pending.event.payload;
    if (kind == Event::kEvaluate) {
      payload = 0;
    } else if (pending.lane == kDramLane) {
      TileId tile = kNoTile;
      std::uint32_t engine = 0;
      reader.tile(tile);
      reader.plain(engine);
      payload = Dram::payload_of(tile, engine);
    } else if (pending.lane == kNicLane && Nic::names_message(kind)) {
      reader.message(payload);
    } else if (pending.lane == kRouterLane && RouterEngine::names_packet(kind)) {
      reader.packet(payload);
    } else {
      reader.plain(payload);
    }
    pending.event.client_and_kind = client_at(pending.lane, place).id | std::uint32_t{kind} << Event::kIdBits;
    events.push_back(pending);
  }
  require_invariant(reader.at_end(), "the state of a simulation is damaged");
}

ExactState WaferState::save(std::span<Tile* const> tiles) const {
  StateWriter writer(network_, calendar_.current());
  visit_parts(writer, tiles);
  write_events(writer, tiles);
  return {writer.take_bytes(), writer.named()};
}

RelativeState WaferState::relative(std::span<Tile* const> tiles, std::int32_t microbatch, std::int32_t iteration,
                                   bool recorded) const {
  StateOrigin origin{calendar_.current(), microbatch, iteration, recorded};
  for (const Tile* tile : tiles) {
    if (tile->used()) origin.charged = std::min(origin.charged, tile->trace_core()->charged());
  }
  StateWriter writer(network_, calendar_.current(), origin, *this);
  visit_parts(writer, tiles);
  write_events(writer, tiles);
  if (recorded && network_.path != nullptr) network_.path->write_relative(writer);
  return {writer.take_bytes(), writer.take_counters(), writer.named(), 0};
}

RelativeState WaferState::relative_part(std::span<Tile* const> tiles, std::int32_t microbatch, std::int32_t iteration,
                                        std::span<const TileId> names) const {
  StateWriter writer(network_, calendar_.current(), {0, microbatch, iteration, false, true, names}, *this);
  visit_parts(writer, tiles);
  const std::size_t events = write_events(writer, tiles);
  return {writer.take_bytes(), writer.take_counters(), writer.named(), events};
}

NamedRecords WaferState::load(std::span<const char> bytes, Cycle now, std::span<Tile* const> tiles, const StateShift& shift) {
  network_.packets.clear();
  network_.messages.clear();
  network_.credits.clear();
  StateReader reader(network_, now, bytes, shift);
  visit_parts(reader, tiles);
  std::vector<Calendar::Pending> events;
  read_events(reader, events);
  calendar_.replace(reader.now(), events);
  return reader.named();
}

NamedRecords WaferState::add(std::span<const char> bytes, std::span<Tile* const> tiles, const StateShift& shift) {
  StateReader reader(network_, calendar_.current(), bytes, shift);
  visit_parts(reader, tiles);
  std::vector<Calendar::Pending> events = calendar_.pending();
  read_events(reader, events);
  calendar_.replace(calendar_.current(), events);
  return reader.named();
}

std::vector<Calendar::Pending> WaferState::take_events(std::span<Tile* const> tiles) {
  const std::vector<bool> selected = selection(tiles);
  return calendar_.take_out([&](const Calendar::Pending& event) { return bool{selected[place_of(event)]}; });
}

std::vector<Calendar::Pending> WaferState::exchange(std::span<Tile* const> tiles, std::span<const Calendar::Pending> events,
                                                    std::span<const char> bytes, Cycle now, const StateShift& shift) {
  StateRelease old(network_, now);
  visit_parts(old, tiles);
  for (const Calendar::Pending& event : events) write_event(old, event);
  for (const std::uint32_t packet : old.named().packets) network_.packets.give_back(packet);
  for (const std::uint32_t message : old.named().messages) network_.messages.give_back(message);
  StateReader reader(network_, now, bytes, shift);
  visit_parts(reader, tiles);
  std::vector<Calendar::Pending> ahead;
  read_events(reader, ahead);
  return ahead;
}

}  // namespace wafersim::sim
