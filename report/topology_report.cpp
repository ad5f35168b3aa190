#include "report/topology_report.h"

#include <fmt/format.h>

#include <cmath>

#include "base/text.h"
#include "report/json_blocks.h"
#include "report/terminal_canvas.h"

namespace wafersim::report {
namespace {

using Json = nlohmann::ordered_json;
using topology::LoadKind;
using topology::Mesh;
using topology::NetworkFacts;

/// An integer where it is one, else the nearest number.
Json number(const Rational& value) {
  return value.is_integer() ? Json(value.num()) : Json(value.to_double());
}

Json optional_number(const std::optional<Rational>& value) { return value ? number(*value) : Json(nullptr); }

const char* kind_name(LoadKind kind) {
  switch (kind) {
    case LoadKind::exact:
      return "fixed";
    case LoadKind::expected:
      return "drawn";
    case LoadKind::even_split:
      return "adaptive";
  }
  return "";
}

std::vector<std::string> dead_tiles(const Mesh& mesh) {
  std::vector<std::string> names;
  for (TileId tile = 0; tile < mesh.tile_count(); ++tile) {
    if (!mesh.alive(tile)) names.push_back(mesh.name(tile));
  }
  return names;
}

/// Those between live tiles; both directions.
std::vector<std::string> dead_links(const Mesh& mesh) {
  std::vector<std::string> names;
  for (topology::LinkId link = 0; link < mesh.link_slots(); ++link) {
    const TileId source = Mesh::link_source(link),
                 target = mesh.neighbour(source, Mesh::link_direction(link));
    if (target == kNoTile || mesh.link_alive(link)) continue;
    if (mesh.alive(source) && mesh.alive(target)) names.push_back(mesh.link_name(link));
  }
  return names;
}

std::string cut_name(const topology::StraightCut& cut) {
  return fmt::format("{} {} and {}", cut.between_columns ? "columns" : "rows", cut.before, cut.before + 1);
}

const char* to_string(topology::LinkKind kind) {
  switch (kind) {
    case topology::LinkKind::plain:
      return "plain";
    case topology::LinkKind::folded:
      return "folded";
    case topology::LinkKind::wrap:
      return "wrap";
    case topology::LinkKind::wafer:
      return "wafer";
    case topology::LinkKind::express:
      return "express";
  }
  return "";
}

/// Live links of each class.
std::vector<std::uint64_t> links_of_classes(const Mesh& mesh) {
  std::vector<std::uint64_t> counts(mesh.link_classes().size(), 0);
  for (topology::LinkId link = 0; link < mesh.link_slots(); ++link) {
    if (mesh.link_alive(link)) ++counts[mesh.link_class(link)];
  }
  return counts;
}

Json link_class_block(const TopologyReport& report) {
  Json classes = Json::array();
  const std::vector<std::uint64_t> counts = links_of_classes(report.mesh);
  for (std::size_t i = 0; i < counts.size(); ++i) {
    if (counts[i] == 0) continue;
    const topology::LinkClass& link_class = report.mesh.link_classes()[i];
    classes.push_back({{"kind", to_string(link_class.kind)},
                       {"reticle_borders", link_class.borders},
                       {"tiles", link_class.tiles},
                       {"live_links", counts[i]},
                       {"bytes_per_cycle", number(report.links[i].bytes_per_cycle)},
                       {"latency_cycles", report.links[i].cycles}});
  }
  return classes;
}

Json mesh_block(const TopologyReport& report) {
  const Mesh& mesh = report.mesh;
  const NetworkFacts& facts = report.facts;
  return {{"topology", mesh.topology_name()},
          {"rows", mesh.rows()},
          {"cols", mesh.cols()},
          {"tiles", facts.tiles},
          {"live_tiles", facts.live_tiles},
          {"links", facts.links},
          {"live_links", facts.live_links},
          {"link_classes", link_class_block(report)},
          {"dead_tiles", dead_tiles(mesh)},
          {"dead_links", dead_links(mesh)}};
}

Json distance_block(const NetworkFacts& facts) {
  if (!facts.distances) return nullptr;
  return {{"diameter_hops", facts.distances->diameter},
          {"mean_hops", optional_number(facts.distances->mean)},
          {"mean_hops_without_self", optional_number(facts.distances->mean_of_others)},
          {"parts", facts.distances->parts}};
}

Rational bisection_rate(const TopologyReport& report) {
  return report.links.front().bytes_per_cycle * report.facts.bisection->rate;
}

Json bisection_block(const TopologyReport& report) {
  if (!report.facts.bisection) return nullptr;
  const Rational rate = bisection_rate(report);
  return {{"between", cut_name(*report.facts.bisection)},
          {"links", report.facts.bisection->links},
          {"bytes_per_cycle", number(rate)},
          {"bytes_per_second", number(rate * report.clock.hertz)}};
}

Json routing_block(const NetworkFacts& facts) {
  Json channels = Json::array();
  for (unsigned c = 0; c < facts.vc_classes; ++c) {
    const topology::VcRange range = topology::vcs_of_class(c, facts.vc_classes, facts.virtual_channels);
    channels.push_back({{"first", range.first}, {"count", range.count}});
  }
  return {{"name", facts.routing},
          {"kind", kind_name(facts.loads)},
          {"virtual_channels", facts.virtual_channels},
          {"vc_classes", facts.vc_classes},
          {"vcs_of_class", channels}};
}

Json dependency_block(const TopologyReport& report) {
  const topology::DependencyVerdict& verdict = report.facts.dependencies;
  Json cycle = Json::array();
  for (const topology::Channel& channel : verdict.cycle)
    cycle.push_back({{"link", report.mesh.link_name(channel.link)}, {"vc_class", channel.vc_class}});
  return {{"classes", verdict.classes},
          {"channels", verdict.channels},
          {"dependencies", verdict.dependencies},
          {"acyclic", verdict.acyclic()},
          {"cycle", cycle}};
}

Json uniform_block(const NetworkFacts& facts) {
  if (!facts.uniform) return nullptr;
  return {{"bound_only", facts.uniform->bound},
          {"saturation_with_self", number(facts.uniform->with_self)},
          {"saturation_without_self", number(facts.uniform->without_self)}};
}

double mean_hops(const topology::TrafficFacts& traffic) {
  return traffic.byte_hops.to_double() / static_cast<double>(traffic.bytes);
}

Json traffic_block(const TopologyReport& report) {
  if (!report.facts.traffic) return nullptr;
  const topology::TrafficFacts& traffic = *report.facts.traffic;
  Json hottest = Json::array();
  for (const topology::LinkLoad& load : traffic.hottest)
    hottest.push_back({{"link", report.mesh.link_name(load.link)}, {"bytes", number(load.bytes)}});
  return {{"loads", topology::to_string(report.facts.loads)},
          {"pairs", traffic.pairs},
          {"bytes", traffic.bytes},
          {"byte_hops", number(traffic.byte_hops)},
          {"mean_hops", mean_hops(traffic)},
          {"max_link_bytes", number(traffic.largest)},
          {"mean_link_bytes", number(traffic.mean)},
          {"max_link_bytes_bound", traffic.bound},
          {"hotspots", hottest}};
}

std::string row(const std::string& label, const std::string& value) {
  return fmt::format("{:<25}{}\n", label, value);
}

std::string decimal(const Rational& value) {
  return value.is_integer() ? human_count(static_cast<std::uint64_t>(value.num()))
                            : fmt::format("{:.4g}", value.to_double());
}

std::string bytes_text(const Rational& bytes) {
  return human_bytes(static_cast<Bytes>(std::llround(bytes.to_double())));
}

std::string counted(const char* one, const char* many, std::uint64_t count) {
  return human_count(count) + " " + (count == 1 ? one : many);
}

std::string link_class_rows(const TopologyReport& report) {
  std::string text;
  const std::vector<std::uint64_t> counts = links_of_classes(report.mesh);
  for (std::size_t i = 0; i < counts.size(); ++i) {
    if (counts[i] == 0) continue;
    const topology::LinkClass& link_class = report.mesh.link_classes()[i];
    const auto borders = static_cast<std::uint64_t>(link_class.borders);
    const std::string over = borders == 0 ? "" : " over " + counted("reticle border", "reticle borders", borders);
    text += row(fmt::format("  {} links", to_string(link_class.kind)),
                fmt::format("{} of {}B/s and {}{}", human_count(counts[i]),
                            with_prefix((report.links[i].bytes_per_cycle * report.clock.hertz).to_double()),
                            counted("cycle", "cycles", report.links[i].cycles), over));
  }
  return text;
}

std::string mesh_rows(const TopologyReport& report) {
  const NetworkFacts& facts = report.facts;
  std::string text = row(report.mesh.topology_name(),
                         fmt::format("{}, {} and {}", topology::to_string(report.mesh.shape()),
                                             counted("tile", "tiles", facts.tiles),
                                             counted("directed link", "directed links", facts.links)));
  if (facts.live_links < facts.links || facts.live_tiles < facts.tiles) {
    text += row("  dead",
                fmt::format("{} and {}", counted("tile", "tiles", facts.tiles - facts.live_tiles),
                            counted("directed link", "directed links", facts.links - facts.live_links)));
  }
  if (!report.mesh.uniform()) text += link_class_rows(report);
  return text;
}

std::string distance_rows(const NetworkFacts& facts) {
  if (!facts.distances) return row("diameter", "not searched on a mesh of this size with faults");
  std::string text;
  if (facts.distances->parts > 1) {
    text += row("connected parts",
                fmt::format("{}; distances are within them", human_count(facts.distances->parts)));
  }
  text += row("diameter", counted("hop", "hops", static_cast<std::uint64_t>(facts.distances->diameter)));
  if (!facts.distances->mean_of_others) return text;
  return text + row("average distance",
                    fmt::format("{} hops, {} with pairs of a tile and itself",
                                decimal(*facts.distances->mean_of_others), decimal(*facts.distances->mean)));
}

std::string bisection_row(const TopologyReport& report) {
  if (!report.facts.bisection) return {};
  const Rational rate = bisection_rate(report);
  return row("bisection", fmt::format("between {}: {} and {}B/s each way", cut_name(*report.facts.bisection),
                                      counted("link", "links", report.facts.bisection->links),
                                      with_prefix((rate * report.clock.hertz).to_double())));
}

std::string routing_row(const NetworkFacts& facts) {
  std::string classes;
  if (facts.vc_classes > facts.virtual_channels) {
    classes = fmt::format("; {} classes share {}", facts.vc_classes,
                          counted("virtual channel", "virtual channels", facts.virtual_channels));
  } else if (facts.vc_classes > 1) {
    std::vector<std::string> words;
    for (unsigned c = 0; c < facts.vc_classes; ++c) {
      const topology::VcRange range = topology::vcs_of_class(c, facts.vc_classes, facts.virtual_channels);
      const unsigned last = range.first + range.count - 1;
      words.push_back(range.count == 1 ? fmt::format("{}", last)
                                       : fmt::format("{} to {}", range.first, last));
    }
    classes = fmt::format("; classes of virtual channels: {}", join(words, " and "));
  }
  return row("routing", fmt::format("{}, {}{}", facts.routing, kind_name(facts.loads), classes));
}

std::string dependency_row(const TopologyReport& report) {
  const topology::DependencyVerdict& verdict = report.facts.dependencies;
  const std::string size = fmt::format("{}, {}", counted("channel", "channels", verdict.channels),
                                       counted("dependency", "dependencies", verdict.dependencies));
  if (verdict.acyclic()) return row("dependency graph", size + ": acyclic, no deadlock");
  return row("dependency graph", size + ": a cycle") + "  " + topology::cycle_text(verdict, report.mesh) +
         "\n";
}

std::string uniform_row(const NetworkFacts& facts) {
  if (!facts.uniform) return row("uniform traffic", "no saturation: " + facts.no_uniform);
  return row("uniform traffic",
             fmt::format("saturates at {}{} of a link's bandwidth for each tile ({} without "
                         "traffic of a tile to itself)",
                         facts.uniform->bound ? "no more than " : "", decimal(facts.uniform->with_self),
                         decimal(facts.uniform->without_self)));
}

const char* loads_text(LoadKind kind) {
  switch (kind) {
    case LoadKind::exact:
      return "of these routes, to the byte";
    case LoadKind::expected:
      return "mean over the random choices";
    case LoadKind::even_split:
      return "with packets split evenly over what is permitted; the run decides";
  }
  return "";
}

std::string traffic_rows(const TopologyReport& report) {
  const NetworkFacts& facts = report.facts;
  if (!facts.blocked.empty()) return row("traffic", "blocked: " + facts.blocked);
  if (!facts.traffic) return row("traffic", "none");
  const topology::TrafficFacts& traffic = *facts.traffic;
  std::string text =
      row("traffic", fmt::format("{} between {} of tiles, {:.4g} hops on average", human_bytes(traffic.bytes),
                                 counted("pair", "pairs", traffic.pairs), mean_hops(traffic)));
  text += row("  bytes x hops", bytes_text(traffic.byte_hops));
  text += row("link loads", loads_text(facts.loads));
  text += row("  largest", bytes_text(traffic.largest));
  text += row("  mean of live links", bytes_text(traffic.mean));
  text += row("  lower bound", human_bytes(traffic.bound) + " on some link, whatever the routes");
  text += row("hottest links", "");
  for (const topology::LinkLoad& load : traffic.hottest)
    text += row("  " + report.mesh.link_name(load.link), bytes_text(load.bytes));
  return text;
}

/// Lines without text have no blanks at their end.
std::string trimmed(const std::string& text) {
  std::string result;
  for (const char c : text) {
    if (c == '\n') result.erase(result.find_last_not_of(' ') + 1);
    result += c;
  }
  return result;
}

}  // namespace

std::string topology_json(const TopologyReport& report) {
  const NetworkFacts& facts = report.facts;
  const Json json = {{"schema_version", 1},
                     {"name", report.scenario},
                     {"mesh", mesh_block(report)},
                     {"distance", distance_block(facts)},
                     {"bisection", bisection_block(report)},
                     {"routing", routing_block(facts)},
                     {"dependency_graph", dependency_block(report)},
                     {"uniform_traffic", uniform_block(facts)},
                     {"traffic", traffic_block(report)}};
  return json.dump(2) + "\n";
}

std::string topology_text(const TopologyReport& report) {
  return trimmed(mesh_rows(report) + distance_rows(report.facts) + bisection_row(report) +
                 routing_row(report.facts) + dependency_row(report) + uniform_row(report.facts) +
                 traffic_rows(report));
}

}  // namespace wafersim::report
