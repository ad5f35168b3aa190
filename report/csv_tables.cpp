#include "report/csv_tables.h"

#include <fmt/format.h>

#include <map>
#include <string>

#include "report/atomic_file.h"
#include "report/csv_row.h"

namespace wafersim::report {
namespace {

std::string axis_name(std::size_t axis) { return workloads::to_string(static_cast<workloads::Axis>(axis)); }
std::string class_name(std::size_t memory_class) {
  return workloads::to_string(static_cast<workloads::MemoryClass>(memory_class));
}

void tiles_header(Row& row) {
  for (const char* name : {"tile", "x", "y", "stage", "group", "compute_cycles"}) row.cell(name);
  for (std::size_t i = 0; i < workloads::kAxes; ++i) row.cell(fmt::format("exposed_{}_cycles", axis_name(i)));
  for (const char* name :
       {"bubble_cycles", "memory_stall_cycles", "idle_cycles", "compute_utilization", "matrix_busy_cycles",
        "vector_busy_cycles", "matrix_utilization", "vector_utilization", "communicating_cycles",
        "operations", "messages_sent", "messages_received", "bytes_sent", "bytes_received", "peak_sram_bytes",
        "peak_dram_bytes", "peak_bytes"}) {
    row.cell(name);
  }
  for (std::size_t i = 0; i < workloads::kMemoryClasses; ++i)
    row.cell(fmt::format("peak_{}_bytes", class_name(i)));
  row.cell("static_bytes").cell("final_bytes");
  for (const char* name : {"matrix_flops", "vector_flops", "sram_bytes", "dram_bytes", "nic_bytes", "energy_joules"}) {
    row.cell(name);
  }
}

/// Empty when energy is not modelled.
void energy_cell(Row& row, const std::vector<double>* joules, std::size_t index) {
  joules == nullptr || joules->empty() ? row.cell("") : row.cell((*joules)[index]);
}

void tile_row(Row& row, const sim::TileMeasurement& tile, Cycle cycles, const topology::Mesh& mesh) {
  const topology::Coord at = mesh.coord(tile.tile);
  row.cell(mesh.name(tile.tile)).cell(at.x).cell(at.y).cell(tile.stage).cell(tile.group);
  row.cell(tile.cycles.compute);
  for (const Cycle exposed : tile.cycles.exposed) row.cell(exposed);
  row.cell(tile.cycles.bubble).cell(tile.cycles.memory_stall).cell(tile.cycles.idle);
  row.fraction(tile.cycles.compute, cycles).cell(tile.matrix_busy).cell(tile.vector_busy);
  row.fraction(tile.matrix_busy, cycles).fraction(tile.vector_busy, cycles).cell(tile.communicating);
  row.cell(tile.operations).cell(tile.messages_sent).cell(tile.messages_received);
  row.cell(tile.bytes_sent).cell(tile.bytes_received);
  row.cell(tile.peak_sram_bytes).cell(tile.peak_dram_bytes).cell(tile.peak_bytes);
  for (const Bytes peak : tile.peak_by_class) row.cell(peak);
  row.cell(tile.static_bytes).cell(tile.final_bytes);
  const Bytes nic = tile.bytes_injected + tile.bytes_ejected;
  row.cell(tile.matrix_flops).cell(tile.vector_flops).cell(tile.core_sram_bytes + nic).cell(tile.dram_bytes).cell(nic);
}

void links_header(Row& row) {
  for (const char* name : {"link", "x", "y", "direction", "bytes"}) row.cell(name);
  for (std::size_t i = 0; i <= workloads::kAxes; ++i) row.cell(fmt::format("{}_bytes", axis_name(i)));
  for (const char* name : {"packets", "busy_cycles", "utilization", "queue_cycles", "energy_joules"}) row.cell(name);
}

void link_row(Row& row, const sim::LinkMeasurement& link, Cycle cycles, const topology::Mesh& mesh) {
  const topology::Coord from = mesh.coord(topology::Mesh::link_source(link.link));
  row.cell(mesh.link_name(link.link)).cell(from.x).cell(from.y);
  row.cell(topology::to_string(topology::Mesh::link_direction(link.link))).cell(link.bytes);
  for (const Bytes bytes : link.bytes_by_axis) row.cell(bytes);
  row.cell(link.packets).cell(link.busy).fraction(link.busy, cycles).cell(link.queued);
}

void step_row(Row& row, const sim::StepMeasurement& step) {
  row.cell(step.group).cell(step.stage).cell(step.index).cell(step.iteration);
  row.cell(workloads::to_string(step.kind)).cell(workloads::to_string(step.pass));
  row.index(step.layer).index(step.microbatch).cell(step.tiles);
  row.cell(step.start);
  step.first_compute == kNever ? row.cell("") : row.cell(step.first_compute);
  row.cell(step.end).cell(step.end - step.start);
  row.cell(step.shortest).mean(step.mean).cell(step.longest);
}

}  // namespace

void write_tiles(const std::filesystem::path& path, const sim::Measurements& measurements, const topology::Mesh& mesh,
                 const std::optional<analysis::EnergySummary>& energy) {
  AtomicFile file(path);
  Row row;
  tiles_header(row);
  row.end(file);
  for (std::size_t i = 0; i < measurements.tiles.size(); ++i) {
    tile_row(row, measurements.tiles[i], measurements.cycles, mesh);
    energy_cell(row, energy ? &energy->tiles : nullptr, i);
    row.end(file);
  }
  file.commit();
}

void write_ranks(const std::filesystem::path& path, const workloads::PlanSpec& plan, const workloads::Mapping& mapping,
                 const topology::Mesh& mesh) {
  std::map<TileId, workloads::Ranks> ranks;
  workloads::Ranks at;
  // Every combination of ranks, counted like the digits of a number.
  for (bool more = true; more;) {
    ranks[mapping.tile(at)] = at;
    more = false;
    for (std::size_t i = 0; i < workloads::kAxes && !more; ++i) {
      const auto axis = static_cast<workloads::Axis>(i);
      more = ++at.at(axis) < plan.degree(axis);
      if (!more) at.at(axis) = 0;
    }
  }
  AtomicFile file(path);
  Row row;
  row.cell("tile");
  for (std::size_t i = 0; i < workloads::kAxes; ++i) row.cell(fmt::format("{}_rank", axis_name(i)));
  row.end(file);
  for (const auto& [tile, its_ranks] : ranks) {
    row.cell(mesh.name(tile));
    for (std::size_t i = 0; i < workloads::kAxes; ++i) row.cell(its_ranks.at(static_cast<workloads::Axis>(i)));
    row.end(file);
  }
  file.commit();
}

void write_links(const std::filesystem::path& path, const sim::Measurements& measurements, const topology::Mesh& mesh,
                 const std::optional<analysis::EnergySummary>& energy) {
  AtomicFile file(path);
  Row row;
  links_header(row);
  row.end(file);
  for (std::size_t i = 0; i < measurements.links.size(); ++i) {
    link_row(row, measurements.links[i], measurements.cycles, mesh);
    energy_cell(row, energy ? &energy->links : nullptr, i);
    row.end(file);
  }
  file.commit();
}

void write_steps(const std::filesystem::path& path, const sim::Measurements& measurements) {
  AtomicFile file(path);
  Row row;
  for (const char* name :
       {"group", "stage", "step", "iteration", "kind", "pass", "layer", "microbatch", "tiles", "start_cycle", "compute_cycle",
        "end_cycle", "span_cycles", "min_cycles", "mean_cycles", "max_cycles"}) {
    row.cell(name);
  }
  row.end(file);
  for (const sim::StepMeasurement& step : measurements.steps) {
    step_row(row, step);
    row.end(file);
  }
  file.commit();
}

void write_memory(const std::filesystem::path& path, const sim::Measurements& measurements,
                  const topology::Mesh& mesh) {
  AtomicFile file(path);
  Row row;
  for (const char* name : {"tile", "cycle", "window_cycles"}) row.cell(name);
  for (std::size_t i = 0; i < workloads::kMemoryClasses; ++i) row.cell(fmt::format("{}_bytes", class_name(i)));
  for (const char* name : {"sram_bytes", "dram_bytes", "total_bytes"}) row.cell(name);
  row.end(file);
  for (const sim::TileMemory& tile : measurements.memory) {
    for (const sim::MemoryRow& each : tile.rows) {
      row.cell(mesh.name(tile.tile)).cell(each.cycle).cell(each.window);
      for (const Bytes bytes : each.levels.by_class) row.cell(bytes);
      row.cell(each.levels.sram).cell(each.levels.dram).cell(each.levels.total);
      row.end(file);
    }
  }
  file.commit();
}

}  // namespace wafersim::report
