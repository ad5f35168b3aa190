#include "report/summary_json.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "report/json_blocks.h"
#include "workloads/plan_words.h"

namespace wafersim::report {
namespace {

using Json = nlohmann::ordered_json;

/// null: attention and MLP have the plan's degrees.
Json operators_json(const workloads::PlanSpec& plan) {
  if (!plan.splits_operators()) return nullptr;
  Json json = Json::object();
  for (const workloads::Cut cut : {workloads::Cut::attention, workloads::Cut::mlp}) {
    json[workloads::to_string(cut)] = {{"tp", plan.degrees(cut).tp}, {"tatp", plan.degrees(cut).tatp}};
  }
  return json;
}

Json plan_block(const RunContext& run) {
  Json mapping = Json::object();
  for (const workloads::Axis axis : run.plan.order) {
    mapping[workloads::to_string(axis)] = topology::to_string(run.mapping.axis_shape(axis));
  }
  return {{"dp", run.plan.dp},
          {"tp", run.plan.tp},
          {"tatp", run.plan.tatp},
          {"operators", operators_json(run.plan)},
          {"ep", run.plan.ep},
          {"pp", run.plan.pp},
          {"sp", workloads::to_string(run.plan.sp)},
          {"sp_degree", run.plan.sp_degree},
          {"schedule", workloads::to_string(run.plan.schedule)},
          {"virtual_stages", run.plan.virtual_stages},
          {"zero", run.plan.zero},
          {"collectives", workloads::to_string(run.plan.collectives)},
          {"microbatches", run.training.microbatches(run.plan.dp)},
          {"mapping", mapping},
          {"mapping_report", mapping_report_json(run.loads.mapping)},
          {"stream_report", stream_report_json(run.loads.streams)}};
}

Json iterations_block(const analysis::IterationSummary& iterations) {
  return {{"planned", iterations.planned},
          {"completed", iterations.completed},
          {"mean_cycles", optional_value(iterations.mean_cycles)},
          {"steady_state_cycles", optional_value(iterations.steady_state_cycles)},
          {"end_cycles", iterations.ends}};
}

Json breakdown_block(const analysis::Breakdown& breakdown) {
  Json exposed = Json::object();
  for (std::size_t i = 0; i < breakdown.exposed.size(); ++i) {
    exposed[workloads::to_string(static_cast<workloads::Axis>(i))] = breakdown.exposed[i];
  }
  return {{"compute", breakdown.compute},
          {"exposed_communication", exposed},
          {"bubble", breakdown.bubble},
          {"memory_stall", breakdown.memory_stall},
          {"idle", breakdown.idle}};
}

Json memory_block(const analysis::MemorySummary& memory, const topology::Mesh& mesh) {
  return {{"fits", memory.fits},
          {"capacity_bytes", memory.capacity_bytes},
          {"peak_bytes", memory.peak_bytes},
          {"peak_by_class", bytes_by_class(memory.peak_by_class)},
          {"peak_tile", tile_name(memory.peak_tile, mesh)},
          {"sram_capacity_bytes", memory.sram_capacity_bytes},
          {"dram_capacity_bytes", memory.dram_capacity_bytes},
          {"peak_sram_bytes", memory.peak_sram_bytes},
          {"peak_dram_bytes", memory.peak_dram_bytes},
          {"bound_bytes", memory.bound_bytes},
          {"bound_fits", memory.bound_fits}};
}

Json hotspot_block(const analysis::Hotspot& hotspot) {
  Json by_axis = Json::object();
  for (std::size_t i = 0; i < hotspot.bytes_by_axis.size(); ++i) {
    by_axis[workloads::to_string(static_cast<workloads::Axis>(i))] = hotspot.bytes_by_axis[i];
  }
  return {{"link", hotspot.name},
          {"bytes", hotspot.bytes},
          {"utilization", hotspot.utilization},
          {"queue_cycles", hotspot.queue_cycles},
          {"by_axis", by_axis}};
}

Json network_block(const RunContext& run) {
  const analysis::NetworkSummary& network = run.summary.network;
  Json hotspots = Json::array();
  for (const analysis::Hotspot& hotspot : network.hotspots) hotspots.push_back(hotspot_block(hotspot));
  return {{"messages", network.messages},
          {"packets", network.packets},
          {"packet_hops", network.packet_hops},
          {"max_link_utilization", network.max_link_utilization},
          {"mean_link_utilization", network.mean_link_utilization},
          {"routing_report", routing_report_json(run.loads.routing)},
          {"hotspots", hotspots}};
}

Json energy_block(const std::optional<analysis::EnergySummary>& energy) {
  if (!energy) return nullptr;
  Json by_part = Json::object();
  for (const analysis::EnergySummary::Part& part : energy->parts) by_part[models::to_string(part.part)] = part.joules;
  Json missing = Json::array();
  for (const models::EnergyPart part : energy->not_modelled) missing.push_back(models::to_string(part));
  return {{"total_joules", energy->joules},
          {"average_watts", optional_value(energy->watts)},
          {"joules_per_token", optional_value(energy->joules_per_token)},
          {"by_part", by_part},
          {"unused_tiles_joules", energy->unused_tiles_joules},
          {"not_modelled", missing}};
}

/// What a tile and a link can do at most.
Json machine_block(const models::HardwareModel& hardware) {
  const auto& sram = hardware.sram_bytes_per_cycle;
  return {{"clock_hz", hardware.clock.hertz.to_double()},
          {"matrix_flops_per_cycle", hardware.matrix_flops_per_cycle.to_double()},
          {"vector_flops_per_cycle", hardware.vector_flops_per_cycle.to_double()},
          {"sram_bytes_per_cycle", sram ? Json(sram->to_double()) : Json(nullptr)},
          {"dram_bytes_per_cycle", hardware.dram_capacity == 0 ? Json(nullptr) : Json(hardware.dram_bytes_per_cycle.to_double())},
          {"dram_die_tiles", hardware.dram_die.size()},
          {"link_bytes_per_cycle", hardware.link_bytes_per_cycle.to_double()}};
}

Json fold_block(const sim::FoldMeasurement& fold) {
  return {{"skipped_periods", fold.skipped_periods},
          {"skipped_cycles", fold.skipped_cycles},
          {"period_cycles", fold.skipped_periods == 0 ? Json(nullptr) : Json(fold.period_cycles)},
          {"replicas_folded", fold.replicas_folded},
          {"stopped_by", fold.stopped_by}};
}

Json engine_block(const RunContext& run) {
  const sim::EngineMeasurement& engine = run.measurements.engine;
  return {{"fidelity", models::to_string(run.hardware.fidelity)},
          {"wall_seconds", engine.wall_seconds},
          {"cpu_seconds", engine.cpu_seconds},
          {"peak_rss_bytes", engine.peak_rss_bytes},
          {"events", engine.events},
          {"packet_hops_per_cpu_second", engine.packet_hops_per_cpu_second},
          {"folded_fraction", engine.fold.fraction},
          {"fold", fold_block(engine.fold)},
          {"trains", {{"messages", engine.trains.messages}, {"packets", engine.trains.packets}}}};
}

Json stopped_by(const sim::Measurements& measurements) {
  return measurements.partial ? Json(measurements.stopped_by) : Json(nullptr);
}

}  // namespace

std::string summary_text(const RunContext& run) {
  const analysis::RunSummary& summary = run.summary;
  Json json;
  json["schema_version"] = kSchemaVersion;
  json["wafersim_version"] = WAFERSIM_VERSION;
  json["name"] = run.name;
  json["partial"] = run.measurements.partial;
  json["stopped_by"] = stopped_by(run.measurements);
  json["cycles"] = summary.cycles;
  json["seconds"] = summary.seconds;
  json["tokens_per_second"] = optional_value(summary.tokens_per_second);
  json["mfu"] = optional_value(summary.mfu);
  json["hfu"] = summary.hfu;
  json["mfu_wafer"] = optional_value(summary.mfu_wafer);
  json["compute_utilization"] = summary.compute_utilization;
  json["tiles_used"] = summary.tiles_used;
  json["tiles_total"] = summary.tiles_total;
  json["model_flops_per_iteration"] = product_value(summary.model_flops_per_iteration);
  json["matrix_flops"] = summary.matrix_flops;
  json["iterations"] = iterations_block(summary.iterations);
  json["breakdown"] = breakdown_block(summary.breakdown);
  json["communication_share"] = summary.communication_share;
  json["hidden_communication"] = optional_value(summary.hidden_communication);
  json["memory"] = memory_block(summary.memory, run.mesh);
  json["network"] = network_block(run);
  json["energy"] = energy_block(summary.energy);
  json["machine"] = machine_block(run.hardware);
  json["plan"] = plan_block(run);
  json["scenario"] = Json::parse(run.scenario_json);
  json["engine"] = engine_block(run);
  return json.dump(2) + "\n";
}

}  // namespace wafersim::report
