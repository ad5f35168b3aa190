#pragma once

#include <array>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "models/hardware.h"
#include "workloads/step_builder.h"

namespace wafersim::workloads {

/// Vector work that keeps the engine busy for so many cycles.
Work busy_work(Cycle cycles, const models::HardwareModel& hardware);

/// A step that is nothing but that; none for no cycles.
std::optional<std::uint32_t> launch_step(Trace& trace, Cycle cycles, const models::HardwareModel& hardware);

/// Puts tiles and their programs into a trace, one tile after the other. Equal steps are one template and equal programs one
/// program, so a trace of hundreds of thousands of tiles stays small.
class TilePrograms {
 public:
  explicit TilePrograms(Trace& trace) : trace_(trace) {}

  Trace& trace() { return trace_; }
  /// The tile whose steps come next, in ascending order.
  void begin(TileId tile);
  /// Index of a peer. They are numbered as they are first named, so that equal steps of different tiles are the same template.
  std::uint32_t peer(TileId tile);
  /// A step that begins when the one before it is over. Without a value there is none.
  void step(std::optional<std::uint32_t> step_template) {
    if (step_template) steps_.push_back(*step_template);
  }
  /// `holds`: resident from the beginning.
  void end(const std::array<Bytes, kMemoryClasses>& holds = {});

 private:
  std::uint32_t program();
  std::uint32_t statics(const std::array<Bytes, kMemoryClasses>& holds);

  Trace& trace_;
  TileBinding binding_;
  std::unordered_map<TileId, std::uint32_t> many_peers_;  ///< of a tile that has many: the numbers of all
  std::vector<std::uint32_t> steps_;
  std::map<std::vector<std::uint32_t>, std::uint32_t> programs_;
  std::map<std::array<Bytes, kMemoryClasses>, std::uint32_t> statics_;
};

/// Builds a step of messages that are used as they come in (`streamed`), after what the tile does first.
class StreamedStep {
 public:
  StreamedStep(TilePrograms& programs, std::string name, StreamRelay relay, const Work& task)
      : programs_(programs),
        builder_(programs.trace(), std::move(name)),
        follows_(relay == StreamRelay::cut_through),
        task_(task) {}

  /// What all else of the step waits for. Work of nothing is left out.
  void first_vector(const Work& work);
  void first_matrix(const Work& work);
  /// Taken as it comes in.
  OpId receive(TileId from, std::uint32_t channel, Bytes bytes);
  /// What a use of `received` waits for: with store_and_forward a task of the core that begins when all of it is there.
  std::vector<OpId> use(const std::vector<OpId>& received);
  /// Of own data and what was received (`ready`, as use() returns it), after the send `before`.
  OpId send(const std::vector<TileId>& to, std::uint32_t channel, Bytes bytes, const std::vector<OpId>& ready,
            std::optional<OpId> before = {});
  std::uint32_t finish() { return builder_.finish(); }

 private:
  TilePrograms& programs_;
  StepBuilder builder_;
  bool follows_;
  Work task_;
  std::vector<OpId> start_;
};

}  // namespace wafersim::workloads
