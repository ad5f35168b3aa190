#include "tests/sim/collective_rig.h"

#include "tests/sim/isolated.h"
#include "tests/sim/machine.h"

namespace wafersim::test {
namespace {

workloads::Group group_of_all(const topology::Shape& mesh, int rank) {
  workloads::Group group;
  group.axis = workloads::Axis::dp;
  group.size = mesh.size();
  group.rank = rank;
  group.shape = mesh;
  group.positions = topology::row_major(mesh);
  return group;
}

std::uint32_t build_step(workloads::Trace& trace, const CollectiveCase& collective, int rank) {
  workloads::StepBuilder builder(trace, "collective");
  const workloads::CollectiveVector vector{collective.bytes, collective.elements, builder.tensor("vector")};
  const workloads::Group group = group_of_all(collective.mesh, rank);
  switch (collective.kind) {
    case workloads::CollectiveKind::all_gather:
      all_gather(builder, group, collective.algorithm, vector, {}, collective.chunks);
      break;
    case workloads::CollectiveKind::reduce_scatter:
      reduce_scatter(builder, group, collective.algorithm, vector, {}, collective.chunks);
      break;
    case workloads::CollectiveKind::all_reduce:
      all_reduce(builder, group, collective.algorithm, vector, {}, collective.chunks);
      break;
  }
  return builder.finish();
}

}  // namespace

workloads::Trace collective_trace(const CollectiveCase& collective) {
  workloads::Trace trace;
  trace.statics.emplace_back();
  const auto size = static_cast<std::uint32_t>(collective.mesh.size());
  for (std::uint32_t rank = 0; rank < size; ++rank) {
    workloads::Program program;
    program.steps.emplace_back();
    program.steps.back().step_template = build_step(trace, collective, static_cast<int>(rank));
    workloads::TileBinding binding;
    binding.tile = rank;
    binding.program = rank;
    binding.first_peer = static_cast<std::uint32_t>(trace.peers.size());
    binding.peer_count = size;
    for (std::uint32_t ahead = 0; ahead < size; ++ahead) trace.peers.push_back((rank + ahead) % size);
    trace.programs.push_back(std::move(program));
    trace.tiles.push_back(binding);
  }
  return trace;
}

Cycle collective_cycles(const CollectiveCase& collective, const models::HardwareModel& hardware) {
  return isolated_number([&] {
    const topology::Mesh mesh({collective.mesh, {}, {}});
    return run_trace(mesh, hardware, collective_trace(collective)).cycles;
  });
}

}  // namespace wafersim::test
