#pragma once

#include <array>
#include <functional>
#include <map>
#include <memory>

#include "sim/core.h"
#include "sim/dram.h"
#include "sim/flit_mesh.h"
#include "sim/nic.h"
#include "sim/router.h"
#include "sim/sram.h"
#include "sim/trace_core.h"

namespace wafersim::sim {

/// What the modules of a wafer are built from.
struct WaferParts {
  const topology::Mesh& mesh;
  NetworkContext& network;
  FlitMesh* flits;  ///< null: routers of packets
  const CompiledTrace& trace;
  StepRecorder& recorder;
  SharedByCores& shared_by_cores;
  std::function<std::unique_ptr<Core>(const char* name, TileId tile)> core_factory;
};

/// One tile. Every live tile has a router, of tiles that share one the first (Mesh::router()); those that the trace uses have an
/// SRAM, a NIC and a core too.
class Tile : public sc_core::sc_module {
 public:
  /// `binding` is null on tiles that run nothing. `nics` has the NIC of each tile, by tile id. `host` is the tile whose router
  /// this one shares, null for its own.
  Tile(sc_core::sc_module_name name, TileId id, const workloads::TileBinding* binding, const WaferParts& parts,
       const std::vector<Nic*>& nics, Tile* host);

  TileId id() const { return id_; }
  bool used() const { return core != nullptr; }

  // One of the two, or none where it shares that of another tile.
  std::unique_ptr<Router> router;
  std::unique_ptr<FlitRouter> flit_router;
  // In the network's arena, as the state of the router: on huge pages, a tile's together.
  Arena::Owned<Sram> sram;
  Arena::Owned<Nic> nic;
  Core* core = nullptr;
  Dram* dram = nullptr;  ///< of its die; null where there is none
  std::size_t used_index = 0;  ///< among the wafer's used tiles

  /// The core when it is ours, else null.
  TraceCore* trace_core() const { return trace_core_.get(); }

 private:
  void bind_nic(Tile& host, unsigned slot);

  Arena::Owned<TraceCore> trace_core_;
  std::unique_ptr<Core> other_core_;  ///< of WaferParts::core_factory
  TileId id_;
};

/// The modules of one wafer, built and bound: `wafer0.tile_x_y.{router,sram,nic,core}`, and `wafer0.dram_x_y` for each die that
/// has a used tile.
class Wafer : public sc_core::sc_module {
 public:
  Wafer(sc_core::sc_module_name name, const WaferParts& parts);
  ~Wafer() override;

  /// Live tiles, ascending.
  const std::vector<Tile*>& tiles() const { return tiles_; }
  const Tile& tile(TileId id) const { return *by_id_[id]; }
  /// Tiles that run something, ascending.
  const std::vector<Tile*>& used_tiles() const { return used_; }
  /// By the north-west tile of the die.
  const std::map<TileId, std::unique_ptr<Dram>>& drams() const { return drams_; }

 private:
  void build_tiles(const WaferParts& parts, const std::vector<const workloads::TileBinding*>& bindings);
  void bind_links(const WaferParts& parts);
  void bind_drams(const WaferParts& parts);

  /// So that the modules of a wafer go in a time proportional to their number. SystemC looks for a port that goes among all
  /// ports from the youngest on, so they must go youngest first; for a module it looks from the oldest on, and puts the youngest
  /// in the place of the one that has gone. When these two, which are older than all tiles, go first, their places near the front
  /// are from then on those of the youngest: a module that elaboration adds at the end, and the last of the tiles' that is left.
  struct Eldest : sc_core::sc_module {
    explicit Eldest(sc_core::sc_module_name name) : sc_module(name) {}
  };
  std::array<std::unique_ptr<Eldest>, 2> eldest_;
  std::vector<std::unique_ptr<Tile>> built_;  ///< in that order
  std::vector<Tile*> tiles_;
  std::vector<Tile*> by_id_;    ///< null for dead tiles
  std::vector<Tile*> used_;
  std::vector<Nic*> nics_;      ///< by tile id
  std::vector<CoreIf*> cores_;  ///< by tile id
  std::map<TileId, std::unique_ptr<Dram>> drams_;
};

}  // namespace wafersim::sim
