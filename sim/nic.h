#pragma once

#include <functional>
#include <vector>

#include "sim/credited_ports.h"
#include "sim/mailbox.h"
#include "sim/measurements.h"
#include "sim/network.h"

namespace wafersim::sim {

class RouterEngine;
class Sram;
struct Train;

/// A tile's network interface: sends and receives messages. It always consumes what arrives; a message that comes before its
/// receive is posted waits in communication buffers. With models::Fidelity::ideal a message arrives in the
/// cycle in which it is sent, otherwise it is cut into packets and injected into the router, ready messages of an
/// injection port in turn, packet by packet, in order of posting. Where packets of a message may go by several ports, a port that is
/// free takes the first message in line whose next packet may go by it.
class Nic final : public sc_core::sc_module, public Client, public NicIf, public TerminalIf {
  /// Updates.
  enum Kind : unsigned { kReady, kSendDone, kReceived, kInject, kStream };

  /// One injection port.
  struct Lane {
    PortClock clock;
    Cycle wake_at = kNever;
    Cycle last_injection = kNever;
    // Ready messages, next to serve first, linked by Message::next; see line_of().
    std::uint32_t first = kNil;
    std::uint32_t last = kNil;
    std::uint32_t train = kNil;  ///< that its only message has left as, see Trains
  };

  // What every packet touches comes first, before the ports, which are large.
  NetworkContext& network_;
  const std::vector<Nic*>& directory_;
  TileId tile_;
  unsigned first_port_;  ///< of its router: where its injection ports begin
  unsigned vcs_;
  std::uint32_t pending_lanes_ = 0;
  bool common_line_;                      ///< of all lanes: packets of a message may leave by several
  // What the ports are bound to: one load less than a call through a port.
  RouterEngine* router_ = nullptr;        ///< null when it is none of ours
  PacketSink* other_router_ = nullptr;
  CoreIf* core_ = nullptr;
  SramIf* sram_ = nullptr;
  Sram* memory_ = nullptr;                ///< null when it is none of ours
  HotLines core_lines_;
  HotLines sram_lines_;
  CreditedPorts<Lane> lanes_;
  Mailbox mailbox_;
  const std::function<void(const MessageRecord&)>* message_sink_ = nullptr;
  // Messages whose overhead is not over, linked by Message::next.
  std::uint32_t first_preparing_ = kNil;
  std::uint32_t last_preparing_ = kNil;
  std::uint64_t messages_sent_ = 0;
  std::uint64_t messages_received_ = 0;
  std::uint64_t packets_injected_ = 0;
  Bytes bytes_injected_ = 0;
  Bytes bytes_ejected_ = 0;
  Bytes bytes_sent_ = 0;
  Bytes bytes_copied_ = 0;  ///< for the second and later receivers of multicasts
  Bytes bytes_received_ = 0;

 public:
  static constexpr std::size_t kHotBytes = 384;

  using MessageSink = std::function<void(const MessageRecord&)>;

  /// `directory` has the NIC of each tile, by tile id.
  Nic(sc_core::sc_module_name name, TileId tile, NetworkContext& network, const std::vector<Nic*>& directory);

  sc_core::sc_port<PacketSink> router{"to_router"};
  sc_core::sc_port<CoreIf> core{"to_core"};
  sc_core::sc_port<SramIf> sram{"to_sram"};

  void post_send(const SendRequest& request) override;
  void post_forward(const SendRequest& request, std::span<const TileId> receivers,
                    std::span<const StreamSource> follows) override;
  bool post_receive(const ReceiveRequest& request) override;
  void eject(std::uint32_t packet, Cycle head_at, const ExactTime& tail_at) override;
  void credit(unsigned output, unsigned vc, Bytes bytes, Cycle at) override;
  void update(unsigned kind, std::uint32_t payload) override;
  void evaluate() override;
  void prefetch(unsigned kind, std::uint32_t payload) const override;
  void prefetch_more(unsigned kind, std::uint32_t payload) const override;
  void prefetch_evaluation() const override;
  HotLines hot_lines() const override;
  void prefetch_call() const override;

  void set_message_sink(const MessageSink* sink) { message_sink_ = sink; }
  /// Fills the message and byte counts.
  void measure(Cycle end, TileMeasurement& out);
  /// Its state, see sim/state_archive.h.
  template <class Archive>
  void visit(Archive& archive);
  /// What the payload of an update is.
  static bool names_message(unsigned kind) { return kind == kSendDone || kind == kReceived; }
  static bool ends_send(unsigned kind) { return kind == kSendDone; }
  const Mailbox& mailbox() const { return mailbox_; }
  std::uint64_t packets_injected() const { return packets_injected_; }
  /// Of a train, see Trains::settle().
  void count_ejected(Bytes bytes) { bytes_ejected_ += bytes; }
  void settle(const Train& train, Cycle cycle);

 private:
  void end_of_elaboration() override;
  std::uint32_t open_message(const SendRequest& request, TileId destination);
  void launch(std::uint32_t message);
  unsigned lane_for(TileId destination) const;
  unsigned lane_of(const Message& message) const;
  Lane& line_of(unsigned lane) { return lanes_[common_line_ ? 0 : lane]; }
  bool may_take(unsigned lane, const Message& message) const {
    return !common_line_ || (message.ports >> lane & 1U) != 0;
  }
  void send_off(Message& message) const;
  void prepare(std::uint32_t message);
  void first_prepared();
  void make_ready(std::uint32_t message);
  void serve(unsigned lane);
  bool may_depart(unsigned lane, const Message& message) const;
  bool depart(unsigned lane, std::uint32_t message);
  bool is_sent(const Message& message) const;
  void record_left(std::uint32_t index) const;
  bool is_received(std::uint32_t message);
  static bool changed(Cycle& known, Cycle at);
  void inject(unsigned lane, std::uint32_t message, std::uint32_t before);
  void append(Lane& line, std::uint32_t message);
  void wait_for_credit(unsigned lane);
  void wake(unsigned lane, Cycle at);
  void deliver_ideal(std::uint32_t message);
  std::vector<std::uint32_t> open_multicast(const SendRequest& request, std::span<const TileId> receivers);
  void forward_ideal(std::span<const std::uint32_t> messages, std::span<const StreamSource> follows);
  void deliver_all_ideal(std::uint32_t first);
  void release_ideal(std::uint32_t send);
  void take_in_ideal(Message& message);
  void follow(std::span<const std::uint32_t> parts, std::span<const StreamSource> follows);
  Bytes largest_packet(const Message& message) const {
    if (!message.special || message.multicast == kNil) [[likely]] return network_.hardware.packet_bytes;
    return network_.multicast_packet_bytes;
  }
  bool may_leave(const Message& message, Bytes bytes, Cycle now);
  ExactTime mark(Packet& packet, std::uint32_t message);
  bool all_left(const Message& message);
  void take_in(Message& message, std::uint32_t packet, Cycle head_at, const ExactTime& tail_at);
  void taken(const Message& message);
  void receive(std::uint32_t message);
  void hand_over(std::uint32_t message, Bytes expected);
  static Arrival arrival_of(const Message& message);
  template <class Archive>
  void visit_sends(Archive& archive, std::uint32_t& first, std::uint32_t& last);
};

}  // namespace wafersim::sim
