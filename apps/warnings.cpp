#include "apps/warnings.h"

#include <fmt/format.h>

#include "base/text.h"
#include "report/check_report.h"

namespace wafersim::apps {
namespace {

/// A router's buffers are a small part of a tile. More than this share of its SRAM is not a router that
/// anybody builds: the packets, not the hardware, decided on the size.
constexpr Bytes kSmallestSramPerBuffers = 8;

std::string buffer_warning(const PreparedRun& run) {
  const models::HardwareModel& hardware = run.hardware;
  const auto channels = static_cast<Bytes>(hardware.virtual_channels);
  const topology::Mesh& mesh = run.mesh;
  const int inputs = mesh.directions();
  // Tiles that share a router share its buffers.
  const auto sharing = static_cast<Bytes>(mesh.concentration().size());
  const Bytes buffers = static_cast<Bytes>(inputs) * channels * hardware.vc_buffer_bytes / sharing;
  if (hardware.fidelity != models::Fidelity::packet ||
      buffers <= hardware.sram_capacity / kSmallestSramPerBuffers) {
    return {};
  }
  return fmt::format(
      "packets of {} need {} of router buffers for every tile ({} inputs x {} virtual channels x {}{}), which "
      "has {} of SRAM. "
      "No such router is built: with its smaller buffers a blocked packet would hold the links behind it as "
      "well, so the "
      "simulated contention is milder than the real one. Set network.packet_bytes to the size of the buffers "
      "of a real "
      "tile to see it; the run then takes longer.",
      human_bytes(hardware.packet_bytes), human_bytes(buffers), inputs, channels,
      human_bytes(hardware.vc_buffer_bytes), sharing == 1 ? "" : fmt::format(", shared by {} tiles", sharing),
      human_bytes(hardware.sram_capacity));
}

std::string memory_warning(const PreparedRun& run) {
  const workloads::MemoryBound& memory = run.plan.memory;
  if (!memory.overflow) return {};
  return fmt::format("the plan may not fit: {}. The run ends with an error if a tile really overflows.",
                     report::overflow_text(memory, run.mesh.name(memory.overflow->tile)));
}

}  // namespace

std::vector<std::string> warnings_of(const PreparedRun& run) {
  std::vector<std::string> warnings;
  for (std::string& warning : std::vector{buffer_warning(run), memory_warning(run)}) {
    if (!warning.empty()) warnings.push_back(std::move(warning));
  }
  return warnings;
}

}  // namespace wafersim::apps
