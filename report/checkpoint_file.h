#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace wafersim::report {

/// The file in a run's directory that keeps its state.
inline constexpr const char* kCheckpointFile = "checkpoint.bin";

/// What a state belongs to: it can be taken up by the same run only.
struct CheckpointOwner {
  std::string scenario;                  ///< resolved, as text
  std::array<std::uint64_t, 2> trace{};  ///< workloads::fingerprint
  bool memory = false;                   ///< memory over time is recorded
};

/// Writes a state (sim::SimulationOptions::on_checkpoint) with its owner, this version of wafersim and a check sum, under a
/// temporary name, and renames the file. Throws IoError.
void write_checkpoint(const std::filesystem::path& path, const CheckpointOwner& owner, std::span<const char> state);

/// Throws IoError when the file cannot be read; Error of status `scenario` with the reason when it is no checkpoint, is
/// damaged, or belongs to another version, scenario, trace or kind of recording.
std::vector<char> read_checkpoint(const std::filesystem::path& path, const CheckpointOwner& owner);

/// Removes the checkpoint of a run that has ended, if there is one. Throws IoError.
void remove_checkpoint(const std::filesystem::path& directory);

}  // namespace wafersim::report
