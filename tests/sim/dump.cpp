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

void put(std::ostream& out, const sim::CycleHistogram& histogram) {
  for (const auto& each : histogram.classes()) out << ' ' << each.from << ".." << each.to << ": " << each.count;
}

void put(std::ostream& out, const std::vector<sim::TileSpans::Span>& spans) {
  for (const sim::TileSpans::Span& span : spans) out << ' ' << span.from << ".." << span.to << ": " << unsigned{span.what};
}

void put(std::ostream& out, const sim::WindowMeasurement& windows) {
  out << "windows " << windows.count << " of " << windows.length << '\n';
  for (std::size_t i = 0; i < windows.tiles.size(); ++i) {
    out << "window " << i % windows.count << " of used tile " << i / windows.count;
    put_all(out, windows.tiles[i]);
    out << '\n';
  }
  for (std::size_t i = 0; i < windows.links.size(); ++i) {
    out << "window " << i % windows.count << " of live link " << i / windows.count << ' ' << windows.links[i].busy << ' '
        << windows.links[i].queued << '\n';
  }
}

void put(std::ostream& out, const sim::ActivityMeasurement& activity) {
  for (const sim::StepCycles& step : activity.steps) {
    out << "cycles of stage " << step.stage << ' ' << step.between << ' ' << to_string(step.kind) << ' ' << to_string(step.pass);
    put_all(out, step.cycles);
    out << '\n';
  }
  for (const sim::OperationMeasurement& operation : activity.operations) {
    out << "operations " << to_string(operation.kind) << " of " << operation.steps << ' ' << operation.count << ' '
        << operation.cycles << ' ' << operation.shortest << ' ' << operation.longest << '\n';
  }
  for (const sim::MessageStatistics& axis : activity.messages) {
    out << "messages " << to_string(axis.axis) << ' ' << axis.messages << ' ' << axis.bytes << ' ' << axis.latency_sum << ' '
        << axis.queued_sum << " latency";
    put(out, axis.latency);
    out << " queued";
    put(out, axis.queued);
    out << '\n';
  }
  for (const sim::TileSpans& tile : activity.tiles) {
    out << "spans of " << tile.tile << ' ' << tile.complete;
    put(out, tile.core);
    out << "\nmessage spans of " << tile.tile;
    put(out, tile.messages);
    out << '\n';
  }
  for (const sim::GroupBubbles& group : activity.bubbles) {
    out << "bubbles of " << group.group << ' ' << group.stage;
    for (const auto& span : group.spans) out << ' ' << span.from << ".." << span.to;
    out << '\n';
  }
}

void put(std::ostream& out, const sim::PathMeasurement& path) {
  out << "path " << path.complete << '\n';
  for (const sim::PathSegment& segment : path.segments) {
    out << "segment " << segment.from << ' ' << segment.to << ' ' << to_string(segment.kind) << ' ' << to_string(segment.axis) << ' '
        << segment.tile << ' ' << segment.destination << ' ' << segment.step << ' ' << segment.operations << ' ' << segment.computed
        << ' ' << segment.link << ' ' << segment.router_cycles << ' ' << segment.link_cycles << '\n';
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
  if (measurements.windows) put(out, *measurements.windows);
  if (measurements.activity) put(out, *measurements.activity);
  if (measurements.critical_path) put(out, *measurements.critical_path);
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
