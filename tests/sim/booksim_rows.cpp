#include "tests/sim/booksim_rows.h"

#include <map>
#include <stdexcept>

#include "tests/models/csv_table.h"

namespace wafersim::test {
namespace {

workloads::SyntheticPattern pattern_of(const std::string& traffic) {
  using P = workloads::SyntheticPattern;
  static const std::map<std::string, P> kPatterns = {{"uniform", P::uniform},     {"transpose", P::transpose},
                                                     {"bitrev", P::bit_reverse},  {"neighbor", P::neighbour},
                                                     {"tornado", P::tornado},     {"bitcomp", P::bit_complement}};
  return kPatterns.at(traffic);
}

Rational decimal(const std::string& text) {
  Rational value;
  if (!Rational::parse_decimal(text, value)) throw std::runtime_error(text + " is no number");
  return value;
}

}  // namespace

std::string BookSimRow::curve() const {
  return std::to_string(k) + "x" + std::to_string(k) + ", " + pipeline + ", " + std::to_string(vcs) + " VCs of " +
         std::to_string(buffer) + ", " + traffic + ", " + std::to_string(flits) + (flits == 1 ? " flit" : " flits");
}

std::vector<BookSimRow> booksim_rows(const std::string& file) {
  std::vector<BookSimRow> result;
  for (const CsvRow& row : read_reference(file)) {
    BookSimRow out;
    out.k = std::stoi(row.at("k"));
    out.vcs = std::stoi(row.at("vcs"));
    out.buffer = std::stoi(row.at("vc_buffer_flits"));
    out.flits = std::stoi(row.at("packet_flits"));
    out.seeds = std::stoi(row.at("seeds"));
    out.pipeline = row.at("pipeline");
    out.traffic = row.at("traffic");
    out.load = decimal(row.at("offered_flits_per_node_cycle"));
    out.stable = row.at("stable") == "yes";
    out.latency = std::stod(row.at("mean_packet_latency"));
    out.accepted = std::stod(row.at("accepted_flits_per_node_cycle"));
    if (row.contains("latency_standard_error")) {
      out.latency_error = std::stod(row.at("latency_standard_error"));
      out.accepted_error = std::stod(row.at("accepted_standard_error"));
    }
    result.push_back(out);
  }
  return result;
}

topology::Mesh mesh_of(const BookSimRow& row) { return topology::Mesh({{row.k, row.k}, {}, {}}); }

double zero_load_latency(const BookSimRow& row, const topology::Mesh& mesh) {
  workloads::TrafficSpec spec;
  spec.pattern = pattern_of(row.traffic);
  const workloads::Destinations destinations(spec, mesh);
  double routers = 0;
  for (TileId from = 0; from < mesh.tile_count(); ++from) {
    for (TileId to = 0; to < mesh.tile_count(); ++to) {
      routers += static_cast<double>(destinations.weight(from, to)) * routers_between(mesh, from, to);
    }
  }
  routers /= static_cast<double>(destinations.weights()) * mesh.tile_count();
  return (models::stages_of(pipeline_named(row.pipeline)).cycles() + 1) * routers + 2 + row.flits - 1;
}

std::vector<sim::TrafficMeasurement> measure_row(const BookSimRow& row, const topology::Mesh& mesh, int seeds, Cycle warmup,
                                                 Cycle measurement) {
  workloads::TrafficSpec spec;
  spec.pattern = pattern_of(row.traffic);
  spec.load = row.load;
  spec.packet_flits.flits = {static_cast<std::uint32_t>(row.flits)};
  spec.warmup = Duration::of_cycles(warmup);
  spec.measurement = Duration::of_cycles(measurement);
  spec.drain = Duration::of_cycles(row.stable ? 50'000 : 0);
  const models::HardwareModel hardware =
      booksim_hardware(models::stages_of(pipeline_named(row.pipeline)), row.vcs, static_cast<unsigned>(row.buffer));
  return run_seeds(mesh, hardware, spec, seeds);
}

}  // namespace wafersim::test
