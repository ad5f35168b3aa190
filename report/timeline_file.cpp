#include "report/timeline_file.h"

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>

#include "base/error.h"

namespace wafersim::report {
namespace {

constexpr std::uint32_t kNotChosen = ~std::uint32_t{0};
constexpr std::size_t kEngineTracks = 2;
/// Tracks of a tile are shown before those of the next.
constexpr std::size_t kOrdersOfTile = std::size_t{1} << 12;

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
  file_.write(head);
}

void TimelineFile::add(const sim::OperationRecord& operation) {
  if (!recording(operation.end)) return;
  TileTracks* const tile = tracks_of(operation.tile);
  require_invariant(tile != nullptr, "an operation of a tile that the timeline does not show");
  const bool matrix = operation.kind == workloads::OpKind::matrix;
  Track& track = tile->engines[matrix ? 0 : 1];
  announce(track, *tile, matrix ? "matrix" : "vector", matrix ? 0 : 1);
  const workloads::Step& step = trace_.programs[tile->binding->program].steps[operation.step];
  std::string kind = workloads::to_string(operation.kind);
  if (operation.kind == workloads::OpKind::reduce) kind += std::string(" ") + workloads::to_string(operation.axis);
  event(R"({{"ph":"X","pid":{},"tid":{},"ts":{},"dur":{},"name":"{}: {}","cat":"{}","args":{{"step":"{}","pass":"{}",)"
        R"("layer":{},"microbatch":{},"iteration":{},"start_cycle":{},"cycles":{}}}}})",
        process(tile->binding->stage), track.id, time(operation.start), time(operation.end - operation.start),
        step_name(step), kind, workloads::to_string(operation.kind), workloads::to_string(step.kind), word(step.pass),
        step.layer, step.microbatch, step.iteration, operation.start, operation.end - operation.start);
  write_events(operation.end);
}

void TimelineFile::add(const sim::MessageRecord& message) {
  TileTracks* const source = tracks_of(message.source);
  TileTracks* const destination = tracks_of(message.destination);
  if (source == nullptr && destination == nullptr) return;
  if (!recording(message.received)) return;
  const char* const axis = workloads::to_string(message.axis);
  if (source == destination) {
    slice(*source, message, fmt::format("{} to itself", axis));
    return write_events(message.received);
  }
  const Track* from = nullptr;
  const Track* to = nullptr;
  if (source != nullptr) from = &slice(*source, message, fmt::format("{} to {}", axis, mesh_.name(message.destination)));
  if (destination != nullptr) to = &slice(*destination, message, fmt::format("{} from {}", axis, mesh_.name(message.source)));
  // An arrow begins and ends within slices, which do not have the instant at their end.
  if (from != nullptr && to != nullptr && message.received > message.posted) {
    event(R"({{"ph":"s","pid":{},"tid":{},"ts":{},"id":{},"name":"{}","cat":"{}"}})", process(source->binding->stage), from->id,
          time(message.posted), next_arrow_, axis, axis);
    event(R"({{"ph":"f","bp":"e","pid":{},"tid":{},"ts":{},"id":{},"name":"{}","cat":"{}"}})",
          process(destination->binding->stage), to->id, time(message.received - 1), next_arrow_, axis, axis);
    ++next_arrow_;
  }
  write_events(message.received);
}

void TimelineFile::add(TileId id, Cycle cycle, const sim::MemoryLevels& levels) {
  if (recorded_before_) return;
  const TileTracks* const tile = tracks_of(id);
  require_invariant(tile != nullptr, "memory of a tile that the timeline does not show");
  const std::string dram = hardware_.dram_capacity == 0 ? "" : fmt::format(",\"dram\":{}", levels.dram);
  event(R"({{"ph":"C","pid":{},"ts":{},"name":"{} memory","args":{{"sram":{}{}}}}})", process(tile->binding->stage), time(cycle),
        tile->name, levels.sram, dram);
  write_events(std::max(cycle, latest_));  // a level is told of when it ends
}

void TimelineFile::commit(Cycle cycles) {
  file_.write(tail(cycles, recorded_before_));
  file_.commit();
}

TimelineFile::TileTracks* TimelineFile::tracks_of(TileId tile) {
  const std::uint32_t index = index_[tile];
  return index == kNotChosen ? nullptr : &tiles_[index];
}

/// In microseconds, exact to the femtosecond.
std::string TimelineFile::time(Cycle cycle) const {
  __extension__ using Wide = unsigned __int128;
  constexpr Wide kMicrosecond = 1'000'000'000;
  const auto num = static_cast<Wide>(femtoseconds_.num());
  const auto den = static_cast<Wide>(femtoseconds_.den());
  const Wide total = (cycle * num + den / 2) / den;
  std::string text = fmt::format("{}.{:09}", static_cast<std::uint64_t>(total / kMicrosecond), static_cast<std::uint64_t>(total % kMicrosecond));
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text;
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
  event(R"({{"ph":"M","pid":{},"name":"process_name","args":{{"name":"stage {}"}}}})", pid, stage);
  event(R"({{"ph":"M","pid":{},"name":"process_sort_index","args":{{"sort_index":{}}}}})", pid, stage);
  return pid;
}

std::uint32_t TimelineFile::announce(Track& track, const TileTracks& tile, const std::string& name, std::size_t order) {
  if (track.id != 0) return track.id;
  track.id = next_track_++;
  const std::uint32_t pid = process(tile.binding->stage);
  const std::size_t first = static_cast<std::size_t>(&tile - tiles_.data()) * kOrdersOfTile;
  event(R"({{"ph":"M","pid":{},"tid":{},"name":"thread_name","args":{{"name":"{} {}"}}}})", pid, track.id, tile.name, name);
  event(R"({{"ph":"M","pid":{},"tid":{},"name":"thread_sort_index","args":{{"sort_index":{}}}}})", pid, track.id,
        first + std::min(order, kOrdersOfTile - 1));
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

TimelineFile::Track& TimelineFile::slice(TileTracks& tile, const sim::MessageRecord& message, const std::string& name) {
  Track& track = lane(tile, message);
  const auto number = static_cast<std::size_t>(&track - tile.lanes.data());
  announce(track, tile, fmt::format("nic {}", number), kEngineTracks + number);
  event(R"({{"ph":"X","pid":{},"tid":{},"ts":{},"dur":{},"name":"{}","cat":"{}","args":{{"tensor":{},"bytes":{},)"
        R"("start_cycle":{},"cycles":{},"inject_cycle":{},"queue_cycles":{}}}}})",
        process(tile.binding->stage), track.id, time(message.posted), time(message.received - message.posted), name,
        workloads::to_string(message.axis), tensors_[message.tensor], message.bytes, message.posted,
        message.received - message.posted, message.injected, message.queued);
  return track;
}

std::string TimelineFile::step_name(const workloads::Step& step) const {
  std::string name = workloads::to_string(step.kind);
  if (step.layer >= 0) name += fmt::format(" {}", step.layer);
  if (step.pass != workloads::Pass::none) name += fmt::format(" {}", word(step.pass));
  if (step.microbatch >= 0) name += fmt::format(" mb {}", step.microbatch);
  return name;
}

template <class... Values>
void TimelineFile::event(fmt::format_string<Values...> format, Values&&... values) {
  events_.append(std::string_view(first_ ? "\n" : ",\n"));
  first_ = false;
  fmt::format_to(std::back_inserter(events_), format, std::forward<Values>(values)...);
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
