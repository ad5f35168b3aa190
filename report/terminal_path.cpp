#include "report/terminal_path.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"

namespace wafersim::report {
namespace {

using sim::PathKind;

constexpr std::size_t kLinksShown = 3;

Cycle of(const analysis::PathSummary& path, PathKind kind) {
  return path.by_kind[static_cast<std::size_t>(kind)];
}

/// "matrix 61.2 %, vector 3.0 %" of those that there are.
std::string shares_text(const std::vector<std::pair<std::string, Cycle>>& parts, double all) {
  std::vector<std::string> words;
  for (const auto& [name, cycles] : parts) {
    if (cycles > 0) words.push_back(name + " " + percent(static_cast<double>(cycles) / all));
  }
  return join(words);
}

void draw_parts(Canvas& canvas, const char* title, const std::vector<std::pair<std::string, Cycle>>& parts,
                double all) {
  const std::string text = shares_text(parts, all);
  if (!text.empty()) canvas.line(fmt::format("  {:<12}{}", title, text));
}

void draw_axes(Canvas& canvas, const analysis::PathSummary& path, double all) {
  std::vector<std::pair<std::string, Cycle>> axes;
  for (std::size_t i = 0; i < path.axes.size(); ++i) {
    axes.emplace_back(workloads::to_string(static_cast<workloads::Axis>(i)),
                      path.axes[i].wire + path.axes[i].queueing);
  }
  draw_parts(canvas, "by axis", axes, all);
}

void draw_waits(Canvas& canvas, const analysis::PathSummary& path, const topology::Mesh& mesh, double all) {
  std::vector<std::pair<std::string, Cycle>> links;
  for (const analysis::PathSummary::Link& link : path.links)
    links.emplace_back(mesh.link_name(link.link), link.queue + link.room);
  links.resize(std::min(links.size(), kLinksShown));
  draw_parts(canvas, "at links", links, all);
}

void draw_what_if(Canvas& canvas, const analysis::PathSummary& path) {
  canvas.line(canvas.paint(Ink::dim,
                           "  What a run with the same order of operations could gain; with the path's waits "
                           "for others kept in brackets"));
  for (const analysis::WhatIf& what_if : path.what_if) {
    std::string kept;
    if (what_if.with_waits != what_if.at_least)
      kept = " (" + change_text(what_if.with_waits, path.cycles) + ")";
    canvas.line(
        fmt::format("  {:<18}{}{}", what_if.change.name, bound_text(what_if.at_least, path.cycles), kept));
  }
}

}  // namespace

std::string bound_text(Cycle cycles, Cycle base) {
  if (cycles == base || base == 0) return "no shorter";
  const double change = static_cast<double>(cycles) / static_cast<double>(base) - 1;
  return change < 0 ? "at most " + percent(-change) + " shorter" : "at least " + percent(change) + " longer";
}

std::string change_text(Cycle cycles, Cycle base) {
  if (cycles == base || base == 0) return "as long";
  const double change = static_cast<double>(cycles) / static_cast<double>(base) - 1;
  return percent(change < 0 ? -change : change) + (change < 0 ? " shorter" : " longer");
}

void draw_path(Canvas& canvas, const analysis::PathSummary& path, const topology::Mesh& mesh) {
  canvas.section(fmt::format("Critical path: {} segments from cycle 0 to {}", human_count(path.segments),
                             human_count(path.cycles)));
  const auto all = static_cast<double>(std::max<Cycle>(path.cycles, 1));
  const auto share = [all](Cycle cycles) { return static_cast<double>(cycles) / all; };
  const Cycle wire = of(path, PathKind::wire) + of(path, PathKind::overhead);
  canvas.stacked_bar(
      {{Ink::compute, canvas.glyph("█", "#"), "operations", share(path.compute())},
       {Ink::communication, canvas.glyph("▓", "="), "wires", share(wire)},
       {Ink::bubble, canvas.glyph("▒", "o"), "waiting for other messages", share(path.queueing())},
       {Ink::memory, canvas.glyph("░", "m"), "memory stall",
        share(of(path, PathKind::memory_stall) + of(path, PathKind::memory_wait))}});
  draw_parts(canvas, "operations",
             {{"matrix", of(path, PathKind::matrix)},
              {"vector", of(path, PathKind::vector)},
              {"reduce", of(path, PathKind::reduce)}},
             all);
  draw_parts(canvas, "wires",
             {{"serialization", path.serialization},
              {"links", path.link},
              {"routers", path.router},
              {"overhead", of(path, PathKind::overhead)}},
             all);
  draw_parts(canvas, "waits",
             {{"at the NIC", of(path, PathKind::injection_queue) + of(path, PathKind::injection_room)},
              {"for links", of(path, PathKind::link_queue)},
              {"for room behind links", of(path, PathKind::link_room)},
              {"for ejection", of(path, PathKind::ejection_queue)}},
             all);
  draw_axes(canvas, path, all);
  draw_waits(canvas, path, mesh, all);
  draw_what_if(canvas, path);
}

}  // namespace wafersim::report
