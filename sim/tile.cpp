#include "sim/tile.h"

#include <algorithm>
#include <fmt/format.h>
#include <numeric>

#include "base/error.h"

namespace wafersim::sim {

Tile::Tile(sc_core::sc_module_name name, TileId id, const workloads::TileBinding* binding, const WaferParts& parts,
           const std::vector<Nic*>& nics, Tile* host)
    : sc_module(name), id_(id) {
  NetworkContext& network = parts.network;
  if (host != nullptr) {
    // Nothing of its own.
  } else if (parts.flits != nullptr) {
    flit_router = std::make_unique<FlitRouter>("router", id, *parts.flits);
  } else {
    router = std::make_unique<Router>("router", id, network);
  }
  if (binding == nullptr) return;
  const workloads::Trace& trace = parts.trace.trace();
  sram = network.arena.make<Sram>("sram", network.calendar, network.hardware, trace.layouts.at(binding->layout),
                                  trace.statics.at(binding->statics));
  nic = network.arena.make<Nic>("nic", id, network, nics);
  if (parts.core_factory) other_core_ = parts.core_factory("core", id);
  core = other_core_.get();
  if (core == nullptr) {
    trace_core_ = network.arena.make<TraceCore>("core", network.calendar, network.tables, parts.trace, *binding, parts.recorder,
                                                parts.shared_by_cores);
    core = trace_core_.get();
  }
  core->nic.bind(*nic);
  core->sram.bind(*sram);
  nic->core.bind(*core);
  nic->sram.bind(*sram);
  bind_nic(host != nullptr ? *host : *this, parts.mesh.slot(id));
  sram->set_context([this] { return core->describe(); });
}

void Tile::bind_nic(Tile& host, unsigned slot) {
  const auto bind = [this, slot](auto& its_router) {
    nic->router.bind(its_router);
    its_router.terminals.bind(*nic);
    its_router.slots.push_back(slot);
  };
  if (host.flit_router) {
    bind(*host.flit_router);
  } else {
    bind(*host.router);
  }
}

Wafer::Wafer(sc_core::sc_module_name name, const WaferParts& parts) : sc_module(name) {
  for (auto& eldest : eldest_) eldest = std::make_unique<Eldest>(sc_core::sc_gen_unique_name("eldest"));
  const TileId count = parts.mesh.tile_count();
  by_id_.resize(count, nullptr);
  nics_.resize(count, nullptr);
  cores_.resize(count, nullptr);
  std::vector<const workloads::TileBinding*> bindings(count, nullptr);
  for (const workloads::TileBinding& binding : parts.trace.trace().tiles) {
    if (binding.tile >= count || !parts.mesh.alive(binding.tile)) {
      throw PlanError(fmt::format("the trace uses tile {}, which is dead or outside the {} mesh", binding.tile,
                                  topology::to_string(parts.mesh.shape())));
    }
    if (bindings[binding.tile] != nullptr) {
      throw PlanError(fmt::format("{} is bound to two programs", parts.mesh.name(binding.tile)));
    }
    bindings[binding.tile] = &binding;
  }
  build_tiles(parts, bindings);
  if (parts.flits == nullptr) bind_links(parts);
  if (parts.network.hardware.dram_capacity != 0) bind_drams(parts);
}

/// Column by column, as the names of tiles begin with it: SystemC keeps all names in one ordered map, and those that follow each
/// other there should be near each other in it.
void Wafer::build_tiles(const WaferParts& parts, const std::vector<const workloads::TileBinding*>& bindings) {
  std::vector<TileId> order(parts.mesh.tile_count());
  std::iota(order.begin(), order.end(), TileId{0});
  // Where tiles share a router, the first of them by number has it.
  if (!parts.mesh.concentrated()) {
    std::stable_sort(order.begin(), order.end(),
                     [&](TileId a, TileId b) { return parts.mesh.coord(a).x < parts.mesh.coord(b).x; });
  }
  for (const TileId id : order) {
    if (!parts.mesh.alive(id)) continue;
    Tile* const host = parts.mesh.has_router(id) ? nullptr : by_id_[parts.mesh.router(id)];
    built_.push_back(std::make_unique<Tile>(parts.mesh.name(id).c_str(), id, bindings[id], parts, nics_, host));
    by_id_[id] = built_.back().get();
  }
  for (Tile* const tile : by_id_) {
    if (tile == nullptr) continue;
    tiles_.push_back(tile);
    if (!tile->used()) continue;
    tile->used_index = used_.size();
    used_.push_back(tile);
    nics_[tile->id()] = tile->nic.get();
    cores_[tile->id()] = tile->core;
  }
}

Wafer::~Wafer() {
  for (auto& eldest : eldest_) eldest.reset();
  while (!drams_.empty()) drams_.erase(std::prev(drams_.end()));
  while (!built_.empty()) built_.pop_back();
}

void Wafer::bind_links(const WaferParts& parts) {
  for (const auto& tile : tiles_) {
    for (const topology::Direction direction : topology::kAllDirections) {
      if (!parts.mesh.link_alive(topology::Mesh::link(tile->id(), direction))) continue;
      Router& neighbour = *by_id_[parts.mesh.neighbour(tile->id(), direction)]->router;
      tile->router->links[static_cast<std::size_t>(direction)]->bind(neighbour);
    }
  }
}

void Wafer::bind_drams(const WaferParts& parts) {
  const topology::Shape& die = parts.network.hardware.dram_die;
  for (Tile* tile : used_) {
    const topology::Coord at = parts.mesh.coord(tile->id());
    const topology::Coord corner{at.x / die.cols * die.cols, at.y / die.rows * die.rows};
    std::unique_ptr<Dram>& dram = drams_[parts.mesh.tile_at(corner)];
    if (!dram) {
      const std::string dram_name = fmt::format("dram_{}_{}", corner.x, corner.y);
      dram = std::make_unique<Dram>(dram_name.c_str(), parts.network.calendar, parts.network.hardware, cores_);
    }
    if (tile->core->dram) tile->core->dram->bind(*dram);
    tile->dram = dram.get();
  }
}

}  // namespace wafersim::sim
