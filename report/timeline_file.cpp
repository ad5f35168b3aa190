#include "report/timeline_file.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "report/pieces.h"

namespace wafersim::report {
namespace {

constexpr std::uint32_t kNotChosen = ~std::uint32_t{0};
constexpr std::size_t kEngineTracks = 2;
/// Tracks of a tile are shown before those of the next.
constexpr std::size_t kOrdersOfTile = std::size_t{1} << 12;
/// Of the text, that much is kept for loads of links. An event of them takes at most so many bytes, and so does naming a process.
constexpr Bytes kShareOfLoads = 8;
constexpr Bytes kLoadBytes = 160;

std::string quoted(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

const char* word(workloads::Pass pass) {
  switch (pass) {
    case workloads::Pass::forward:
      return "forward";
    case workloads::Pass::backward:
      return "backward";
    case workloads::Pass::weight:
      return "weight";
    case workloads::Pass::recompute:
      return "recompute";
    default:
      return "none";
  }
}

}  // namespace

TimelineFile::TimelineFile(const std::filesystem::path& path, const Run& run, const std::vector<TileId>& tiles,
                           Bytes most_bytes)
    : file_(path),
      scenario_(quoted(run.scenario)),
      hardware_(run.hardware),
      trace_(run.trace),
      mesh_(run.mesh),
      femtoseconds_(Rational(1'000'000'000'000'000) / run.hardware.clock.hertz),
      index_(run.mesh.tile_count(), kNotChosen),
      processes_(static_cast<std::size_t>(run.trace.pipeline_stages)) {
  for (const TileId tile : tiles) {
    if (index_.at(tile) != kNotChosen) continue;
    index_[tile] = static_cast<std::uint32_t>(tiles_.size());
    const auto binding = std::lower_bound(trace_.tiles.begin(), trace_.tiles.end(), tile,
                                          [](const workloads::TileBinding& b, TileId id) { return b.tile < id; });
    require_invariant(binding != trace_.tiles.end() && binding->tile == tile, "a tile of the timeline is not used");
    const std::string wafer = mesh_.wafer_grid().size() > 1 ? fmt::format("wafer {} ", mesh_.wafer(tile)) : "";
    tiles_.push_back({&*binding, wafer + mesh_.name(tile), std::vector<Track>(kEngineTracks), {}});
  }
  for (const workloads::Tensor& tensor : trace_.tensors) tensors_.push_back(quoted(tensor.name));
  const std::string head = "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[";
  const std::size_t frame = head.size() + tail(kNever, kNever).size();
  left_ = most_bytes - std::min<Bytes>(most_bytes, frame);
  left_for_loads_ = left_ / kShareOfLoads;
  left_ -= left_for_loads_;
  file_.write(head);
}

void TimelineFile::add(const sim::OperationRecord& operation) {
  if (!recording(operation.end)) return;
  TileTracks* const tile = tracks_of(operation.tile);
  require_invariant(tile != nullptr, "an operation of a tile that the timeline does not show");
  const bool matrix = operation.kind == workloads::OpKind::matrix;
  Track& track = tile->engines[matrix ? 0 : 1];
  announce(track, *tile, matrix ? "matrix" : "vector", matrix ? 0 : 1);
  const StepText& step = step_text(*tile, operation.step);
  const bool reduces = operation.kind == workloads::OpKind::reduce;
  const char* const kind = workloads::to_string(operation.kind);
  event(R"({"ph":"X","pid":)", process(tile->binding->stage), R"(,"tid":)", track.id, R"(,"ts":)", time(operation.start),
        R"(,"dur":)", time(operation.end - operation.start), R"(,"name":")", step.name, ": ", kind, reduces ? " " : "",
        reduces ? workloads::to_string(operation.axis) : "", R"(","cat":")", kind, R"(","args":{)", step.arguments,
        R"(,"start_cycle":)", operation.start, R"(,"cycles":)", operation.end - operation.start, "}}");
  write_events(operation.end);
}

void TimelineFile::add(const sim::MessageRecord& message) {
  TileTracks* const source = tracks_of(message.source);
  TileTracks* const destination = tracks_of(message.destination);
  if (source == nullptr && destination == nullptr) return;
  if (!recording(message.received)) return;
  if (source == destination) {
    slice(*source, message, " to itself", "");
    return write_events(message.received);
  }
  const Track* from = nullptr;
  const Track* to = nullptr;
  if (source != nullptr) from = &slice(*source, message, " to ", mesh_.name(message.destination));
  if (destination != nullptr) to = &slice(*destination, message, " from ", mesh_.name(message.source));
  // An arrow begins and ends within slices, which do not have the instant at their end.
  if (from != nullptr && to != nullptr && message.received > message.posted) {
    const char* const axis = workloads::to_string(message.axis);
    event(R"({"ph":"s","pid":)", process(source->binding->stage), R"(,"tid":)", from->id, R"(,"ts":)", time(message.posted),
          R"(,"id":)", next_arrow_, R"(,"name":")", axis, R"(","cat":")", axis, R"("})");
    event(R"({"ph":"f","bp":"e","pid":)", process(destination->binding->stage), R"(,"tid":)", to->id, R"(,"ts":)",
          time(message.received - 1), R"(,"id":)", next_arrow_, R"(,"name":")", axis, R"(","cat":")", axis, R"("})");
    ++next_arrow_;
  }
  write_events(message.received);
}

void TimelineFile::add(TileId id, Cycle cycle, const sim::MemoryLevels& levels) {
  if (recorded_before_) return;
  const TileTracks* const tile = tracks_of(id);
  require_invariant(tile != nullptr, "memory of a tile that the timeline does not show");
  const std::uint32_t pid = process(tile->binding->stage);
  const auto levels_event = [&](const auto&... more) {
    event(R"({"ph":"C","pid":)", pid, R"(,"ts":)", time(cycle), R"(,"name":")", tile->name, R"( memory","args":{"sram":)",
          levels.sram, more..., "}}");
  };
  if (hardware_.dram_capacity == 0) {
    levels_event();
  } else {
    levels_event(R"(,"dram":)", levels.dram);
  }
  write_events(std::max(cycle, latest_));  // a level is told of when it ends
}

void TimelineFile::commit(const sim::Measurements& measurements) {
  if (measurements.windows) write_loads(measurements);
  file_.write(tail(measurements.cycles, recorded_before_));
  file_.commit();
}

/// Up to where all else is recorded, in as many windows as there is room for.
void TimelineFile::write_loads(const sim::Measurements& measurements) {
  const sim::WindowMeasurement& windows = *measurements.windows;
  const bool whole = recorded_before_.value_or(kNever) >= measurements.cycles;
  const std::size_t count = whole ? windows.count : static_cast<std::size_t>(*recorded_before_ / windows.length);
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < measurements.links.size(); ++i) {
    if (tracks_of(topology::Mesh::link_source(measurements.links[i].link)) != nullptr) places.push_back(i);
  }
  const std::size_t room = (left_ + left_for_loads_) / kLoadBytes;
  // A load at the end, and a process that may have to be named.
  const auto events = [&](std::size_t merged) { return places.size() * (ceil_div(count, merged) + 2); };
  std::size_t merged = 1;
  while (events(merged) > room && merged < count) merged *= 2;
  if (events(merged) > room) return;
  for (const std::size_t place : places) write_load(place, count, merged, measurements);
}

/// In the first `count` windows, percent of `merged` ones in which a link, by its place among live ones, was busy: where that
/// changes.
void TimelineFile::write_load(std::size_t place, std::size_t count, std::size_t merged, const sim::Measurements& measurements) {
  const sim::WindowMeasurement& windows = *measurements.windows;
  const topology::LinkId link = measurements.links[place].link;
  const std::string name = mesh_.link_name(link);
  const std::uint32_t pid = process(tracks_of(topology::Mesh::link_source(link))->binding->stage);
  Cycle shown = kNever;
  const auto show = [&](Cycle from, Cycle tenths) {
    if (tenths == shown) return;
    shown = tenths;
    event(R"({"ph":"C","pid":)", pid, R"(,"ts":)", time(from), R"(,"name":")", name, R"( busy","args":{"percent":)", tenths / 10,
          ".", tenths % 10, "}}");
  };
  Cycle to = 0;
  for (std::size_t first = 0; first < count; first += merged) {
    const Cycle from = to;
    const std::size_t next = std::min(first + merged, count);
    to = std::min(windows.length * next, measurements.cycles);
    Cycle busy = 0;
    for (std::size_t w = first; w < next; ++w) busy += windows.links[place * windows.count + w].busy;
    show(from, (busy * 1000 + (to - from) / 2) / (to - from));
  }
  if (count != 0) show(to, 0);
  file_.write({events_.data(), events_.size()});
  events_.clear();
}

TimelineFile::TileTracks* TimelineFile::tracks_of(TileId tile) {
  const std::uint32_t index = index_[tile];
  return index == kNotChosen ? nullptr : &tiles_[index];
}

/// In microseconds, exact to the femtosecond.
TimelineFile::Time TimelineFile::time(Cycle cycle) const {
  __extension__ using Wide = unsigned __int128;
  constexpr std::uint64_t kMicrosecond = 1'000'000'000;
  const auto den = static_cast<Wide>(femtoseconds_.den());
  const Wide scaled = cycle * static_cast<Wide>(femtoseconds_.num()) + den / 2;
  const Wide total = den == 1 ? scaled : scaled / den;
  // One division of 128 bits takes as long as many of 64, which nearly all times fit into.
  const bool fits = total <= std::numeric_limits<std::uint64_t>::max();
  const auto low = static_cast<std::uint64_t>(total);
  const fmt::format_int whole(fits ? low / kMicrosecond : static_cast<std::uint64_t>(total / kMicrosecond));
  std::uint64_t rest = fits ? low % kMicrosecond : static_cast<std::uint64_t>(total % kMicrosecond);
  Time time;
  const auto add = [&time](char c) { time.text[time.size++] = c; };
  for (std::size_t i = 0; i < whole.size(); ++i) add(whole.data()[i]);
  if (rest == 0) return time;
  add('.');
  for (std::uint64_t unit = kMicrosecond / 10; rest != 0; rest %= unit, unit /= 10) add(static_cast<char>('0' + rest / unit));
  return time;
}

std::string TimelineFile::tail(Cycle cycles, std::optional<Cycle> recorded_before) const {
  return fmt::format("\n],\"otherData\":{{\"scenario\":{},\"wafersim_version\":\"{}\",\"clock_hz\":\"{}\",\"tiles\":{},\"cycles\":{},"
                     "\"complete\":{},\"recorded_before_cycle\":{}}}}}\n",
                     scenario_, WAFERSIM_VERSION, hardware_.clock.hertz.to_string(), tiles_.size(), cycles, !recorded_before,
                     recorded_before ? std::to_string(*recorded_before) : "null");
}

/// Its number; 0 would be an idle process to some viewers.
std::uint32_t TimelineFile::process(std::int32_t stage) {
  const auto pid = static_cast<std::uint32_t>(stage) + 1;
  if (processes_[static_cast<std::size_t>(stage)]) return pid;
  processes_[static_cast<std::size_t>(stage)] = true;
  event(R"({"ph":"M","pid":)", pid, R"(,"name":"process_name","args":{"name":"stage )", stage, R"("}})");
  event(R"({"ph":"M","pid":)", pid, R"(,"name":"process_sort_index","args":{"sort_index":)", stage, "}}");
  return pid;
}

std::uint32_t TimelineFile::announce(Track& track, const TileTracks& tile, std::string_view name, std::size_t order) {
  if (track.id != 0) return track.id;
  track.id = next_track_++;
  const std::uint32_t pid = process(tile.binding->stage);
  const std::size_t first = static_cast<std::size_t>(&tile - tiles_.data()) * kOrdersOfTile;
  event(R"({"ph":"M","pid":)", pid, R"(,"tid":)", track.id, R"(,"name":"thread_name","args":{"name":")", tile.name, " ", name,
        R"("}})");
  event(R"({"ph":"M","pid":)", pid, R"(,"tid":)", track.id, R"(,"name":"thread_sort_index","args":{"sort_index":)",
        first + std::min(order, kOrdersOfTile - 1), "}}");
  return track.id;
}

/// The lane whose last message ended last, of those on which this one fits. Messages come in the order of their ends, for
/// which this needs no more lanes than messages are in flight at once.
TimelineFile::Track& TimelineFile::lane(TileTracks& tile, const sim::MessageRecord& message) {
  Track* best = nullptr;
  for (Track& lane : tile.lanes) {
    if (lane.end <= message.posted && (best == nullptr || lane.end > best->end)) best = &lane;
  }
  if (best == nullptr) best = &tile.lanes.emplace_back();
  best->end = message.received;
  return *best;
}

TimelineFile::Track& TimelineFile::slice(TileTracks& tile, const sim::MessageRecord& message, std::string_view way,
                                         std::string_view peer) {
  Track& track = lane(tile, message);
  const auto number = static_cast<std::size_t>(&track - tile.lanes.data());
  if (track.id == 0) announce(track, tile, fmt::format("nic {}", number), kEngineTracks + number);
  const char* const axis = workloads::to_string(message.axis);
  const Cycle length = message.received - message.posted;
  event(R"({"ph":"X","pid":)", process(tile.binding->stage), R"(,"tid":)", track.id, R"(,"ts":)", time(message.posted),
        R"(,"dur":)", time(length), R"(,"name":")", axis, way, peer, R"(","cat":")", axis, R"(","args":{"tensor":)",
        tensors_[message.tensor], R"(,"bytes":)", message.bytes, R"(,"start_cycle":)", message.posted, R"(,"cycles":)", length,
        R"(,"inject_cycle":)", message.injected, R"(,"queue_cycles":)", message.queued, "}}");
  return track;
}

/// Of a step of the tile's program; operations of one step come one after the other.
const TimelineFile::StepText& TimelineFile::step_text(TileTracks& tile, std::uint32_t index) {
  StepText& text = tile.step;
  if (text.index == index) return text;
  const workloads::Step& step = trace_.programs[tile.binding->program].steps[index];
  text.index = index;
  const char* const kind = workloads::to_string(step.kind);
  text.name = kind;
  if (step.layer >= 0) text.name += fmt::format(" {}", step.layer);
  if (step.pass != workloads::Pass::none) text.name += fmt::format(" {}", word(step.pass));
  if (step.microbatch >= 0) text.name += fmt::format(" mb {}", step.microbatch);
  text.arguments = fmt::format(R"("step":"{}","pass":"{}","layer":{},"microbatch":{},"iteration":{})", kind, word(step.pass),
                               step.layer, step.microbatch, step.iteration);
  return text;
}

template <class... Pieces>
void TimelineFile::event(const Pieces&... pieces) {
  append_pieces(events_, first_ ? "\n" : ",\n", pieces...);
  first_ = false;
}

/// Whether an operation or message that ends then is still taken.
bool TimelineFile::recording(Cycle end) {
  if (recorded_before_) recorded_before_ = std::min(*recorded_before_, end);
  return !recorded_before_;
}

void TimelineFile::write_events(Cycle end) {
  if (events_.size() > left_) {
    recorded_before_ = end;
  } else {
    file_.write({events_.data(), events_.size()});
    left_ -= events_.size();
    latest_ = std::max(latest_, end);
  }
  events_.clear();
}

}  // namespace wafersim::report
