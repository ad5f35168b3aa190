#include "sim/replicas.h"

#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <set>

namespace wafersim::sim {
namespace {

using workloads::OpKind;

bool has_peer(const workloads::Op& op) { return op.kind == OpKind::send || op.kind == OpKind::receive; }

}  // namespace

Replicas::Replicas(const CompiledTrace& trace, const models::HardwareModel& hardware, const topology::Mesh& mesh,
                   const PacketRoutes& routes)
    : compiled_(trace),
      trace_(trace.trace()),
      hardware_(hardware),
      mesh_(mesh),
      routes_(routes),
      bindings_(mesh.tile_count()),
      last_alone_(mesh.tile_count(), ~std::uint32_t{0}) {
  for (const workloads::TileBinding& binding : trace_.tiles) bindings_[binding.tile] = &binding;
  if (!collect_tiles() || !compare_drams() || !compare()) tiles_.clear();
}

bool Replicas::refuse(std::string why) {
  obstacle_ = std::move(why);
  return false;
}

bool Replicas::collect_tiles() {
  if (trace_.replicas < 2) return refuse("there is one replica");
  if (!routes_.plain()) return refuse("the routes of packets are not a function of place and destination");
  tiles_.resize(static_cast<std::size_t>(trace_.replicas));
  for (const workloads::TileBinding& binding : trace_.tiles) {
    tiles_.at(static_cast<std::size_t>(binding.group / trace_.pipeline_stages)).push_back(binding.tile);
  }
  for (const std::vector<TileId>& of_replica : tiles_) {
    if (of_replica.size() != tiles_.front().size()) return refuse("replicas have different numbers of tiles");
    const topology::Coord first = mesh_.coord(tiles_.front().front());
    const topology::Coord here = mesh_.coord(of_replica.front());
    vectors_.push_back({here.x - first.x, here.y - first.y});
    for (std::size_t i = 0; i < of_replica.size(); ++i) {
      if (move(tiles_.front()[i], vectors_.size() - 1) != of_replica[i]) {
        return refuse("the tiles of replicas do not lie alike");
      }
    }
  }
  return true;
}

TileId Replicas::move(TileId tile, std::size_t replica) const {
  const topology::Coord from = mesh_.coord(tile);
  const topology::Coord to{from.x + vectors_[replica].x, from.y + vectors_[replica].y};
  return mesh_.contains(to) ? mesh_.tile_at(to) : kNoTile;
}

std::vector<TileId> Replicas::moved(std::size_t replica) const {
  std::vector<TileId> all(mesh_.tile_count());
  for (TileId tile = 0; tile < all.size(); ++tile) all[tile] = move(tile, replica);
  return all;
}

/// A die belongs to one replica and lies in it as in the first one.
bool Replicas::compare_drams() {
  if (hardware_.dram_capacity == 0) return true;
  const topology::Shape& die = hardware_.dram_die;
  std::map<TileId, std::size_t> owners;
  for (std::size_t replica = 0; replica < tiles_.size(); ++replica) {
    if (vectors_[replica].x % die.cols != 0 || vectors_[replica].y % die.rows != 0) {
      return refuse("replicas lie on their dies in different ways");
    }
    for (const TileId tile : tiles_[replica]) {
      const topology::Coord at = mesh_.coord(tile);
      const TileId corner = mesh_.tile_at({at.x / die.cols * die.cols, at.y / die.rows * die.rows});
      if (owners.emplace(corner, replica).first->second != replica) return refuse("replicas share the DRAM of a die");
    }
  }
  return true;
}

bool Replicas::compare() {
  for (std::size_t place = 0; place < tiles_.front().size(); ++place) {
    if (!compare_tile(place)) return false;
  }
  return true;
}

bool Replicas::compare_tile(std::size_t place) {
  const workloads::TileBinding& first = binding_of(tiles_.front()[place]);
  const std::uint32_t meeting = first_meeting(first);
  if (!find_last_alone(first, meeting)) return false;
  std::vector<bool> templates_used(trace_.templates.size());
  const workloads::Program& program = trace_.programs[first.program];
  for (std::uint32_t step = 0; step < meeting; ++step) templates_used[program.steps[step].step_template] = true;
  for (std::size_t replica = 1; replica < tiles_.size(); ++replica) {
    const workloads::TileBinding& other = binding_of(tiles_[replica][place]);
    const bool memory_alike = first.layout == other.layout &&
                              trace_.statics[first.statics].bytes == trace_.statics[other.statics].bytes;
    if (first.stage != other.stage || !memory_alike) return refuse("tiles of replicas hold different things");
    if (first_meeting(other) != meeting) return refuse("replicas meet others in different steps");
    if (first.program == other.program) continue;
    for (std::uint32_t step = 0; step < meeting; ++step) {
      if (!same_step(first, other, step)) return refuse("replicas run different programs");
    }
  }
  return compare_peers(first, templates_used, place);
}

bool Replicas::same_step(const workloads::TileBinding& a, const workloads::TileBinding& b, std::uint32_t step) const {
  const workloads::Program& left = trace_.programs[a.program];
  const workloads::Program& right = trace_.programs[b.program];
  const workloads::Step& one = left.steps[step];
  const workloads::Step& other = right.steps[step];
  return one.step_template == other.step_template && one.kind == other.kind && one.pass == other.pass &&
         one.background == other.background && one.iteration == other.iteration && one.layer == other.layer &&
         one.microbatch == other.microbatch &&
         std::equal(left.waits.begin() + one.first_wait, left.waits.begin() + one.first_wait + one.wait_count,
                    right.waits.begin() + other.first_wait, right.waits.begin() + other.first_wait + other.wait_count);
}

bool Replicas::meets(const workloads::TileBinding& binding, std::uint32_t step_template) const {
  const int replica = binding.group / trace_.pipeline_stages;
  const auto& ops = trace_.templates[step_template].ops;
  return std::any_of(ops.begin(), ops.end(), [&](const workloads::Op& op) {
    return has_peer(op) && binding_of(trace_.peer(binding, op.peer)).group / trace_.pipeline_stages != replica;
  });
}

std::uint32_t Replicas::first_meeting(const workloads::TileBinding& binding) {
  const workloads::Program& program = trace_.programs[binding.program];
  std::set<std::uint32_t> alone;
  for (std::uint32_t step = 0; step < program.steps.size(); ++step) {
    const std::uint32_t step_template = program.steps[step].step_template;
    if (alone.contains(step_template)) continue;
    if (meets(binding, step_template)) return step;
    alone.insert(step_template);
  }
  return static_cast<std::uint32_t>(program.steps.size());
}

/// Its result is not there in the cycle in which it opens.
bool Replicas::takes_time(const workloads::Step& step) const {
  const CompiledTemplate& code = compiled_.step_template(step.step_template);
  return std::any_of(code.ops.begin(), code.ops.end(), [](const CompiledOp& op) {
    const bool computes = op.kind == OpKind::matrix || op.kind == OpKind::vector || op.kind == OpKind::reduce;
    return computes && !op.detached && op.compute_cycles > 0;
  });
}

/// Steps open in order, each behind the results that it waits for.
bool Replicas::find_last_alone(const workloads::TileBinding& binding, std::uint32_t meeting) {
  const workloads::Program& program = trace_.programs[binding.program];
  if (meeting == program.steps.size()) return true;
  for (std::uint32_t step = meeting + 1; step-- > 0;) {
    const workloads::Step& at = program.steps[step];
    for (std::uint32_t i = at.wait_count; i-- > 0;) {
      const std::uint32_t before = program.waits[at.first_wait + i];
      if (!takes_time(program.steps[before])) continue;
      last_alone_[binding.tile] = before;
      return true;
    }
  }
  return refuse("replicas exchange data from the start");
}

bool Replicas::compare_peers(const workloads::TileBinding& binding, const std::vector<bool>& templates_used,
                             std::size_t place) {
  std::set<std::uint32_t> peers;
  for (std::size_t i = 0; i < templates_used.size(); ++i) {
    if (!templates_used[i]) continue;
    for (const workloads::Op& op : trace_.templates[i].ops) {
      if (has_peer(op)) peers.insert(op.peer);
    }
  }
  std::set<TileId> tiles;
  for (const std::uint32_t peer : peers) {
    const TileId tile = trace_.peer(binding, peer);
    tiles.insert(tile);
    for (std::size_t replica = 1; replica < tiles_.size(); ++replica) {
      if (trace_.peer(binding_of(tiles_[replica][place]), peer) != move(tile, replica)) {
        return refuse("the peers of replicas do not lie alike");
      }
    }
  }
  return std::all_of(tiles.begin(), tiles.end(), [&](TileId tile) { return compare_route(binding.tile, tile); });
}

bool Replicas::compare_route(TileId source, TileId destination) {
  if (mesh_.concentrated()) return refuse("tiles share routers");
  const int own = binding_of(source).group / trace_.pipeline_stages;
  for (TileId at = source; at != destination;) {
    const topology::Hop hop = routes_.next(at, destination);
    const auto direction = static_cast<topology::Direction>(hop);
    const TileId next = mesh_.neighbour(at, direction);
    for (std::size_t replica = 1; replica < tiles_.size(); ++replica) {
      const TileId there = move(at, replica);
      const bool alike = routes_.next(there, move(destination, replica)) == hop &&
                         mesh_.neighbour(there, direction) == move(next, replica) &&
                         mesh_.link_class(topology::Mesh::link(there, direction)) ==
                             mesh_.link_class(topology::Mesh::link(at, direction));
      if (!alike) return refuse("the routes of replicas differ");
    }
    at = next;
    const workloads::TileBinding* const binding = bindings_[at];
    if (binding == nullptr || binding->group / trace_.pipeline_stages != own) {
      return refuse(fmt::format("the route from {} to {} leaves its replica at {}", mesh_.name(source),
                                mesh_.name(destination), mesh_.name(at)));
    }
  }
  return true;
}

}  // namespace wafersim::sim
