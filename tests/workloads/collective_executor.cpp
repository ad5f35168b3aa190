#include "tests/workloads/collective_executor.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "base/error.h"
#include "base/random.h"
#include "workloads/shard.h"

namespace wafersim::workloads {
namespace {

using Numbers = std::vector<std::uint64_t>;

/// Where the numbers that an operation names stand in the vector.
std::vector<std::size_t> places_of(const Trace& trace, const Op& op) {
  std::vector<std::size_t> places;
  for (const View& view : trace.meanings.at(op.operand.meaning).writes) {
    for (std::size_t i = view.region.row; i < view.region.row_end(); ++i) places.push_back(i);
  }
  return places;
}

class Executor {
 public:
  Executor(const Trace& trace, std::vector<Numbers>& vectors, std::uint64_t seed)
      : trace_(trace), vectors_(vectors), random_(seed, "collective executor") {
    for (const TileBinding& tile : trace.tiles) {
      const std::vector<Op>& ops = template_of(tile.tile).ops;
      landed_.emplace_back(ops.size());
      held_.push_back(0);
      missing_.emplace_back();
      dependents_.emplace_back(ops.size());
      left_ += ops.size();
      for (OpId op = 0; op < ops.size(); ++op) {
        for (const OpId earlier : dependencies_of(tile.tile, op)) dependents_.back()[earlier].push_back(op);
        missing_.back().push_back(ops[op].dependency_count);
        if (ops[op].dependency_count == 0) runnable_.push_back({tile.tile, op});
      }
    }
  }

  Bytes run() {
    while (!runnable_.empty()) {
      std::swap(runnable_[random_.below(runnable_.size())], runnable_.back());
      const Instance instance = runnable_.back();
      runnable_.pop_back();
      if (perform(instance)) complete(instance);
    }
    require_invariant(left_ == 0, "the collective stalls");
    require_invariant(in_flight_.empty(), "a message is never received");
    for (const Bytes held : held_) require_invariant(held == 0, "landing buffers are left");
    return peak_;
  }

 private:
  struct Instance {
    TileId tile = 0;
    OpId op = 0;
  };
  using Address = std::tuple<TileId, TileId, std::uint32_t>;

  const StepTemplate& template_of(TileId tile) const {
    const Program& program = trace_.programs[trace_.tiles[tile].program];
    return trace_.templates[program.steps.at(0).step_template];
  }
  std::vector<OpId> dependencies_of(TileId tile, OpId op) const {
    const StepTemplate& ops = template_of(tile);
    const auto first = ops.dependencies.begin() + ops.ops[op].first_dependency;
    return {first, first + ops.ops[op].dependency_count};
  }
  const Op& op_of(const Instance& instance) const { return template_of(instance.tile).ops[instance.op]; }

  void complete(const Instance& instance) {
    --left_;
    for (const OpId later : dependents_[instance.tile][instance.op]) {
      if (--missing_[instance.tile][later] == 0) runnable_.push_back({instance.tile, later});
    }
  }

  /// False for a receive whose message has not been sent; it acts when it is.
  bool perform(const Instance& instance) {
    const Op& op = op_of(instance);
    switch (op.kind) {
      case OpKind::send:
      case OpKind::multicast:
        for (const std::uint32_t peer : peers_of(template_of(instance.tile), op)) send(instance.tile, op, peer);
        return true;
      case OpKind::receive:
        return receive(instance, op);
      case OpKind::reduce:
        reduce(instance, op);
        return true;
      case OpKind::allocate:
        held_[instance.tile] += op.bytes;
        peak_ = std::max(peak_, held_[instance.tile]);
        return true;
      case OpKind::free:
        require_invariant(held_[instance.tile] >= op.bytes, "memory is freed that is not held");
        held_[instance.tile] -= op.bytes;
        return true;
      default:
        return true;
    }
  }

  void send(TileId tile, const Op& op, std::uint32_t peer) {
    const Numbers& own = vectors_[tile];
    Numbers carried;
    for (const std::size_t place : places_of(trace_, op)) carried.push_back(own[place]);
    require_invariant(carried.size() == op.bytes, "a message carries what it names");
    const Address address{tile, trace_.peer(trace_.tiles[tile], peer), op.channel};
    const bool fresh = in_flight_.emplace(address, std::move(carried)).second;
    require_invariant(fresh, "two messages under way share a channel");
    if (const auto receiver = posted_.extract(address); !receiver.empty())
      runnable_.push_back(receiver.mapped());
  }

  bool receive(const Instance& instance, const Op& op) {
    const Address address{trace_.peer(trace_.tiles[instance.tile], op.peer), instance.tile, op.channel};
    const auto message = in_flight_.extract(address);
    if (message.empty()) {
      posted_.emplace(address, instance);
      return false;
    }
    require_invariant(message.mapped().size() == op.bytes, "a message has one size");
    Numbers& own = vectors_[instance.tile];
    if (op.operand.partial) {
      landed_[instance.tile][instance.op] = message.mapped();
    } else {
      std::size_t next = 0;
      for (const std::size_t place : places_of(trace_, op)) own[place] = message.mapped()[next++];
    }
    return true;
  }

  void reduce(const Instance& instance, const Op& op) {
    const auto [tile, number] = instance;
    const std::vector<std::size_t> places = places_of(trace_, op);
    for (const OpId dependency : dependencies_of(tile, number)) {
      if (template_of(tile).ops[dependency].kind != OpKind::receive) continue;
      Numbers& landed = landed_[tile][dependency];
      require_invariant(landed.size() == places.size(), "a reduction adds what has landed, once");
      for (std::size_t k = 0; k < landed.size(); ++k) vectors_[tile][places[k]] += landed[k];
      landed.clear();
    }
  }

  const Trace& trace_;
  std::vector<Numbers>& vectors_;
  RandomStream random_;
  std::vector<std::vector<std::uint32_t>>
      missing_;  ///< dependencies that are not complete, by tile and operation
  std::vector<std::vector<std::vector<OpId>>> dependents_;
  std::size_t left_ = 0;                      ///< operations that are not complete
  std::vector<std::vector<Numbers>> landed_;  ///< by tile and receive
  std::vector<Bytes> held_;
  Bytes peak_ = 0;
  std::vector<Instance> runnable_;
  std::map<Address, Instance> posted_;
  std::map<Address, Numbers> in_flight_;
};

OpId start_operation(StepBuilder& builder) { return builder.vector(Work{}, {}); }

void lower_member(StepBuilder& builder, const Group& group, const CollectiveCase& wanted) {
  const std::uint32_t tensor = builder.tensor("vector");
  const CollectiveVector vector{wanted.bytes, wanted.bytes, tensor,
                                {{.tensor = tensor, .region = {0, wanted.bytes, 0, 1}}}};
  const std::vector<OpId> after{start_operation(builder)};
  switch (wanted.kind) {
    case CollectiveKind::all_gather:
      all_gather(builder, group, wanted.algorithm, vector, after, wanted.chunks);
      break;
    case CollectiveKind::reduce_scatter:
      reduce_scatter(builder, group, wanted.algorithm, vector, after, wanted.chunks);
      break;
    case CollectiveKind::all_reduce:
      all_reduce(builder, group, wanted.algorithm, vector, after, wanted.chunks);
      break;
  }
}

}  // namespace

Trace lower_case(const CollectiveCase& wanted) {
  Trace trace;
  trace.statics.emplace_back();
  const int size = wanted.shape.size();
  for (int rank = 0; rank < size; ++rank) {
    StepBuilder builder(trace, "collective");
    lower_member(builder, {Axis::tp, size, rank, wanted.shape, wanted.positions, 0}, wanted);
    Program program;
    program.steps.emplace_back().step_template = builder.finish();
    TileBinding binding;
    binding.tile = static_cast<TileId>(rank);
    binding.program = static_cast<std::uint32_t>(trace.programs.size());
    binding.first_peer = static_cast<std::uint32_t>(trace.peers.size());
    binding.peer_count = static_cast<std::uint32_t>(size);
    for (int i = 0; i < size; ++i) trace.peers.push_back(static_cast<TileId>((rank + i) % size));
    trace.programs.push_back(program);
    trace.tiles.push_back(binding);
  }
  return trace;
}

Bytes execute(const Trace& trace, std::vector<Numbers>& vectors, std::uint64_t seed) {
  return Executor(trace, vectors, seed).run();
}

std::pair<std::size_t, std::size_t> shard_bytes(const CollectiveCase& wanted, int chunk, int rank) {
  const Range shard = share_range(wanted.bytes, wanted.shape.size(), rank);
  const Range part = share_range(shard.count, wanted.chunks, chunk);
  return {shard.first + part.first, shard.first + part.end()};
}

}  // namespace wafersim::workloads
