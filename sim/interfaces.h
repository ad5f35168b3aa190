#pragma once

#include <span>
#include <string>

#include <systemc>

#include "base/units.h"
#include "sim/packet.h"
#include "workloads/plan.h"

namespace wafersim::sim {

/// A stretch of memory that a call will touch. Whoever calls keeps it, so that asking for it touches nothing.
struct HotLines {
  const char* start = nullptr;
  std::size_t bytes = 0;
  void prefetch() const {
    for (std::size_t offset = 0; offset < bytes; offset += 64) __builtin_prefetch(start + offset);
  }
};

/// What a router offers to whoever sends into it: a neighbour router or the tile's NIC.
class PacketSink : virtual public sc_core::sc_interface {
 public:
  /// The head of `packet` reaches input port packet.input at `head_at`, its tail not before `tail_at`. The caller has
  /// taken a credit for it.
  virtual void receive(std::uint32_t packet, Cycle head_at, const ExactTime& tail_at) = 0;
};

/// What a sender into a router offers for the way back.
class CreditSink : virtual public sc_core::sc_interface {
 public:
  /// `bytes` of VC `vc` behind output `output` are free again from cycle `at` on.
  virtual void credit(unsigned output, unsigned vc, Bytes bytes, Cycle at) = 0;
};

/// What a NIC offers to its router.
class EjectionSink : virtual public sc_core::sc_interface {
 public:
  /// The tail of `packet` leaves the router's ejection port at `tail_at`. `head_at` is when its head does; where flits come one
  /// by one, its last flit's.
  virtual void eject(std::uint32_t packet, Cycle head_at, const ExactTime& tail_at) = 0;
};

/// What a router offers to a neighbour.
class RouterIf : public PacketSink, public CreditSink {};

/// What a NIC offers to its router: packets, and credits of its injection ports.
class TerminalIf : public EjectionSink, public CreditSink {};

struct SendRequest {
  TileId destination = kNoTile;
  std::uint64_t key = 0;
  Bytes bytes = 0;
  workloads::Axis axis = workloads::Axis::none;
  std::uint32_t tensor = 0;
  std::uint64_t token = 0;        ///< handed back in CoreIf::send_done
  WaitHistory sender_wait{};       ///< see Message
  std::int32_t sender_stage = 0;
  bool streamed = false;           ///< its receiver uses it as it comes in
};

/// A message that comes to a tile.
struct StreamSource {
  TileId source = kNoTile;
  std::uint64_t key = 0;
  bool operator==(const StreamSource&) const = default;
};

struct ReceiveRequest {
  TileId source = kNoTile;
  std::uint64_t key = 0;
  Bytes bytes = 0;
  std::uint64_t token = 0;        ///< handed back in CoreIf::received
};

/// What a received message tells the core.
struct Arrival {
  TileId source = kNoTile;
  std::uint64_t key = 0;
  workloads::Axis axis = workloads::Axis::none;
  Cycle posted = 0;
  WaitHistory sender_wait{};
  std::int32_t sender_stage = 0;
};

/// What a NIC offers to its core. Messages between two tiles with equal keys match in order of posting.
class NicIf : virtual public sc_core::sc_interface {
 public:
  /// Asks for a message to be sent; CoreIf::send_done follows when its last tail has left the NIC.
  virtual void post_send(const SendRequest& request) = 0;
  /// The same to one or more receivers (request.destination does not count), of a message whose bytes leave as those of
  /// `follows` come in; with none of them as those of any other. The core has taken none of `follows` yet.
  virtual void post_forward(const SendRequest& request, std::span<const TileId> receivers,
                            std::span<const StreamSource> follows) = 0;
  /// Asks for a message; returns true when it is already there, else CoreIf::received follows.
  virtual bool post_receive(const ReceiveRequest& request) = 0;
  /// What its calls touch, to be asked for ahead of them.
  virtual HotLines hot_lines() const { return {}; }
  /// A hint, once these are there: ask for the rest.
  virtual void prefetch_call() const {}
};

/// What a core offers to its NIC and DRAM. Called in the update phase.
class CoreIf : virtual public sc_core::sc_interface {
 public:
  virtual void send_done(std::uint64_t token) = 0;
  virtual void received(std::uint64_t token, const Arrival& arrival) = 0;
  virtual void dram_done(std::uint32_t engine) = 0;
  /// What its calls touch, to be asked for ahead of them.
  virtual HotLines hot_lines() const { return {}; }
};

/// What a tile's SRAM offers: capacity by class, and its port, on which the NIC has priority over the core.
class SramIf : virtual public sc_core::sc_interface {
 public:
  virtual void allocate(workloads::MemoryClass memory_class, Bytes bytes) = 0;
  virtual void free(workloads::MemoryClass memory_class, Bytes bytes) = 0;
  /// Of bytes of a class that are read or written now, those that pass through DRAM.
  virtual Bytes through_dram(workloads::MemoryClass /*memory_class*/, Bytes /*bytes*/) const { return 0; }
  /// The NIC reads or writes a packet: the port is busy for ceil(bytes / bandwidth) cycles, after earlier packets.
  virtual void nic_access(Bytes bytes) = 0;
  /// What allocate and free touch.
  virtual HotLines hot_lines() const { return {}; }
  /// Cycles in [0, now) in which the NIC held the port.
  virtual Cycle nic_busy_before_now() const = 0;
};

/// What a die's DRAM offers to the cores of its tiles.
class DramIf : virtual public sc_core::sc_interface {
 public:
  /// Reads or writes `bytes` for the running operation of `engine`; CoreIf::dram_done follows. First come, first served;
  /// requests of one cycle in order of tile, then engine.
  virtual void access(TileId tile, std::uint32_t engine, Bytes bytes) = 0;
};

}  // namespace wafersim::sim
