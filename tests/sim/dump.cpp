#include "tests/sim/dump.h"

#include <sstream>

namespace wafersim::test {
namespace {

template <class List>
void put_all(std::ostream& out, const List& list) {
  for (const auto& item : list) out << ' ' << item;
}

void put(std::ostream& out, const sim::CycleBreakdown& cycles) {
  out << " compute " << cycles.compute << " exposed";
  put_all(out, cycles.exposed);
  out << " bubble " << cycles.bubble << " memory_stall " << cycles.memory_stall << " idle " << cycles.idle;
}

void put(std::ostream& out, const sim::TileMeasurement& tile) {
  out << "tile " << tile.tile << " stage " << tile.stage << " group " << tile.group;
  put(out, tile.cycles);
  out << " matrix " << tile.matrix_busy << " vector " << tile.vector_busy << " communicating "
      << tile.communicating << " operations " << tile.operations << " messages " << tile.messages_sent << ' '
      << tile.messages_received << " bytes " << tile.bytes_sent << ' ' << tile.bytes_received << " peaks "
      << tile.peak_sram_bytes << ' ' << tile.peak_dram_bytes << ' ' << tile.peak_bytes << " by_class";
  put_all(out, tile.peak_by_class);
  out << " final " << tile.final_bytes << ' ' << tile.static_bytes << " work " << tile.matrix_flops << ' ' << tile.vector_flops
      << ' ' << tile.core_sram_bytes << ' ' << tile.dram_bytes << " nic " << tile.bytes_injected << ' ' << tile.bytes_ejected
      << '\n';
}

void put(std::ostream& out, const sim::LinkMeasurement& link) {
  out << "link " << link.link << " bytes " << link.bytes << " by_axis";
  put_all(out, link.bytes_by_axis);
  out << " packets " << link.packets << " busy " << link.busy << " queued " << link.queued << '\n';
}

void put(std::ostream& out, const sim::StepMeasurement& step) {
  out << "step " << step.group << ' ' << step.stage << ' ' << step.index << ' ' << to_string(step.kind) << ' '
      << to_string(step.pass) << ' ' << step.layer << ' ' << step.microbatch << ' ' << step.iteration
      << " from " << step.start << " to " << step.end << " durations " << step.shortest << ' ' << step.longest
      << ' ' << std::hexfloat << step.mean << std::defaultfloat << " tiles " << step.tiles << '\n';
}

void put(std::ostream& out, const sim::TileMemory& memory) {
  for (const sim::MemoryRow& row : memory.rows) {
    out << "memory of " << memory.tile << " at " << row.cycle << " window " << row.window << " sram " << row.levels.sram
        << " dram " << row.levels.dram << " total " << row.levels.total << " by_class";
    put_all(out, row.levels.by_class);
    out << '\n';
  }
}

}  // namespace

std::string dump(const sim::Measurements& measurements) {
  std::ostringstream out;
  out << "cycles " << measurements.cycles << " iterations";
  put_all(out, measurements.iteration_ends);
  out << " partial " << measurements.partial << ' ' << measurements.stopped_by << " packets "
      << measurements.packets << " hops " << measurements.packet_hops << " messages " << measurements.messages
      << " flops " << measurements.matrix_flops << '\n';
  for (const auto& tile : measurements.tiles) put(out, tile);
  for (const auto& link : measurements.links) put(out, link);
  for (const auto& step : measurements.steps) put(out, step);
  for (const auto& memory : measurements.memory) put(out, memory);
  return out.str();
}

std::string first_difference(const std::string& a, const std::string& b) {
  if (a == b) return "";
  std::istringstream left(a), right(b);
  std::string one, other;
  while (true) {
    const bool some = static_cast<bool>(std::getline(left, one));
    if (!std::getline(right, other) && !some) return "one ends earlier";
    if (one != other) return one + "\n" + other;
  }
}

}  // namespace wafersim::test
