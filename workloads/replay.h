#pragma once

#include <array>
#include <deque>
#include <string>
#include <unordered_map>
#include <vector>

#include "topology/mesh.h"
#include "workloads/trace.h"

namespace wafersim::workloads {

/// Descriptions of faults, of which the first `limit` are kept.
class FaultList {
 public:
  explicit FaultList(std::size_t limit) : limit_(limit) {}
  /// `describe` is called only when there is room.
  template <class Describe>
  void add(const Describe& describe) {
    if (texts_.size() < limit_) texts_.push_back(describe());
  }
  const std::vector<std::string>& texts() const { return texts_; }

 private:
  std::size_t limit_;
  std::vector<std::string> texts_;
};

/// The part of check_trace that comes before a replay: indices, bindings, dependencies.
void check_structure(const Trace& trace, const topology::Mesh& mesh, FaultList& faults);

/// One operation of one step of one tile (an index into Trace::tiles).
struct OpInstance {
  std::uint32_t tile = 0;
  std::uint32_t step = 0;
  std::uint32_t op = 0;
  auto operator<=>(const OpInstance&) const = default;
};

/// Is told what happens in a replay, in an order that the rules permit.
class ReplayObserver {
 public:
  virtual ~ReplayObserver() = default;
  /// An operation acts; all that it depends on has. Not called for receives.
  virtual void performed(const OpInstance& at) = 0;
  /// A receive takes what `sender` sent; performed(sender) came before.
  virtual void received(const OpInstance& sender, const OpInstance& receiver) = 0;
};

/// Replays a trace in dataflow order, without time, by the rules at the top of trace.h: every operation acts
/// as soon as the rules permit, messages arrive at once. Work and memory are linear in the expanded
/// operations of the open steps. The trace must have passed the static checks of check_trace.
class Replay {
 public:
  Replay(const Trace& trace, const topology::Mesh& mesh, FaultList& faults, ReplayObserver* observer = nullptr);

  /// Adds a fault for each message of two sizes, and, when the replay stops before the end, for each posted
  /// receive or sent message without a counterpart anywhere in the trace and for each cycle of tiles that
  /// wait for each other.
  void run();

 private:
  using Instance = OpInstance;
  struct Address {
    TileId source = kNoTile;
    TileId destination = kNoTile;
    std::uint64_t key = 0;
    auto operator<=>(const Address&) const = default;
  };
  struct AddressHash {
    std::size_t operator()(const Address& address) const;
  };
  /// First in, first out.
  struct Queue {
    std::vector<Instance> items;
    std::size_t head = 0;
    bool empty() const { return head == items.size(); }
    Instance pop() { return items[head++]; }
  };
  /// Sends or posted receives that wait for their counterparts; never both.
  struct Pending {
    Queue sends;
    Queue receives;
  };
  struct OpenStep {
    std::vector<std::uint32_t> missing;  ///< by operation: incomplete dependencies, or kComplete
    std::uint32_t operations_left = 0;
    std::uint32_t results_left = 0;  ///< operations that are not detached
  };
  struct TileState {
    std::uint32_t next_step = 0;  ///< the first that is not open yet
    std::unordered_map<std::uint32_t, OpenStep> open;
    std::vector<bool> delivered;                  ///< by step
    std::array<std::deque<Instance>, 2> engines;  ///< matrix and vector operations in program order
  };
  struct Dependents {
    std::vector<std::uint32_t> first;  ///< by operation, one past the last too
    std::vector<std::uint32_t> ops;
  };
  using Counterparts = std::unordered_map<Address, std::vector<Instance>, AddressHash>;

  const Program& program(std::uint32_t tile) const { return trace_.programs[trace_.tiles[tile].program]; }
  const Step& step_of(const Instance& instance) const { return program(instance.tile).steps[instance.step]; }
  const StepTemplate& template_of(const Instance& instance) const {
    return trace_.templates[step_of(instance).step_template];
  }
  const Op& op_of(const Instance& instance) const { return template_of(instance).ops[instance.op]; }
  /// That of a message's `number`-th peer.
  Address address(const Instance& instance, std::size_t number = 0) const;
  std::span<const std::uint32_t> peers(const Instance& instance) const {
    return peers_of(template_of(instance), op_of(instance));
  }

  void index_dependents();
  void open_steps(std::uint32_t tile);
  void open_step(std::uint32_t tile, std::uint32_t step);
  void act(const Instance& instance);
  void drain(std::uint32_t tile, std::size_t engine);
  void match(const Instance& instance, const Address& where, bool is_send);
  void complete(const Instance& instance);
  void make_ready(const Instance& instance);
  void deliver(std::uint32_t tile, std::uint32_t step);

  bool is_complete(const Instance& instance) const;
  void collect_remaining(Counterparts& unsent, Counterparts& unposted) const;
  void report_stall();
  Instance blocking_receive(Instance instance) const;
  Instance first_incomplete(std::uint32_t tile, std::uint32_t step) const;
  void report_cycles(const std::vector<std::pair<Instance, Instance>>& waits);
  std::string describe(const Instance& message) const;
  std::string step_name(const Instance& message) const;

  const Trace& trace_;
  const topology::Mesh& mesh_;
  FaultList& faults_;
  ReplayObserver* observer_;
  std::vector<Dependents> dependents_;  ///< by template
  std::vector<TileState> tiles_;
  std::deque<Instance> ready_;
  std::unordered_map<Address, Pending, AddressHash> pending_;
  std::uint64_t steps_left_ = 0;
};

}  // namespace wafersim::workloads
