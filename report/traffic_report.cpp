#include "report/traffic_report.h"

#include <fmt/format.h>

#include <span>

#include "report/json_blocks.h"

namespace wafersim::report {
namespace {

using Json = nlohmann::ordered_json;

std::span<const analysis::LoadPoint> points_of(const TrafficReport& report) {
  if (report.sweep) return report.sweep->points;
  if (report.point) return {&*report.point, 1};
  return {};
}

double per_cpu_second(std::uint64_t count, double seconds) {
  return seconds > 0 ? static_cast<double>(count) / seconds : 0.0;
}

/// Of latencies: nothing when no measured packet arrived.
template <class T>
Json latency_json(const analysis::LoadPoint& point, const T& value) {
  return point.latencies.count() == 0 ? Json(nullptr) : Json(value);
}

std::string latency_cell(const analysis::LoadPoint& point, const std::string& value) {
  return point.latencies.count() == 0 ? std::string() : value;
}

void add_point(Json& json, const analysis::LoadPoint& point, bool recorded) {
  json["load"] = recorded ? Json(nullptr) : Json(point.load.to_double());
  json["offered_load"] = point.offered_load.mean;
  json["accepted_load"] = point.accepted_load.mean;
  json["mean_packet_latency"] = latency_json(point, point.latency.mean);
  json["mean_packet_latency_ci95"] = optional_value(point.latency.half_width);
  json["mean_network_latency"] = latency_json(point, point.network_latency.mean);
  json["accepted_load_ci95"] = optional_value(point.accepted_load.half_width);
  json["p50_packet_latency"] = latency_json(point, point.latencies.percentile(50));
  json["p99_packet_latency"] = latency_json(point, point.latencies.percentile(99));
  json["max_packet_latency"] = latency_json(point, point.latencies.longest());
  json["packets"] = point.latencies.count();
  json["stable"] = point.stable;
  json["drained"] = point.drained;
  json["least_accepted"] = point.least_accepted;
  json["max_link_utilization"] = point.max_link_utilization.mean;
  json["runs"] = point.runs;
  json["cycles"] = point.cycles;
  json["flit_hops"] = point.flit_hops;
  json["router_traversals"] = point.router_traversals;
  json["router_cycles"] = point.router_cycles;
  json["cpu_seconds"] = point.cpu_seconds;
  json["flit_hops_per_cpu_second"] = per_cpu_second(point.flit_hops, point.cpu_seconds);
  json["router_cycles_per_cpu_second"] = per_cpu_second(point.router_cycles, point.cpu_seconds);
}

Json ideal_json(const std::optional<analysis::IdealSaturation>& ideal) {
  if (!ideal) return nullptr;
  Json json;
  json["load"] = ideal->load.to_double();
  json["channel_load"] = ideal->channel_load.to_double();
  json["channel"] = ideal->channel;
  json["bound_only"] = ideal->bound;
  json["mean_hops"] = ideal->hops.to_double();
  return json;
}

std::string interval(const analysis::Estimate& estimate) {
  return estimate.half_width ? fmt::format(" +- {:.2f}", *estimate.half_width) : std::string();
}

}  // namespace

std::string traffic_json(const TrafficReport& report) {
  Json json;
  json["schema_version"] = 1;
  json["name"] = report.name;
  json["scenario"] = Json::parse(report.scenario_json);
  if (report.point) add_point(json, *report.point, !report.ideal);
  json["ideal_saturation"] = ideal_json(report.ideal);
  if (report.sweep) {
    const analysis::LoadSweep& sweep = *report.sweep;
    json["saturation_load"] = sweep.saturation ? Json(sweep.saturation->to_double()) : Json(nullptr);
    json["saturation_throughput"] = sweep.saturation_throughput;
    Json& points = json["points"] = Json::array();
    for (const analysis::LoadPoint& point : sweep.points) {
      Json item;
      add_point(item, point, false);
      points.push_back(std::move(item));
    }
  }
  return json.dump(2) + "\n";
}

std::string traffic_csv(const TrafficReport& report) {
  std::string text =
      "load_flits_per_tile_cycle,offered_flits_per_tile_cycle,accepted_flits_per_tile_cycle,mean_packet_latency_cycles,"
      "mean_packet_latency_ci95_cycles,mean_network_latency_cycles,p50_packet_latency_cycles,p99_packet_latency_cycles,"
      "max_packet_latency_cycles,packets,stable,drained,max_link_utilization,runs\n";
  for (const analysis::LoadPoint& point : points_of(report)) {
    const std::string width = point.latency.half_width ? fmt::format("{:.3f}", *point.latency.half_width) : "";
    const std::string latencies =
        latency_cell(point, fmt::format("{:.3f}", point.latency.mean)) + "," + latency_cell(point, width) + "," +
        latency_cell(point, fmt::format("{:.3f}", point.network_latency.mean)) + "," +
        latency_cell(point, std::to_string(point.latencies.percentile(50))) + "," +
        latency_cell(point, std::to_string(point.latencies.percentile(99))) + "," +
        latency_cell(point, std::to_string(point.latencies.longest()));
    text += fmt::format("{},{:.6f},{:.6f},{},{},{},{},{:.6f},{}\n", report.ideal ? point.load.to_string() : "",
                        point.offered_load.mean, point.accepted_load.mean, latencies, point.latencies.count(),
                        point.stable ? "yes" : "no", point.drained ? "yes" : "no", point.max_link_utilization.mean,
                        point.runs);
  }
  return text;
}

std::string traffic_text(const TrafficReport& report) {
  std::string text = fmt::format("{}: {} traffic on {}\n\n", report.name, report.pattern, report.mesh);
  text += "  offered  accepted   mean latency        p50   p99  stable\n";
  for (const analysis::LoadPoint& point : points_of(report)) {
    const bool none = point.latencies.count() == 0;
    text += fmt::format("  {:7.4f}  {:8.4f}  {:>17} {:>5} {:>5}  {}\n", point.offered_load.mean, point.accepted_load.mean,
                        none ? "no packet arrived" : fmt::format("{:.2f}{}", point.latency.mean, interval(point.latency)),
                        none ? "-" : std::to_string(point.latencies.percentile(50)),
                        none ? "-" : std::to_string(point.latencies.percentile(99)), point.stable ? "yes" : "no");
  }
  text += "\nLoads are flits per sending tile and cycle, latencies cycles.\n";
  if (report.ideal) {
    text += fmt::format("{}: {:.4f} ({}: {:.4g} times the load); {:.4g} hops on average.\n",
                        report.ideal->bound ? "No routes saturate later than" : "Ideal saturation",
                        report.ideal->load.to_double(), report.ideal->channel, report.ideal->channel_load.to_double(),
                        report.ideal->hops.to_double());
  }
  if (report.sweep && report.sweep->saturation) {
    text += fmt::format("Largest stable load: {:.4f}; largest accepted load: {:.4f}.\n", report.sweep->saturation->to_double(),
                        report.sweep->saturation_throughput);
  }
  return text;
}

}  // namespace wafersim::report
