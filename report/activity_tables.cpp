#include "report/activity_tables.h"

#include <algorithm>
#include <string>

#include "report/csv_row.h"

namespace wafersim::report {
namespace {

/// A table that is written row by row and complete with commit().
class Table {
 public:
  Table(const std::filesystem::path& path, const std::vector<std::string>& columns) : file_(path) {
    for (const std::string& column : columns) row_.cell(column);
    row_.end(file_);
  }
  Row& row() { return row_; }
  void end_row() { row_.end(file_); }
  void commit() { file_.commit(); }

 private:
  AtomicFile file_;
  Row row_;
};

std::vector<std::string> with_kinds(std::vector<std::string> columns) {
  for (std::size_t i = 0; i < sim::kCycleKinds; ++i) {
    columns.push_back(sim::to_string(static_cast<sim::CycleKind>(i)) + "_cycles");
  }
  return columns;
}

void kinds(Row& row, const sim::CyclesByKind& cycles) {
  for (const Cycle each : cycles) row.cell(each);
}

Cycle window_cycles(const sim::WindowMeasurement& windows, std::size_t window, Cycle end) {
  return std::min(windows.length, end - window * windows.length);
}

void spans_of(Table& table, const std::string& tile, const char* lane,
              const std::vector<sim::TileSpans::Span>& spans) {
  const bool core = std::string_view(lane) == "core";
  for (const sim::TileSpans::Span& span : spans) {
    table.row().cell(tile).cell(lane);
    table.row().cell(core ? sim::to_string(static_cast<sim::CycleKind>(span.what))
                          : workloads::to_string(static_cast<workloads::Axis>(span.what)));
    table.row().cell(span.from).cell(span.to);
    table.end_row();
  }
}

}  // namespace

void write_tile_windows(const std::filesystem::path& path, const sim::Measurements& measurements,
                        const topology::Mesh& mesh) {
  const sim::WindowMeasurement& windows = *measurements.windows;
  Table table(path, with_kinds({"tile", "start_cycle", "window_cycles"}));
  auto cycles = windows.tiles.begin();
  while (cycles != windows.tiles.end()) {
    const auto tile = static_cast<std::size_t>(cycles - windows.tiles.begin()) / windows.count;
    const std::string name = mesh.name(measurements.tiles[tile].tile);
    for (std::size_t window = 0; window < windows.count; ++window, ++cycles) {
      table.row().cell(name).cell(window * windows.length);
      kinds(table.row().cell(window_cycles(windows, window, measurements.cycles)), *cycles);
      table.end_row();
    }
  }
  table.commit();
}

void write_link_windows(const std::filesystem::path& path, const sim::Measurements& measurements,
                        const topology::Mesh& mesh) {
  const sim::WindowMeasurement& windows = *measurements.windows;
  Table table(path, {"link", "start_cycle", "window_cycles", "busy_cycles", "queue_cycles"});
  auto load = windows.links.begin();
  while (load != windows.links.end()) {
    const auto link = static_cast<std::size_t>(load - windows.links.begin()) / windows.count;
    const std::string name = mesh.link_name(measurements.links[link].link);
    for (std::size_t window = 0; window < windows.count; ++window, ++load) {
      if (load->busy == 0 && load->queued == 0) continue;
      table.row().cell(name).cell(window * windows.length).cell(window_cycles(windows, window, measurements.cycles));
      table.row().cell(load->busy).cell(load->queued);
      table.end_row();
    }
  }
  table.commit();
}

void write_step_cycles(const std::filesystem::path& path, const std::vector<sim::StepCycles>& steps) {
  Table table(path, with_kinds({"stage", "kind", "pass"}));
  for (const sim::StepCycles& step : steps) {
    table.row().cell(step.stage).cell(step.between ? "none" : workloads::to_string(step.kind));
    kinds(table.row().cell(workloads::to_string(step.pass)), step.cycles);
    table.end_row();
  }
  table.commit();
}

void write_operations(const std::filesystem::path& path,
                      const std::vector<sim::OperationMeasurement>& operations) {
  Table table(path, {"kind", "steps", "batch", "m", "k", "n", "flops", "sram_bytes", "count", "total_cycles",
                     "min_cycles", "max_cycles"});
  for (const sim::OperationMeasurement& operation : operations) {
    const bool matrix = operation.kind == workloads::OpKind::matrix;
    const models::GemmShape& gemm = operation.work.gemm;
    table.row().cell(workloads::to_string(operation.kind)).cell(operation.steps);
    for (const std::uint64_t size : {gemm.batch, gemm.m, gemm.k, gemm.n}) {
      matrix ? table.row().cell(size) : table.row().cell("");
    }
    table.row().cell(matrix ? gemm.flops() : operation.work.vector_flops).cell(operation.work.sram_bytes);
    table.row().cell(operation.count).cell(operation.cycles).cell(operation.shortest).cell(operation.longest);
    table.end_row();
  }
  table.commit();
}

void write_latencies(const std::filesystem::path& path, const std::vector<sim::MessageStatistics>& messages) {
  Table table(path, {"axis", "measure", "from_cycles", "to_cycles", "messages"});
  for (const sim::MessageStatistics& axis : messages) {
    for (const bool queue : {false, true}) {
      for (const sim::CycleHistogram::Class& each : (queue ? axis.queued : axis.latency).classes()) {
        table.row().cell(workloads::to_string(axis.axis)).cell(queue ? "queue" : "latency");
        table.row().cell(each.from).cell(each.to).cell(each.count);
        table.end_row();
      }
    }
  }
  table.commit();
}

void write_spans(const std::filesystem::path& path, const std::vector<sim::TileSpans>& tiles,
                 const topology::Mesh& mesh) {
  Table table(path, {"tile", "lane", "what", "start_cycle", "end_cycle"});
  for (const sim::TileSpans& tile : tiles) {
    spans_of(table, mesh.name(tile.tile), "core", tile.core);
    spans_of(table, mesh.name(tile.tile), "messages", tile.messages);
  }
  table.commit();
}

void write_bubbles(const std::filesystem::path& path, const std::vector<sim::GroupBubbles>& groups) {
  Table table(path, {"group", "stage", "start_cycle", "end_cycle"});
  for (const sim::GroupBubbles& group : groups) {
    for (const sim::GroupBubbles::Span& span : group.spans) {
      table.row().cell(group.group).cell(group.stage).cell(span.from).cell(span.to);
      table.end_row();
    }
  }
  table.commit();
}

void write_flows(const std::filesystem::path& path, const std::vector<analysis::LinkFlows>& links,
                 const topology::Mesh& mesh) {
  Table table(path, {"link", "link_flows", "link_bytes", "source", "destination", "axis", "bytes"});
  for (const analysis::LinkFlows& link : links) {
    for (const analysis::Flow& flow : link.heaviest) {
      table.row().cell(mesh.link_name(link.link)).cell(link.flows).cell(link.bytes);
      table.row().cell(mesh.name(flow.source)).cell(mesh.name(flow.destination));
      table.row().cell(workloads::to_string(flow.axis)).cell(flow.bytes);
      table.end_row();
    }
  }
  table.commit();
}

}  // namespace wafersim::report
