#pragma once

#include <array>

#include "base/units.h"
#include "sim/pool.h"
#include "sim/port_clock.h"
#include "topology/routing_policy.h"
#include "workloads/plan.h"

namespace wafersim::sim {

/// What a tile last waited for: [from, to) and why. A message carries its sender's, so that a receiver that waited for a
/// message not yet posted can tell what the chain of unposted messages ended in.
enum class WaitCause : std::uint8_t { none, exposed, bubble, idle };
struct WaitInterval {
  Cycle from = 0;
  Cycle to = 0;
  WaitCause cause = WaitCause::none;
  workloads::Axis axis = workloads::Axis::none;  ///< of `exposed`
};
/// The last two, the latest at the end: a tile often waits for the pipeline first and then for a message of its group.
using WaitHistory = std::array<WaitInterval, 2>;

struct Message {
  // What each of its packets touches comes first.
  std::uint32_t next = kNil;
  TileId source = kNoTile;
  TileId destination = kNoTile;
  workloads::Axis axis = workloads::Axis::none;
  std::uint8_t vc = 0;             ///< of its next packet
  std::uint16_t ports = 0;         ///< injection ports that its next packet may take, where they are not always the same
  bool special = false;            ///< one of the five members from `streamed` on is set
  bool trained = false;            ///< it has left as a train: the last three members are
  Bytes bytes_to_inject = 0;
  Bytes bytes_to_eject = 0;
  Cycle injected = kNever;           ///< first packet leaves the NIC
  Cycle last_tail = 0;               ///< latest tail through the ejection port so far
  Cycle queued = 0;                  ///< sum over packets and links of (grant - first bid)

  Bytes bytes = 0;
  std::uint64_t key = 0;
  std::uint64_t send_token = 0;      ///< handed back to the sending core when the send completes
  Cycle posted = 0;
  WaitHistory sender_wait{};
  std::int32_t sender_stage = 0;
  std::uint32_t tensor = 0;
  // Not of plain policies.
  topology::Travel travel{};       ///< of its next packet
  std::uint64_t number = 0;        ///< among those of its source

  bool streamed = false;             ///< used by its receiver as it comes in
  std::uint8_t lane = 0;             ///< of carriers, see Multicasts
  std::uint32_t stream = kNil;       ///< of a streamed message that comes in: its entry in StreamBoard
  std::uint32_t follows = kNil;      ///< in StreamBoard
  std::uint32_t multicast = kNil;    ///< in Multicasts

  // See Trains: the train, until it is settled, and when the message is sent and received as far as is known. Events of other
  // cycles are not for it.
  std::uint32_t train = kNil;
  Cycle sent_at = kNever;
  Cycle received_at = kNever;
};

/// What a multicast has of the router where its ways part.
struct Fork {
  std::uint32_t turn_wait;   ///< branches that turn bid so long after the others
  bool credit_later;         ///< the latest tail so far is in the middle of its cycle
};

/// A packet in flight. It moves through virtual cut-through routers whole: `tail` says when its last byte can go
/// on. One cache line.
struct alignas(64) Packet {
  std::uint32_t next = kNil;         ///< the packet behind it in its VC
  std::uint32_t message = kNil;
  TileId destination = kNoTile;
  std::uint8_t vc = 0;               ///< in which it is in the router it is in or on its way to
  std::uint8_t input = 0;            ///< input port there
  std::uint8_t output = 0;           ///< output port that it takes there, once that is known
  workloads::Axis axis = workloads::Axis::none;
  std::uint32_t bytes = 0;           ///< a VC buffer, which has to hold it, is below 4 GiB
  std::uint8_t output_vc = 0;        ///< VC that it takes behind that port
  bool multicast = false;            ///< `destination` is a number in Multicasts
  std::uint16_t branches = 0;        ///< of a multicast where its ways part: the outputs that it has still to leave by
  union {
    topology::Travel travel{};       ///< not of plain policies; once the output is known, that of the link behind it
    Fork fork;                       ///< of a multicast where its ways part; multicasts need plain policies
  };
  Cycle queued = 0;                  ///< sum over the routers so far of (grant - first bid)
  Cycle bid_at = 0;                  ///< first bid at the router it is in
  ExactTime tail;                    ///< earliest time at which its tail can leave the router it is in
};
static_assert(sizeof(Packet) == 64);

using MessagePool = Pool<Message>;
using PacketPool = Pool<Packet>;

}  // namespace wafersim::sim
