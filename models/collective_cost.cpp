#include "models/collective_cost.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"

namespace wafersim::models {
namespace {

std::int64_t directed_links(const topology::Shape& mesh) {
  const std::int64_t rows = mesh.rows;
  const std::int64_t cols = mesh.cols;
  return 2 * (rows * (cols - 1) + cols * (rows - 1));
}

/// Links of the tile that has the fewest: a corner, or the end of a line.
int corner_degree(const topology::Shape& mesh) { return (mesh.rows > 1 ? 1 : 0) + (mesh.cols > 1 ? 1 : 0); }

/// factor * D / B, rounded down.
Cycle vectors_over_link(const Rational& factor, Bytes bytes, const HardwareModel& hardware) {
  return (factor * Rational(static_cast<std::int64_t>(bytes)) / hardware.link_bytes_per_cycle).floor();
}

void require_members(int members) { require_invariant(members >= 1, "a collective has no members"); }

Cycle ring_step(const HardwareModel& hardware, int members, Bytes bytes, int longest_hops) {
  return message_latency(hardware, ceil_div(bytes, static_cast<Bytes>(members)), longest_hops);
}

}  // namespace

Cycle ring_all_gather(const HardwareModel& hardware, int members, Bytes bytes, int longest_hops) {
  require_members(members);
  return static_cast<Cycle>(members - 1) * ring_step(hardware, members, bytes, longest_hops);
}

Cycle ring_reduce_scatter(const HardwareModel& hardware, int members, Bytes bytes, Cycle reduce,
                          int longest_hops) {
  require_members(members);
  return static_cast<Cycle>(members - 1) * (ring_step(hardware, members, bytes, longest_hops) + reduce);
}

Cycle ring_all_reduce(const HardwareModel& hardware, int members, Bytes bytes, Cycle reduce,
                      int longest_hops) {
  return ring_reduce_scatter(hardware, members, bytes, reduce, longest_hops) +
         ring_all_gather(hardware, members, bytes, longest_hops);
}

Cycle two_phase_all_reduce_bound(const HardwareModel& hardware, int members, Bytes bytes,
                                 int smallest_degree) {
  require_members(members);
  require_invariant(smallest_degree >= 1, "a member of a collective has no link");
  return vectors_over_link(Rational(2 * (std::int64_t{members} - 1), std::int64_t{members} * smallest_degree),
                           bytes, hardware);
}

Cycle all_reduce_bound(const HardwareModel& hardware, int members, Bytes bytes, bool line) {
  return two_phase_all_reduce_bound(hardware, members, bytes, line ? 1 : 2);
}

Cycle any_all_reduce_bound(const HardwareModel& hardware, const topology::Shape& mesh, Bytes bytes) {
  require_members(mesh.size());
  if (mesh.size() == 1) return 0;
  const Rational corner(1, corner_degree(mesh));
  const Rational links(2 * (std::int64_t{mesh.size()} - 1), directed_links(mesh));
  return vectors_over_link(std::max(corner, links), bytes, hardware);
}

Cycle recursive_doubling_on_line(const HardwareModel& hardware, int members, Bytes bytes) {
  if (members < 1 || (members & (members - 1)) != 0) {
    throw PlanError(
        fmt::format("recursive doubling: {} members; their number must be a power of two", members));
  }
  return vectors_over_link(Rational(members - 1), bytes, hardware);
}

}  // namespace wafersim::models
