#include "tests/sim/wse_rows.h"

#include "tests/models/csv_table.h"
#include "tests/sim/isolated.h"
#include "tests/sim/machine.h"

namespace wafersim::test {

std::vector<WseRow> wse_rows() {
  std::vector<WseRow> rows;
  for (const CsvRow& row : read_reference("wse_line_collectives.csv")) {
    const auto number = [&row](const char* column) { return std::stoull(row.at(column)); };
    rows.push_back({.tiles = std::stoi(row.at("tiles")),
                    .wavelets = number("wavelets"),
                    .star = number("reduce_star_cycles"),
                    .chain = number("reduce_chain_cycles"),
                    .tree = number("reduce_tree_cycles"),
                    .group = std::stoi(row.at("two_phase_group")),
                    .two_phase = number("reduce_two_phase_cycles"),
                    .bound = number("reduce_lower_bound_cycles"),
                    .broadcast = number("broadcast_cycles"),
                    .ring = number("ring_all_reduce_cycles")});
  }
  return rows;
}

models::HardwareModel wse_line(int tiles) {
  models::WaferSpec wafer;
  wafer.mesh.shape = {1, tiles};
  wafer.clock = {Rational(850'000'000)};
  wafer.core.vector.peak = {Rational(8), true};
  wafer.sram = {{48'000}, Bandwidth{Rational(24), true}};
  wafer.link = {{Rational(4), true}, Duration::of_cycles(1)};
  wafer.nic.ports = models::NicPorts::single;
  wafer.nic.injection_latency = wafer.nic.ejection_latency = Duration::of_cycles(2);
  models::RouterSpec router;
  router.pipeline = Duration::of_cycles(0);
  models::NetworkSpec network;
  network.packet_bytes = {4};
  return models::resolve_hardware(wafer, router, network);
}

WseResult wse_collective(const WseRow& row, workloads::StreamedKind kind, workloads::StreamedAlgorithm algorithm,
                         std::optional<workloads::StreamRelay> relay) {
  workloads::CollectiveSpec spec;
  spec.kind = kind;
  spec.algorithm = algorithm;
  spec.bytes = {workloads::kStreamedElement * row.wavelets};
  spec.relay = relay;
  if (algorithm == workloads::StreamedAlgorithm::two_phase) spec.group = row.group;
  const models::HardwareModel hardware = wse_line(row.tiles);
  const topology::Mesh mesh({{1, row.tiles}, {}, {}});
  const workloads::StreamedCollective collective(spec, hardware, mesh);
  return {isolated_number([&] { return run_trace(mesh, hardware, collective.trace()).cycles; }), collective.model_cycles()};
}

}  // namespace wafersim::test
