#include "report/path_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "report/atomic_file.h"
#include "report/csv_table.h"
#include "report/pieces.h"

namespace wafersim::report {
namespace {

using Json = nlohmann::ordered_json;

Json axes_json(const analysis::PathSummary& summary) {
  Json axes = Json::object();
  for (std::size_t i = 0; i < summary.axes.size(); ++i) {
    const analysis::PathSummary::Axis& axis = summary.axes[i];
    if (axis.wire + axis.queueing == 0) continue;
    axes[workloads::to_string(static_cast<workloads::Axis>(i))] = {{"wire", axis.wire},
                                                                   {"queueing", axis.queueing}};
  }
  return axes;
}

Json steps_json(const analysis::PathSummary& summary) {
  Json steps = Json::array();
  for (const analysis::PathSummary::Step& step : summary.steps) {
    steps.push_back({{"kind", workloads::to_string(step.kind)},
                     {"pass", workloads::to_string(step.pass)},
                     {"compute", step.compute},
                     {"memory_stall", step.memory_stall}});
  }
  return steps;
}

Json links_json(const analysis::PathSummary& summary, const topology::Mesh& mesh) {
  Json links = Json::array();
  for (const analysis::PathSummary::Link& link : summary.links) {
    links.push_back({{"link", mesh.link_name(link.link)}, {"queue", link.queue}, {"room", link.room}});
  }
  return links;
}

Json what_if_json(const analysis::PathSummary& summary) {
  Json list = Json::array();
  for (const analysis::WhatIf& what_if : summary.what_if) {
    list.push_back({{"change", what_if.change.name},
                    {"at_least_cycles", what_if.at_least},
                    {"with_waits_cycles", what_if.with_waits}});
  }
  return list;
}

/// Rows of the columns named in the file; what does not apply is null.
class Rows {
 public:
  Rows(const workloads::Trace& trace, const topology::Mesh& mesh) : trace_(trace), mesh_(mesh), tiles_(mesh.tile_count()) {
    for (const workloads::TileBinding& binding : trace.tiles) tiles_[binding.tile] = {&binding, mesh.name(binding.tile)};
  }

  void append(fmt::memory_buffer& text, const sim::PathSegment& segment) const {
    const Tile& tile = tiles_[segment.tile];
    const bool at_link = segment.kind == sim::PathKind::link_queue || segment.kind == sim::PathKind::link_room;
    const bool wire = segment.kind == sim::PathKind::wire;
    append_pieces(text, "    [", segment.from, ",", segment.to, ",\"", sim::to_string(segment.kind), "\"");
    append_word(text, segment.axis != workloads::Axis::none, workloads::to_string(segment.axis));
    append_pieces(text, ",\"", tile.name, "\",", tile.binding->stage);
    if (sim::is_core(segment.kind)) {
      const workloads::Step& step = trace_.programs[tile.binding->program].steps[segment.step];
      append_pieces(text, ",null,", segment.step, ",\"", workloads::to_string(step.kind), "\",\"", workloads::to_string(step.pass),
                    "\"");
    } else {
      append_pieces(text, ",\"", tiles_[segment.destination].name, "\",null,null,null");
    }
    append_number(text, sim::is_operation(segment.kind), segment.operations);
    append_word(text, at_link, at_link ? mesh_.link_name(segment.link) : "");
    append_number(text, wire, segment.router_cycles);
    append_number(text, wire, segment.link_cycles);
    append_number(text, segment.kind == sim::PathKind::memory_stall, segment.computed);
    text.push_back(']');
  }

 private:
  struct Tile {
    const workloads::TileBinding* binding = nullptr;
    std::string name;
  };

  static void append_word(fmt::memory_buffer& text, bool there, std::string_view word) {
    if (there) {
      append_pieces(text, ",\"", word, "\"");
    } else {
      append_pieces(text, ",null");
    }
  }
  static void append_number(fmt::memory_buffer& text, bool there, std::uint64_t number) {
    if (there) {
      append_pieces(text, ",", number);
    } else {
      append_pieces(text, ",null");
    }
  }

  const workloads::Trace& trace_;
  const topology::Mesh& mesh_;
  std::vector<Tile> tiles_;
};

}  // namespace

std::vector<std::pair<std::string, Cycle>> path_parts(const analysis::PathSummary& summary) {
  std::vector<std::pair<std::string, Cycle>> parts;
  for (std::size_t i = 0; i < summary.by_kind.size(); ++i) {
    const auto kind = static_cast<sim::PathKind>(i);
    if (kind == sim::PathKind::wire) {
      parts.emplace_back("router", summary.router);
      parts.emplace_back("link", summary.link);
      parts.emplace_back("serialization", summary.serialization);
    } else {
      parts.emplace_back(sim::to_string(kind), summary.by_kind[i]);
    }
  }
  return parts;
}

std::vector<sim::PathSegment> read_path(const std::filesystem::path& path) {
  const Json json = Json::parse(read_file(path), nullptr, /*allow_exceptions=*/false);
  std::map<std::string, sim::PathKind> kinds;
  for (std::size_t i = 0; i < sim::kPathKinds; ++i)
    kinds[sim::to_string(static_cast<sim::PathKind>(i))] = static_cast<sim::PathKind>(i);
  std::vector<sim::PathSegment> segments;
  try {
    const auto columns = json.at("columns").get<std::vector<std::string>>();
    for (const Json& row : json.at("segments")) {
      const auto cell = [&](const char* name) -> const Json& {
        return row.at(
            static_cast<std::size_t>(std::find(columns.begin(), columns.end(), name) - columns.begin()));
      };
      const auto cycles = [&](const char* name) {
        return cell(name).is_null() ? Cycle{0} : cell(name).get<Cycle>();
      };
      const auto part = [&](const char* name) {
        const Cycle value = cycles(name);
        if (value > std::numeric_limits<std::uint32_t>::max()) throw IoError(std::string(name) + " beyond 32 bits");
        return static_cast<std::uint32_t>(value);
      };
      sim::PathSegment segment;
      segment.from = cycles("from");
      segment.to = cycles("to");
      segment.kind = kinds.at(cell("kind").get<std::string>());
      segment.router_cycles = part("router_cycles");
      segment.link_cycles = part("link_cycles");
      segment.computed = part("computed_cycles");
      segments.push_back(segment);
    }
  } catch (const std::exception& error) {
    throw IoError(
        fmt::format("cannot use {}: it is not the critical path of a run ({})", path.string(), error.what()));
  }
  return segments;
}

void write_path(const std::filesystem::path& path, const sim::PathMeasurement& measurement,
                const analysis::PathSummary& summary, const workloads::Trace& trace,
                const topology::Mesh& mesh) {
  Json head;
  head["schema_version"] = 1;
  head["cycles"] = summary.cycles;
  head["by_kind"] = Json::object();
  for (const auto& [name, cycles] : path_parts(summary)) head["by_kind"][name] = cycles;
  head["by_axis"] = axes_json(summary);
  head["steps"] = steps_json(summary);
  head["links"] = links_json(summary, mesh);
  head["what_if"] = what_if_json(summary);
  head["columns"] = {"from",       "to",          "kind",          "axis",        "tile",
                     "stage",      "destination", "step",          "step_kind",   "pass",
                     "operations", "link",        "router_cycles", "link_cycles", "computed_cycles"};
  const Rows rows(trace, mesh);
  AtomicFile file(path);
  std::string opened = head.dump(2);
  opened.resize(opened.size() - 2);  // the closing brace
  fmt::memory_buffer text;
  append_pieces(text, opened, ",\n  \"segments\": [\n");
  constexpr std::size_t kChunk = std::size_t{1} << 16;
  for (std::size_t i = 0; i < measurement.segments.size(); ++i) {
    if (i > 0) append_pieces(text, ",\n");
    rows.append(text, measurement.segments[i]);
    if (text.size() < kChunk) continue;
    file.write({text.data(), text.size()});
    text.clear();
  }
  append_pieces(text, "\n  ]\n}\n");
  file.write({text.data(), text.size()});
  file.commit();
}

}  // namespace wafersim::report
