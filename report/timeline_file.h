#pragma once

#include <fmt/format.h>

#include <array>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "models/hardware.h"
#include "report/gzip_file.h"
#include "sim/measurements.h"
#include "topology/mesh.h"
#include "workloads/trace.h"

namespace wafersim::report {

inline constexpr Bytes kTimelineBytes = 200'000'000;      ///< the bound unless another is chosen
inline constexpr Bytes kLeastTimelineBytes = 64 * 1024;

/// timeline.json.gz: what chosen tiles do, in the Trace Event Format (JSON object form) that Perfetto and Chrome open,
/// written while the simulation runs. docs/results.md, "Timeline", has its tracks and events. Throws IoError.
class TimelineFile {
 public:
  /// What is recorded. All of it must outlive the file.
  struct Run {
    const std::string& scenario;
    const models::HardwareModel& hardware;
    const topology::Mesh& mesh;
    const workloads::Trace& trace;
  };

  /// `tiles`: used ones, whose tracks are shown in this order. `most_bytes`, at least kLeastTimelineBytes, bounds the JSON
  /// text before it is compressed: with the first event that does not fit, recording ends.
  TimelineFile(const std::filesystem::path& path, const Run& run, const std::vector<TileId>& tiles, Bytes most_bytes);

  /// Of a chosen tile; those of an engine ascending.
  void add(const sim::OperationRecord& operation);
  /// Of any tiles, in the order of reception.
  void add(const sim::MessageRecord& message);
  /// What a chosen tile holds from the end of `cycle` on; ascending.
  void add(TileId tile, Cycle cycle, const sim::MemoryLevels& levels);
  /// Ends the file; with how busy links were over time that lead away from chosen tiles, where windows were recorded
  /// (SimulationOptions::record_links).
  void commit(const sim::Measurements& measurements);

  /// Operations and messages that ended before this cycle are recorded, and none that ended after it; empty: all are.
  std::optional<Cycle> recorded_before() const { return recorded_before_; }

 private:
  struct Track {
    std::uint32_t id = 0;  ///< 0: it has no event yet
    Cycle end = 0;         ///< of its last slice
  };
  struct StepText {
    std::uint32_t index = ~std::uint32_t{0};  ///< in the tile's program
    std::string name;
    std::string arguments;  ///< as members of a JSON object
  };
  struct TileTracks {
    const workloads::TileBinding* binding = nullptr;
    std::string name;
    std::vector<Track> engines;  ///< matrix, vector
    std::vector<Track> lanes;    ///< of messages: those on one lane do not overlap
    StepText step{};             ///< that of the latest operation
  };
  struct Time {
    std::array<char, 32> text;  // 20 digits, a point, 9 digits
    std::size_t size = 0;
    operator std::string_view() const { return {text.data(), size}; }
  };

  TileTracks* tracks_of(TileId tile);
  Time time(Cycle cycle) const;
  std::string tail(Cycle cycles, std::optional<Cycle> recorded_before) const;
  std::uint32_t process(std::int32_t stage);
  std::uint32_t announce(Track& track, const TileTracks& tile, std::string_view name, std::size_t order);
  Track& lane(TileTracks& tile, const sim::MessageRecord& message);
  Track& slice(TileTracks& tile, const sim::MessageRecord& message, std::string_view way, std::string_view peer);
  const StepText& step_text(TileTracks& tile, std::uint32_t index);
  template <class... Pieces>
  void event(const Pieces&... pieces);
  bool recording(Cycle end);
  void write_events(Cycle end);
  void write_loads(const sim::Measurements& measurements);
  void write_load(std::size_t place, std::size_t count, std::size_t merged, const sim::Measurements& measurements);

  GzipFile file_;
  std::string scenario_;
  const models::HardwareModel& hardware_;
  const workloads::Trace& trace_;
  const topology::Mesh& mesh_;
  Rational femtoseconds_;               ///< of a cycle
  std::vector<TileTracks> tiles_;
  std::vector<std::uint32_t> index_;    ///< into tiles_, by tile
  std::vector<std::string> tensors_;    ///< as JSON
  std::vector<bool> processes_;         ///< by stage: has been named
  fmt::memory_buffer events_;           ///< of the record that is added
  bool first_ = true;                   ///< nothing is written yet
  std::uint32_t next_track_ = 1;
  std::uint64_t next_arrow_ = 1;
  Bytes left_ = 0;                      ///< for events
  Bytes left_for_loads_ = 0;            ///< besides
  Cycle latest_ = 0;                    ///< end of a record that was written
  std::optional<Cycle> recorded_before_;
};

}  // namespace wafersim::report
