#include "report/page_data.h"

#include <algorithm>

#include "report/page_columns.h"
#include "sim/measurements.h"
#include "workloads/plan.h"

namespace wafersim::report {
namespace {

std::vector<std::string> axis_names(bool with_none) {
  std::vector<std::string> names;
  for (int i = 0; i < workloads::kAxes + (with_none ? 1 : 0); ++i) {
    names.emplace_back(workloads::to_string(static_cast<workloads::Axis>(i)));
  }
  return names;
}

std::vector<std::string> memory_classes() {
  std::vector<std::string> names;
  for (int i = 0; i < workloads::kMemoryClasses; ++i) {
    names.emplace_back(workloads::to_string(static_cast<workloads::MemoryClass>(i)));
  }
  return names;
}

Json places(const RunTables& run, const CsvTable& table) {
  Json column = Json::array();
  for (std::size_t row = 0; row < table.rows(); ++row) column.push_back(run.place(table, row));
  return column;
}

Json tiles_part(const RunTables& run) {
  const CsvTable& tiles = run.tiles;
  return {{"id", places(run, tiles)},
          {"stage", whole_column(tiles, "stage")},
          {"group", whole_column(tiles, "group")},
          {"cycles", used_columns(tiles, cycle_kinds(), "", "_cycles")},
          {"matrix_busy", whole_column(tiles, "matrix_busy_cycles")},
          {"vector_busy", whole_column(tiles, "vector_busy_cycles")},
          {"communicating", whole_column(tiles, "communicating_cycles")},
          {"bytes_sent", whole_column(tiles, "bytes_sent")},
          {"bytes_received", whole_column(tiles, "bytes_received")},
          {"peak", whole_column(tiles, "peak_bytes")},
          {"energy", energy_column(tiles)},
          {"peak_by_class", used_columns(tiles, memory_classes(), "peak_", "_bytes")}};
}

/// Ranks along the axes that have more than one, in the order of tiles.csv.
Json ranks_part(const RunTables& run) {
  if (!run.ranks) return nullptr;
  const CsvTable& ranks = *run.ranks;
  const std::size_t tile = ranks.column("tile");
  Json part = Json::object();
  for (const std::string& axis : axis_names(false)) {
    const std::size_t column = ranks.column(axis + "_rank");
    std::vector<std::uint64_t> of_tiles(run.tiles.rows());
    for (std::size_t row = 0; row < ranks.rows(); ++row) {
      of_tiles[run.tile_row(ranks.text(row, tile))] = ranks.whole(row, column);
    }
    if (std::any_of(of_tiles.begin(), of_tiles.end(), [](std::uint64_t rank) { return rank != 0; }))
      part[axis] = of_tiles;
  }
  return part;
}

/// A link's number is that of its LinkId: the tile it leaves times eight plus its direction.
Json links_part(const RunTables& run) {
  const CsvTable& links = run.links;
  const std::size_t direction = links.column("direction");
  Json ids = Json::array(), targets = Json::array();
  for (std::size_t row = 0; row < links.rows(); ++row) {
    const auto at = std::find_if(topology::kAllDirections.begin(), topology::kAllDirections.end(), [&](topology::Direction d) {
      return links.text(row, direction) == topology::to_string(d);
    });
    ids.push_back(run.place(links, row) * topology::kDirections +
                  static_cast<std::uint64_t>(at - topology::kAllDirections.begin()));
    targets.push_back(run.target_place(row));
  }
  return {{"id", std::move(ids)},
          {"to", std::move(targets)},
          {"bytes", whole_column(links, "bytes")},
          {"packets", whole_column(links, "packets")},
          {"busy", whole_column(links, "busy_cycles")},
          {"queue", whole_column(links, "queue_cycles")},
          {"energy", energy_column(links)},
          {"by_axis", used_columns(links, axis_names(true), "", "_bytes")}};
}

Json step_cycles_part(const RunTables& run) {
  if (!run.step_cycles) return nullptr;
  const CsvTable& table = *run.step_cycles;
  Json kind = Json::array();
  Json pass = Json::array();
  for (std::size_t row = 0; row < table.rows(); ++row) {
    kind.push_back(table.text(row, table.column("kind")));
    pass.push_back(table.text(row, table.column("pass")));
  }
  return {{"stage", whole_column(table, "stage")},
          {"kind", kind},
          {"pass", pass},
          {"cycles", used_columns(table, cycle_kinds(), "", "_cycles")}};
}

/// [kind, steps, batch, m, k, n, flops, sram_bytes, count, total cycles] of the operations that took longest
/// together.
Json operations_part(const RunTables& run) {
  if (!run.operations) return nullptr;
  constexpr std::size_t kMost = 300;
  const CsvTable& table = *run.operations;
  const std::size_t total = table.column("total_cycles");
  std::vector<std::size_t> order(table.rows());
  for (std::size_t row = 0; row < order.size(); ++row) order[row] = row;
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return table.whole(a, total) > table.whole(b, total);
  });
  order.resize(std::min(order.size(), kMost));
  Json rows = Json::array();
  for (const std::size_t row : order) {
    Json cells = {table.text(row, table.column("kind")), table.text(row, table.column("steps"))};
    for (const char* column : {"batch", "m", "k", "n", "flops", "sram_bytes", "count", "total_cycles"}) {
      cells.push_back(table.index(row, table.column(column)));
    }
    rows.push_back(cells);
  }
  return {{"all", table.rows()}, {"rows", rows}};
}

/// By axis and measure the classes of the histogram: [from, to, messages].
Json latency_part(const RunTables& run) {
  if (!run.latency) return nullptr;
  const CsvTable& table = *run.latency;
  Json part = Json::object();
  for (std::size_t row = 0; row < table.rows(); ++row) {
    const std::string axis(table.text(row, table.column("axis")));
    const std::string measure(table.text(row, table.column("measure")));
    part[axis][measure].push_back({table.whole(row, table.column("from_cycles")),
                                   table.whole(row, table.column("to_cycles")),
                                   table.whole(row, table.column("messages"))});
  }
  return part;
}

/// By link, named by its row among the links: [source, destination, axis, bytes] of its heaviest flows.
Json flows_part(const RunTables& run) {
  if (!run.flows) return nullptr;
  const CsvTable& table = *run.flows;
  Json part = Json::array();
  std::string_view last;
  for (std::size_t row = 0; row < table.rows(); ++row) {
    const std::string_view link = table.text(row, table.column("link"));
    if (part.empty() || link != last) {
      part.push_back({{"link", run.link_row(link)},
                      {"flows", table.whole(row, table.column("link_flows"))},
                      {"bytes", table.whole(row, table.column("link_bytes"))},
                      {"heaviest", Json::array()}});
      last = link;
    }
    part.back()["heaviest"].push_back({run.tile_place(table.text(row, table.column("source"))),
                                       run.tile_place(table.text(row, table.column("destination"))),
                                       table.text(row, table.column("axis")),
                                       table.whole(row, table.column("bytes"))});
  }
  return part;
}

}  // namespace

const std::vector<std::string>& cycle_kinds() {
  static const std::vector<std::string> kinds = [] {
    std::vector<std::string> names;
    for (std::size_t i = 0; i < sim::kCycleKinds; ++i)
      names.push_back(sim::to_string(static_cast<sim::CycleKind>(i)));
    return names;
  }();
  return kinds;
}

Json whole_column(const CsvTable& table, std::string_view name) {
  const std::size_t column = table.column(name);
  Json values = Json::array();
  for (std::size_t row = 0; row < table.rows(); ++row) values.push_back(table.whole(row, column));
  return values;
}

bool is_used(const CsvTable& table, std::string_view name) {
  const std::size_t column = table.column(name);
  for (std::size_t row = 0; row < table.rows(); ++row) {
    if (table.whole(row, column) != 0) return true;
  }
  return false;
}

Json energy_column(const CsvTable& table) {
  constexpr const char* kColumn = "energy_joules";
  if (!table.has(kColumn) || table.rows() == 0) return nullptr;
  const std::size_t column = table.column(kColumn);
  if (table.text(0, column).empty()) return nullptr;
  Json values = Json::array();
  for (std::size_t row = 0; row < table.rows(); ++row) values.push_back(table.number(row, column));
  return values;
}

Json used_columns(const CsvTable& table, const std::vector<std::string>& names, const std::string& prefix,
                  const std::string& suffix) {
  Json columns = Json::object();
  for (const std::string& name : names) {
    const std::string column = prefix + name + suffix;
    if (is_used(table, column)) columns[name] = whole_column(table, column);
  }
  return columns;
}

Json run_part(const RunTables& run) {
  const auto& wafer = run.summary.at("scenario").at("wafer");
  return {{"summary", run.summary},
          {"mesh",
           {{"rows", run.mesh.rows},
            {"cols", run.mesh.cols},
            {"wafer", {{"rows", run.wafer.rows}, {"cols", run.wafer.cols}}},
            {"dead_tiles", wafer.value("dead_tiles", Json::array())}}},
          {"tiles", tiles_part(run)},
          {"links", links_part(run)}};
}

std::string page_data(const RunTables& run) {
  Json page = run_part(run);
  page["ranks"] = ranks_part(run);
  page["steps"] = steps_part(run);
  page["memory"] = memory_part(run);
  page["windows"] = windows_part(run);
  page["step_cycles"] = step_cycles_part(run);
  page["operations"] = operations_part(run);
  page["latency"] = latency_part(run);
  page["spans"] = spans_part(run);
  page["bubbles"] = bubbles_part(run);
  page["flows"] = flows_part(run);
  page["path"] = path_part(run);
  return page.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace wafersim::report
