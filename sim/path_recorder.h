#pragma once

#include <algorithm>
#include <array>
#include <span>
#include <utility>
#include <vector>

#include <boost/container/small_vector.hpp>

#include "base/huge_pages.h"
#include "sim/compiled_trace.h"
#include "sim/measurements.h"
#include "sim/network.h"
#include "sim/path_tree.h"

namespace wafersim::sim {

class PathRecorder;
class StateWriter;
struct NamedRecords;
struct StateShift;
struct Train;

/// What a core tells of why its operations start: what completed, became ready or freed an engine in the
/// cycle in which one starts. One of them did: otherwise it would have started earlier.
class CorePath {
 public:
  CorePath(PathRecorder& all, TileId tile) : all_(all), tile_(tile) {}

  /// The network tells of an operation, with the cause that it has left in the recorder.
  void completed(std::uint64_t token);
  /// An operation without duration became ready and completes in this cycle.
  void instant(std::uint64_t token) { completions_.push_back({token, cause_}); }
  /// What follows is because of the completion of `token`; of no completion that is known: because of what
  /// came before.
  void completing(std::uint64_t token);
  void became_ready(std::uint64_t token) { ready_.push_back({token, cause_}); }
  /// A message is sent now.
  void sending() const;
  void result(std::uint32_t step) { results_.push_back({step, cause_}); }
  /// A step that waits for these opens.
  void opening(std::span<const std::uint32_t> waits, Cycle now);
  /// Of an operation: what it computes, and how long its own bytes take through memory.
  struct Needs {
    Cycle compute = 0;
    Cycle sram_cycles = 0;
    Bytes dram_bytes = 0;
  };
  void engine_started(Engine engine, std::uint64_t token, const Needs& needs, Cycle now);
  struct Stopped {
    std::uint64_t token = 0;
    workloads::OpKind kind = workloads::OpKind::matrix;
    workloads::Axis axis = workloads::Axis::none;
    std::uint32_t step = 0;
  };
  void engine_stopped(Engine engine, const Stopped& operation, Cycle now);
  /// An operation of no cycles starts and ends.
  void engine_passed(Engine engine, std::uint64_t token, Cycle now);
  void step_closed(Cycle now) const;
  /// Calls `visit` with the ends of all chains here.
  template <class Visit>
  void visit_ends(const Visit& visit) {
    visit(cause_);
    visit(opened_);
    for (Noted* const list : {&completions_, &ready_, &results_}) {
      for (auto& [key, path] : *list) visit(path);
    }
    for (Started& started : started_) visit(started.path);
    for (Freed& freed : freed_) visit(freed.path);
  }
  /// How many ends there are.
  void write_relative(StateWriter& writer) const;
  /// It is so many cycles later, but for the ends.
  void move(Cycle by);
  /// The core here did what another one did.
  void copy(const CorePath& other);
  /// All that could start in this cycle has.
  void evaluated() {
    ready_.clear();
    results_.clear();
  }

 private:
  /// Mostly so short that it lies here.
  using Noted = boost::container::small_vector<std::pair<std::uint64_t, PathRef>, 2>;

  PathRef why(Engine engine, std::uint64_t token, Cycle now) const;

  PathRecorder& all_;
  TileId tile_;
  PathRef cause_;   ///< of what is being done
  PathRef opened_;  ///< the latest step
  Cycle opened_at_ = 0;
  Noted completions_;  ///< by token
  Noted ready_;        ///< in this cycle, by token
  Noted results_;      ///< in this cycle, by step
  struct Started {
    PathRef path;
    Cycle compute = 0;
    Cycle memory = 0;
  };
  std::array<Started, kEngines> started_;
  struct Freed {
    Cycle at = kNever;
    PathRef path;
  };
  std::array<Freed, kEngines> freed_;
};

/// Records, while a simulation runs, the chain of last arrivals that leads to everything that is under way:
/// each operation and packet holds the end of its own, chains share what they have in common, and what no
/// chain leads over any more is forgotten now and then. At the end the chain of the last step is the critical
/// path.
///
/// A packet's chain: it was injected because its message was ready, or its message's packet ahead had left,
/// or the packets that it follows had come in, whichever was last; what it waited beyond that was for others.
/// So it is at each router: where the packet ahead of its own message held it up, the chain goes on from
/// there, and serialization of one message is nobody's queueing. What packets of a train did is known when it is asked for.
class PathRecorder {
 public:
  /// Both must outlive this.
  PathRecorder(const CompiledTrace& trace, const NetworkContext& network);

  PathTree& tree() { return tree_; }
  /// Between two calls of anything else here: the ends of all chains are where collect() finds them.
  void tidy() {
    if (tree_.has_to_collect()) [[unlikely]] collect();
  }
  Cycle dram_cycles(Bytes bytes) const {
    __extension__ using Wide = unsigned __int128;
    const Rational& rate = network_.hardware.dram_bytes_per_cycle;
    return static_cast<Cycle>(Wide{bytes} * static_cast<std::uint64_t>(rate.den()) / static_cast<std::uint64_t>(rate.num()));
  }
  CorePath& core(std::size_t used_tile) { return cores_[used_tile]; }
  /// Of what a core or a NIC tells the other in this call.
  PathRef cause;

  void step_closed(const PathRef& path, TileId tile, Cycle now);
  /// The path to the end of a run of `end` cycles; not complete when there were more nodes than are kept.
  PathMeasurement take(Cycle end) const;

  // Of what is not simulated, see path_folds.cpp. `named` is what relative state has under way.
  /// What relative state does not have and the path depends on.
  void write_relative(StateWriter& writer);
  void begin_period(const NamedRecords& named);
  void end_period(const NamedRecords& named, const StateShift& one, std::uint64_t times);
  void drop_period();
  /// Messages and packets that had the numbers `from` have `to`, and it is so many cycles later.
  void renumber(const NamedRecords& from, const NamedRecords& to, Cycle by);
  /// Replica `number` did what the first one did: `moved` is by tile where that lies in it, `cores` which used tile which is.
  struct Replica {
    std::uint32_t number = 0;
    const std::vector<TileId>& moved;
    std::vector<std::pair<std::size_t, std::size_t>> cores;
    const NamedRecords& from;
    const NamedRecords& to;
  };
  void copy_first_replica(const Replica& replica);
  /// To all of them.
  void all_copied();

  // Of messages and packets, by their numbers in NetworkContext.
  /// Because of `cause`.
  void posted(std::uint32_t message);
  /// A carrier of a multicast starts as one of its messages does.
  void carried(std::uint32_t carrier, std::uint32_t like) { copy(messages_, carrier, like); }
  void ready(std::uint32_t message, Cycle now);
  struct Injection {
    Cycle now = 0;
    Cycle others_until = 0;  ///< before it, the port was taken until then
    Cycle port_until = 0;    ///< the next packet may go then
  };
  void injected(std::uint32_t message, std::uint32_t packet, const Injection& times);
  /// The whole message has left the NIC: leaves the cause.
  void left(std::uint32_t message, Cycle now);
  /// At the ejection port, which the tail leaves at `tail`. `latest`: no other packet of the message comes in
  /// later.
  void ejected(std::uint32_t message, std::uint32_t packet, bool latest, Cycle tail);
  /// Leaves the cause.
  void received(std::uint32_t message, Cycle now);
  /// On the ideal network, because of `cause`.
  void delivered(std::uint32_t message);
  void gone(std::uint32_t message) { messages_[message].under_way = false; }

  // Of streams, by their numbers in StreamBoard.
  void stream_begun(std::uint32_t entry) { at(streams_, entry).clear(); }
  void stream_arrived(std::uint32_t entry, std::uint32_t packet, Bytes bytes, Cycle usable_at);
  /// The next packet of `message`, which ends behind `bytes` bytes, follows these.
  void follows(std::uint32_t message, std::span<const std::uint32_t> entries, Bytes bytes);

  // Of trains, see path_trains.cpp.
  /// The whole message of a train that is under way has left the NIC: leaves the cause.
  void left(const Train& train, Cycle now);
  /// Ends a train: takes down what its packets did before `cycle`.
  void settled(const Train& train, Cycle cycle);
  /// Packet `number` of a train has come into being as `packet`. It waits for the output of `stage`, if it has arrived.
  void placed(const Train& train, std::uint64_t number, std::size_t stage, std::uint32_t packet, bool arrived);

  // Of packets in routers.
  void arrived(std::uint32_t packet, Cycle now, Cycle pipeline, Cycle turn);
  void turned(std::uint32_t packet, Cycle turn);
  void copied(std::uint32_t copy, std::uint32_t original) {
    enter_grants();
    PathRecorder::copy(packets_, copy, original);
  }
  struct Grant {
    TileId tile = kNoTile;
    unsigned input_vc = 0;
    unsigned output = 0;
    Cycle now = 0;
    Cycle others_until = 0;  ///< before it, the port was taken until then
    Cycle port_until = 0;    ///< the packet behind it in its VC may be granted then
  };
  void granted(std::uint32_t packet, const Grant& grant);  // entered with others, before anybody asks for a way
  /// The same in a router of flits, `waited` cycles after the head could have left.
  void head_sent(std::uint32_t packet, TileId tile, unsigned output, Cycle now, Cycle waited);
  void packet_gone(std::uint32_t packet) { way_of(packet).path = {}; }

 private:
  /// The end of a chain, up to a cycle. What came since its last node was on wires, but for the waits: each
  /// goes into a node with others like it, so that a message of many packets has few. Three kinds of tables are full of these,
  /// and each is as small as a cache line or a part of one: cycles are counted from the end of the chain, up to 2^32.
  struct Way {
    Cycle at() const { return path.to + after; }
    /// From the end of a chain. Member by member: assigned from another way they would be read before they are there.
    void start_over(const PathRef& from) {
      path = from;
      after = router = link = injection_queue = injection_room = ejection_queue = link_queue = link_room = 0;
    }

    [[no_unique_address]] PathRef path;
    std::uint32_t after = 0;  ///< it has come that far beyond its last node
    std::uint32_t router = 0;
    std::uint32_t link = 0;
    std::uint32_t injection_queue = 0;
    std::uint32_t injection_room = 0;
    std::uint32_t ejection_queue = 0;
    std::uint32_t link_queue = 0;  ///< at the latest link at which it waited
    std::uint32_t link_room = 0;
    topology::LinkId link_waited = 0;
  };
  static_assert(sizeof(Way) == 48);
  struct alignas(64) MessageWay {
    PathRef ready;
    Cycle port_until = 0;  ///< after the latest packet
    [[no_unique_address]] PathRef followed;  ///< what the next packet waits for last
    std::uint32_t serial = 0;
    Way injected;  ///< its latest packet
    Way arrived;   ///< its latest packet through the ejection port
    bool under_way = false;
    bool has_injected = false;
    bool has_arrived = false;
  };
  static_assert(sizeof(MessageWay) == 192);
  struct alignas(64) PacketWay {
    Way way;
    std::uint32_t serial = 0;  ///< of its message
    bool several = false;      ///< its message has other packets
  };
  static_assert(sizeof(PacketWay) == 64);
  /// The latest packet of a message of several that was granted an output from an input VC.
  struct alignas(64) VcWay {
    std::uint32_t message = kNil;
    std::uint32_t serial = 0;  ///< of the message: its number may be another one's by now
    Cycle port_until = 0;
    Way way;
  };
  static_assert(sizeof(VcWay) == 64);
  /// What has been granted and is not in the ways yet: meanwhile these come from memory.
  struct Granted {
    std::uint32_t packet = 0;
    std::uint32_t message = 0;
    Cycle queue_until = 0;
    Grant grant;
  };
  struct StreamPacket {
    Bytes end = 0;  ///< its last byte is that many from the first of the message
    PathRef path;
  };

  /// A period that is not simulated as often as it comes.
  struct Period {
    Cycle length = 0;
    std::vector<std::uint32_t> steps;  ///< by tile: those of its program that it does in the period
    std::vector<PathRef> ends;         ///< of all chains at its end, by number
  };
  /// Where a stretch of the path is, seen from the chain that stands for it.
  struct Elsewhere {
    const Period* period = nullptr;
    std::uint64_t repetitions = 0;
    const std::vector<TileId>* moved = nullptr;
  };

  /// Of the way of a packet of a train: it goes on to a stage, or was held up there by the packet ahead, and that one by
  /// the one ahead, so many times.
  struct TrainStep {
    std::uint64_t packet = 0;
    std::size_t stage = 0;
    std::uint64_t held = 0;
  };

  template <class List>
  static typename List::value_type& at(List& list, std::size_t index) {
    if (index >= list.size()) list.resize(index + index / 2 + 16);
    return list[index];
  }
  template <class List>
  static void copy(List& list, std::size_t to, std::size_t from) {
    at(list, std::max(from, to));  // the list does not move from here on
    list[to] = list[from];
  }
  void enter_grants() {
    if (grants_ != 0) enter_all_grants();
  }
  void enter_all_grants();
  void enter(const Granted& granted);
  Way& way_of(std::uint32_t packet) {
    enter_grants();
    return at(packets_, packet).way;
  }
  void close(Way& way, const Message& message);
  void overhead(PathRef& path, Cycle until, const Message& message);
  void come_to(Way& way, Cycle cycle);
  void wait_at_injection(Way& way, Cycle queue_until, Cycle until);
  void wait_at_output(Way& way, Cycle queue_until, Cycle until, TileId tile, unsigned output,
                      std::uint32_t message);
  void arrive(MessageWay& message, Cycle tail);
  void leave(PathRef path, std::uint32_t queue, std::uint32_t room, std::uint32_t message, Cycle now);
  void inject(Way& way, const Train& train, std::uint64_t packet);
  void inject_before(const Train& train, std::uint64_t count);
  void make_way(Way& way, const Train& train, std::uint64_t packet, std::size_t stage);
  void go_on(Way& way, const Train& train, std::size_t stage);
  void wait_at(Way& way, const Train& train, std::size_t stage, Cycle queue_until, Cycle until);
  void advance(Way& way, const Train& train, std::uint64_t packet, std::size_t stage);
  void hold(Way& way, const Train& train, std::uint64_t packet, std::size_t stage, std::uint64_t times);

  void collect();
  template <class Visit>
  void visit_ends(const Visit& visit);

  /// The same ends in the same order in states that are equal.
  template <class Visit>
  void visit_numbered(const NamedRecords& named, const Visit& visit);
  std::vector<std::uint32_t> places_of(const std::vector<std::uint32_t>& numbers) const;
  std::uint32_t place_of(const VcWay& vc, const std::vector<std::uint32_t>& places) const;
  static void write_way(StateWriter& writer, const Way& way);
  PathRef repeated(std::size_t end, std::uint64_t times);
  void come_from_replica(PathRef& path, std::uint32_t replica);
  static void move(Way& way, const std::vector<TileId>& moved);

  void add_stretch(std::vector<PathSegment>& segments, const PathNode& node, const Elsewhere& where) const;
  template <class Visit>
  void walk(const Visit& visit) const;
  template <class Visit>
  std::uint32_t walk_repetitions(const PathNode& mark, Elsewhere where, const Visit& visit) const;

  const NetworkContext& network_;
  PathTree tree_;
  std::vector<CorePath> cores_;
  PathRef last_;
  Cycle last_end_ = 0;
  TileId last_tile_ = kNoTile;
  HugeVector<MessageWay> messages_;
  HugeVector<PacketWay> packets_;
  HugeVector<VcWay> vcs_;  ///< [tile, input VC]
  unsigned input_vcs_;
  std::array<Granted, 16> granted_;  ///< the first `grants_`, in the order in which they came
  std::size_t grants_ = 0;
  std::vector<std::vector<StreamPacket>> streams_;
  std::vector<TrainStep> steps_;  ///< of the way that is asked for
  std::uint32_t serial_ = 0;      ///< of the latest message
  std::vector<Period> periods_;
  Cycle period_begun_ = 0;
  std::vector<std::vector<TileId>> replicas_;  ///< by number: where the first one lies in it, by tile
};

}  // namespace wafersim::sim
