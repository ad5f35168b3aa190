#include "analysis/critical_path.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/error.h"

namespace wafersim::analysis {
namespace {

using sim::PathKind;
using sim::PathSegment;

constexpr std::size_t index_of(PathKind kind) { return static_cast<std::size_t>(kind); }

Cycle length_of(const PathSegment& segment) { return segment.to - segment.from; }

/// What is left of `cycles` when they pass `factor` times as fast, rounded down.
Cycle shortened(Cycle cycles, const Rational& factor) {
  __extension__ using Wide = unsigned __int128;
  return static_cast<Cycle>(Wide{cycles} * static_cast<std::uint64_t>(factor.den()) /
                            static_cast<std::uint64_t>(factor.num()));
}

/// What is left of the stall of an operation that took max(compute cycles, memory cycles), the latter for so
/// long.
Cycle least_stall(const PathSegment& stall, const MachineChange& change) {
  const Cycle moves = shortened(stall.computed + length_of(stall), change.memory);
  const Cycle computes = shortened(stall.computed, change.compute) + (change.compute == Rational(1) ? 0 : 1);
  return moves - std::min(moves, computes);
}

MachineChange change_of(const char* name, Rational MachineChange::*part, const Rational& factor) {
  MachineChange change;
  change.name = std::string(name) + " " + factor.to_string() + "x";
  change.*part = factor;
  return change;
}

[[noreturn]] void refuse_change(const std::string& text) {
  throw Error(ExitStatus::scenario,
              "'" + text +
                  "' is no change of a machine; valid: 'links 2x', 'compute 2x', 'memory 2x' with any "
                  "factor above 0, 'routers instant', 'network ideal'");
}

}  // namespace

MachineChange parse_change(const std::string& text) {
  const std::size_t space = text.find(' ');
  if (space == std::string::npos) refuse_change(text);
  const std::string part = text.substr(0, space);
  const std::string how = text.substr(space + 1);
  MachineChange change;
  change.name = text;
  if (part == "routers" && how == "instant") {
    change.instant_routers = true;
    return change;
  }
  if (part == "network" && how == "ideal") {
    change.ideal_network = true;
    return change;
  }
  Rational factor;
  if (how.size() < 2 || how.back() != 'x' ||
      !Rational::parse_decimal(how.substr(0, how.size() - 1), factor) || factor <= Rational(0)) {
    refuse_change(text);
  }
  if (part == "links") return change_of("links", &MachineChange::links, factor);
  if (part == "compute") return change_of("compute", &MachineChange::compute, factor);
  if (part == "memory") return change_of("memory", &MachineChange::memory, factor);
  refuse_change(text);
}

std::vector<MachineChange> usual_changes() {
  std::vector<MachineChange> changes;
  for (const char* name : {"compute 2x", "memory 2x", "links 2x", "routers instant", "network ideal"}) {
    changes.push_back(parse_change(name));
  }
  return changes;
}

Cycle PathSummary::compute() const {
  return by_kind[index_of(PathKind::matrix)] + by_kind[index_of(PathKind::vector)] +
         by_kind[index_of(PathKind::reduce)];
}

Cycle PathSummary::queueing() const {
  Cycle total = 0;
  for (std::size_t i = 0; i < by_kind.size(); ++i) {
    if (sim::is_queueing(static_cast<PathKind>(i))) total += by_kind[i];
  }
  return total;
}

WhatIf what_if(const std::vector<PathSegment>& segments, const MachineChange& change) {
  Cycle compute = 0, router = 0, link = 0, serialization = 0, overhead = 0, waits = 0, memory_waits = 0;
  WhatIf result{change};
  for (const PathSegment& segment : segments) {
    const Cycle length = length_of(segment);
    if (sim::is_operation(segment.kind)) {
      compute += length;
    } else if (segment.kind == PathKind::memory_stall) {
      result.at_least += least_stall(segment, change);
    } else if (segment.kind == PathKind::memory_wait) {
      memory_waits += length;
    } else if (segment.kind == PathKind::wire) {
      router += segment.router_cycles;
      link += segment.link_cycles;
      serialization += length - segment.router_cycles - segment.link_cycles;
    } else if (segment.kind == PathKind::overhead) {
      overhead += length;
    } else {
      waits += length;
    }
  }
  result.at_least += shortened(compute, change.compute);
  result.with_waits = result.at_least + shortened(memory_waits, change.memory);
  if (change.ideal_network) return result;
  const Cycle wires =
      (change.instant_routers ? 0 : router) + link + shortened(serialization, change.links) + overhead;
  result.at_least += wires;
  result.with_waits += wires + shortened(waits, change.links);
  return result;
}

PathSummary summarize(const sim::PathMeasurement& path, const workloads::Trace& trace) {
  PathSummary summary;
  std::map<topology::LinkId, PathSummary::Link> links;
  std::map<std::pair<workloads::StepKind, workloads::Pass>, PathSummary::Step> steps;
  std::vector<std::uint32_t> programs;  // by tile
  for (const workloads::TileBinding& binding : trace.tiles) {
    programs.resize(std::size_t{binding.tile} + 1);
    programs.back() = binding.program;
  }
  for (const PathSegment& segment : path.segments) {
    const Cycle length = length_of(segment);
    summary.by_kind[index_of(segment.kind)] += length;
    summary.cycles += length;
    if (sim::is_core(segment.kind)) {
      const workloads::Step& step = trace.programs[programs.at(segment.tile)].steps[segment.step];
      PathSummary::Step& sum = steps[{step.kind, step.pass}];
      sum.kind = step.kind;
      sum.pass = step.pass;
      (sim::is_operation(segment.kind) ? sum.compute : sum.memory_stall) += length;
      continue;
    }
    PathSummary::Axis& axis = summary.axes[static_cast<std::size_t>(segment.axis)];
    (sim::is_queueing(segment.kind) ? axis.queueing : axis.wire) += length;
    if (segment.kind == PathKind::wire) {
      summary.router += segment.router_cycles;
      summary.link += segment.link_cycles;
      summary.serialization += length - segment.router_cycles - segment.link_cycles;
    } else if (segment.kind == PathKind::link_queue || segment.kind == PathKind::link_room) {
      PathSummary::Link& link = links[segment.link];
      link.link = segment.link;
      (segment.kind == PathKind::link_queue ? link.queue : link.room) += length;
    }
  }
  summary.segments = path.segments.size();
  for (const auto& [key, step] : steps) summary.steps.push_back(step);
  for (const auto& [key, link] : links) summary.links.push_back(link);
  std::stable_sort(summary.links.begin(), summary.links.end(),
                   [](const PathSummary::Link& a, const PathSummary::Link& b) {
                     return a.queue + a.room > b.queue + b.room;
                   });
  for (const MachineChange& change : usual_changes())
    summary.what_if.push_back(what_if(path.segments, change));
  return summary;
}

}  // namespace wafersim::analysis
