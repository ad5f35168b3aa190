#include "report/prediction_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/text.h"
#include "report/terminal_canvas.h"

namespace wafersim::report {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kHotspots = 10;

struct LinkLoad {
  topology::LinkId link = 0;
  double bytes = 0;
  double utilization = 0;
};

/// Links that carry something, the most used first.
std::vector<LinkLoad> link_loads(const PredictionContext& prediction) {
  const RunContext& run = prediction.run;
  const auto parts = static_cast<double>(prediction.loads.parts_per_byte) / static_cast<double>(run.training.iterations);
  const auto cycles = static_cast<double>(std::max<Cycle>(run.summary.cycles, 1));
  std::vector<LinkLoad> result;
  for (topology::LinkId link = 0; link < prediction.loads.parts.size(); ++link) {
    if (prediction.loads.parts[link] == 0) continue;
    const topology::LinkClass& of = run.mesh.link_classes()[run.mesh.link_class(link)];
    const double bytes = static_cast<double>(prediction.loads.parts[link]) / parts;
    result.push_back({link, bytes, bytes / run.hardware.link(of).bytes_per_cycle.to_double() / cycles});
  }
  std::stable_sort(result.begin(), result.end(),
                   [](const LinkLoad& a, const LinkLoad& b) { return a.utilization > b.utilization; });
  return result;
}

void set_network(Json& network, const PredictionContext& prediction) {
  const topology::Mesh& mesh = prediction.run.mesh;
  const std::vector<LinkLoad> loads = link_loads(prediction);
  for (const char* key : {"messages", "packets", "packet_hops"}) network[key] = nullptr;
  double sum = 0;
  for (const LinkLoad& load : loads) sum += load.utilization;
  std::size_t links = 0;
  for (topology::LinkId link = 0; link < mesh.link_slots(); ++link) links += mesh.link_alive(link) ? 1 : 0;
  network["max_link_utilization"] = loads.empty() ? 0.0 : loads.front().utilization;
  network["mean_link_utilization"] = links == 0 ? 0.0 : sum / static_cast<double>(links);
  Json hotspots = Json::array();
  for (std::size_t i = 0; i < std::min(kHotspots, loads.size()); ++i) {
    hotspots.push_back({{"link", mesh.link_name(loads[i].link)},
                        {"bytes", loads[i].bytes},
                        {"utilization", loads[i].utilization},
                        {"queue_cycles", nullptr},
                        {"by_axis", nullptr}});
  }
  network["hotspots"] = std::move(hotspots);
}

}  // namespace

std::string prediction_text(const PredictionContext& prediction) {
  const RunContext& run = prediction.run;
  Json json = Json::parse(summary_text(run));
  for (const char* key : {"fits", "peak_bytes", "peak_by_class", "peak_tile", "peak_sram_bytes", "peak_dram_bytes"}) {
    json["memory"][key] = nullptr;
  }
  set_network(json["network"], prediction);
  Json& engine = json["engine"];
  for (const char* key : {"events", "packet_hops_per_cpu_second", "folded_fraction", "fold", "trains"}) engine[key] = nullptr;
  engine["cost_model"] = models::to_string(run.hardware.cost_model);
  return json.dump(2) + "\n";
}

std::string prediction_summary(const PredictionContext& prediction) {
  const RunContext& run = prediction.run;
  const analysis::RunSummary& summary = run.summary;
  const analysis::Breakdown& parts = summary.breakdown;
  std::string text = fmt::format("{}: predicted by {}, {} of {} tiles\n", run.name, models::to_string(run.hardware.cost_model),
                                 summary.tiles_used, summary.tiles_total);
  text += fmt::format("  iteration {} ({} cycles), {} tokens/s, MFU {}\n",
                      human_seconds(*summary.iterations.mean_cycles / run.hardware.clock.hertz.to_double()),
                      human_count(summary.cycles), with_prefix(summary.tokens_per_second.value_or(0)),
                      percent(summary.mfu.value_or(0)));
  text += fmt::format("  compute {}, memory stall {}, bubble {}, idle {}", percent(parts.compute), percent(parts.memory_stall),
                      percent(parts.bubble), percent(parts.idle));
  for (std::size_t axis = 0; axis < parts.exposed.size(); ++axis) {
    if (parts.exposed[axis] == 0) continue;
    text +=
        fmt::format(", exposed {} {}", workloads::to_string(static_cast<workloads::Axis>(axis)), percent(parts.exposed[axis]));
  }
  return text + "\n";
}

}  // namespace wafersim::report
