#include "report/path_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "report/atomic_file.h"
#include "report/csv_table.h"

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

/// One segment, as a row of the columns named in the file; what does not apply is null.
void append_row(std::string& text, const sim::PathSegment& segment, const workloads::TileBinding& binding,
                const workloads::Trace& trace, const topology::Mesh& mesh) {
  const bool works = sim::is_core(segment.kind);
  const bool wire = segment.kind == sim::PathKind::wire;
  const bool waits_for_link =
      segment.kind == sim::PathKind::link_queue || segment.kind == sim::PathKind::link_room;
  const auto quoted_or_null = [](bool there, const std::string& word) {
    return there ? "\"" + word + "\"" : std::string("null");
  };
  const auto number_or_null = [](bool there, auto number) {
    return there ? fmt::format("{}", number) : std::string("null");
  };
  const workloads::Step* const step = works ? &trace.programs[binding.program].steps[segment.step] : nullptr;
  fmt::format_to(std::back_inserter(text), "    [{},{},\"{}\",{},\"{}\",{},{},{},{},{},{},{},{},{},{}]",
                 segment.from, segment.to, sim::to_string(segment.kind),
                 quoted_or_null(segment.axis != workloads::Axis::none, workloads::to_string(segment.axis)),
                 mesh.name(segment.tile), binding.stage,
                 quoted_or_null(!works, works ? "" : mesh.name(segment.destination)),
                 number_or_null(works, segment.step),
                 quoted_or_null(works, step == nullptr ? "" : workloads::to_string(step->kind)),
                 quoted_or_null(works, step == nullptr ? "" : workloads::to_string(step->pass)),
                 number_or_null(sim::is_operation(segment.kind), segment.operations),
                 quoted_or_null(waits_for_link, waits_for_link ? mesh.link_name(segment.link) : ""),
                 number_or_null(wire, segment.router_cycles), number_or_null(wire, segment.link_cycles),
                 number_or_null(segment.kind == sim::PathKind::memory_stall, segment.computed));
}

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
      sim::PathSegment segment;
      segment.from = cycles("from");
      segment.to = cycles("to");
      segment.kind = kinds.at(cell("kind").get<std::string>());
      segment.router_cycles = cycles("router_cycles");
      segment.link_cycles = cycles("link_cycles");
      segment.computed = cycles("computed_cycles");
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
  std::map<TileId, const workloads::TileBinding*> bindings;
  for (const workloads::TileBinding& binding : trace.tiles) bindings[binding.tile] = &binding;
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
  // Rows by hand: a path may have very many.
  AtomicFile file(path);
  std::string text = head.dump(2);
  text.resize(text.size() - 2);  // the closing brace
  text += ",\n  \"segments\": [\n";
  constexpr std::size_t kChunk = std::size_t{1} << 16;
  for (std::size_t i = 0; i < measurement.segments.size(); ++i) {
    const sim::PathSegment& segment = measurement.segments[i];
    if (i > 0) text += ",\n";
    append_row(text, segment, *bindings.at(segment.tile), trace, mesh);
    if (text.size() < kChunk) continue;
    file.write(text);
    text.clear();
  }
  file.write(text + "\n  ]\n}\n");
  file.commit();
}

}  // namespace wafersim::report
