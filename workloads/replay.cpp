#include "workloads/replay.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/error.h"
#include "base/random.h"
#include "base/text.h"

namespace wafersim::workloads {
namespace {

constexpr std::uint32_t kComplete = ~std::uint32_t{0};

bool uses_engine(const Op& op) { return op.kind == OpKind::matrix || op.kind == OpKind::vector; }
std::size_t engine_of(const Op& op) { return op.kind == OpKind::matrix ? 0 : 1; }
bool sends(const Op& op) { return op.kind == OpKind::send || op.kind == OpKind::multicast; }

}  // namespace

std::size_t Replay::AddressHash::operator()(const Address& address) const {
  return mix_bits(mix_bits(std::uint64_t{address.source} << 32 | address.destination) ^ address.key);
}

Replay::Replay(const Trace& trace, const topology::Mesh& mesh, FaultList& faults, ReplayObserver* observer)
    : trace_(trace), mesh_(mesh), faults_(faults), observer_(observer), tiles_(trace.tiles.size()) {
  index_dependents();
  for (std::uint32_t tile = 0; tile < tiles_.size(); ++tile) {
    tiles_[tile].delivered.assign(program(tile).steps.size(), false);
    steps_left_ += program(tile).steps.size();
  }
}

void Replay::run() {
  for (std::uint32_t tile = 0; tile < tiles_.size(); ++tile) open_steps(tile);
  while (!ready_.empty()) {
    const Instance instance = ready_.front();
    ready_.pop_front();
    act(instance);
  }
  if (steps_left_ > 0 || !pending_.empty()) report_stall();
}

Replay::Address Replay::address(const Instance& instance, std::size_t number) const {
  const Op& op = op_of(instance);
  const TileBinding& binding = trace_.tiles[instance.tile];
  const TileId peer = trace_.peer(binding, peers(instance)[number]);
  const std::uint64_t key = message_key(op, step_of(instance));
  return sends(op) ? Address{binding.tile, peer, key} : Address{peer, binding.tile, key};
}

void Replay::index_dependents() {
  for (const StepTemplate& step_template : trace_.templates) {
    Dependents& index = dependents_.emplace_back();
    index.first.assign(step_template.ops.size() + 1, 0);
    for (const std::uint32_t earlier : step_template.dependencies) ++index.first[earlier + 1];
    for (std::size_t i = 1; i < index.first.size(); ++i) index.first[i] += index.first[i - 1];
    index.ops.resize(step_template.dependencies.size());
    std::vector<std::uint32_t> next(index.first.begin(), index.first.end() - 1);
    for (std::uint32_t number = 0; number < step_template.ops.size(); ++number) {
      const Op& op = step_template.ops[number];
      for (std::uint32_t i = 0; i < op.dependency_count; ++i) {
        index.ops[next[step_template.dependencies[op.first_dependency + i]]++] = number;
      }
    }
  }
}

void Replay::open_steps(std::uint32_t tile) {
  TileState& state = tiles_[tile];
  const Program& steps = program(tile);
  while (state.next_step < steps.steps.size()) {
    const Step& step = steps.steps[state.next_step];
    for (std::uint32_t i = 0; i < step.wait_count; ++i) {
      if (!state.delivered[steps.waits[step.first_wait + i]]) return;
    }
    open_step(tile, state.next_step++);
  }
}

void Replay::open_step(std::uint32_t tile, std::uint32_t step) {
  TileState& state = tiles_[tile];
  const std::vector<Op>& ops = template_of({tile, step, 0}).ops;
  OpenStep& open = state.open[step];
  open.operations_left = static_cast<std::uint32_t>(ops.size());
  open.missing.reserve(ops.size());
  for (std::uint32_t number = 0; number < ops.size(); ++number) {
    const Op& op = ops[number];
    const Instance instance{tile, step, number};
    open.missing.push_back(op.dependency_count);
    open.results_left += op.detached ? 0 : 1;
    if (uses_engine(op)) state.engines[engine_of(op)].push_back(instance);
    if (op.dependency_count == 0) ready_.push_back(instance);
  }
  if (open.results_left == 0) deliver(tile, step);
  if (ops.empty()) {
    state.open.erase(step);
    --steps_left_;
  }
}

void Replay::act(const Instance& instance) {
  const Op& op = op_of(instance);
  switch (op.kind) {
    case OpKind::matrix:
    case OpKind::vector:
      drain(instance.tile, engine_of(op));
      return;
    case OpKind::send:
    case OpKind::multicast:
      if (observer_ != nullptr) observer_->performed(instance);
      for (std::size_t i = 0; i < peers(instance).size(); ++i) match(instance, address(instance, i), true);
      complete(instance);
      return;
    case OpKind::receive:
      match(instance, address(instance), false);
      return;
    case OpKind::reduce:
    case OpKind::allocate:
    case OpKind::free:
      if (observer_ != nullptr) observer_->performed(instance);
      complete(instance);
      return;
  }
}

/// Issues what stands at the head of an engine's queue and has its dependencies.
void Replay::drain(std::uint32_t tile, std::size_t engine) {
  std::deque<Instance>& queue = tiles_[tile].engines[engine];
  while (!queue.empty()) {
    const Instance head = queue.front();
    if (tiles_[tile].open.at(head.step).missing[head.op] != 0) return;
    queue.pop_front();
    if (observer_ != nullptr) observer_->performed(head);
    complete(head);
  }
}

void Replay::match(const Instance& instance, const Address& where, bool is_send) {
  const auto entry = pending_.try_emplace(where).first;
  Pending& pending = entry->second;
  Queue& counterparts = is_send ? pending.receives : pending.sends;
  if (counterparts.empty()) {
    (is_send ? pending.sends : pending.receives).items.push_back(instance);
    return;
  }
  const Instance other = counterparts.pop();
  if (counterparts.empty()) pending_.erase(entry);
  const Instance& send = is_send ? instance : other;
  const Instance& receive = is_send ? other : instance;
  if (op_of(send).bytes != op_of(receive).bytes) {
    faults_.add([&] {
      return fmt::format("{}: the receiver expects {} bytes in {}", describe(send), op_of(receive).bytes,
                         step_name(receive));
    });
  }
  if (op_of(send).streamed != op_of(receive).streamed) {
    faults_.add([&] {
      return fmt::format("{}: one end is streamed, the receiver's in {} is not, or the other way round", describe(send),
                         step_name(receive));
    });
  }
  if (observer_ != nullptr) observer_->received(send, receive);
  complete(receive);
}

void Replay::complete(const Instance& instance) {
  OpenStep& open = tiles_[instance.tile].open.at(instance.step);
  open.missing[instance.op] = kComplete;
  const Dependents& index = dependents_[step_of(instance).step_template];
  for (std::uint32_t i = index.first[instance.op]; i < index.first[instance.op + 1]; ++i) {
    const std::uint32_t later = index.ops[i];
    if (--open.missing[later] == 0) make_ready({instance.tile, instance.step, later});
  }
  const bool last = --open.operations_left == 0;
  const bool delivers = !op_of(instance).detached && --open.results_left == 0;
  if (last) {
    tiles_[instance.tile].open.erase(instance.step);
    --steps_left_;
  }
  if (delivers) {
    deliver(instance.tile, instance.step);
    open_steps(instance.tile);
  }
}

void Replay::deliver(std::uint32_t tile, std::uint32_t step) { tiles_[tile].delivered[step] = true; }

/// Memory is freed as early as the rules permit, so that an observer sees what is used too late.
void Replay::make_ready(const Instance& instance) {
  if (op_of(instance).kind == OpKind::free) {
    ready_.push_front(instance);
  } else {
    ready_.push_back(instance);
  }
}

bool Replay::is_complete(const Instance& instance) const {
  const TileState& state = tiles_[instance.tile];
  if (instance.step >= state.next_step) return false;
  const auto open = state.open.find(instance.step);
  return open == state.open.end() || open->second.missing[instance.op] == kComplete;
}

/// Sends that have not been made and receives that have not been posted, each in program order.
void Replay::collect_remaining(Counterparts& unsent, Counterparts& unposted) const {
  for (std::uint32_t tile = 0; tile < tiles_.size(); ++tile) {
    const TileState& state = tiles_[tile];
    for (std::uint32_t step = 0; step < program(tile).steps.size(); ++step) {
      const auto open = state.open.find(step);
      if (step < state.next_step && open == state.open.end()) continue;
      const std::vector<Op>& ops = template_of({tile, step, 0}).ops;
      for (std::uint32_t number = 0; number < ops.size(); ++number) {
        if (!sends(ops[number]) && ops[number].kind != OpKind::receive) continue;
        const std::uint32_t missing = open == state.open.end() ? 1 : open->second.missing[number];
        if (missing == kComplete || missing == 0) continue;
        const Instance instance{tile, step, number};
        Counterparts& side = sends(ops[number]) ? unsent : unposted;
        for (std::size_t i = 0; i < peers(instance).size(); ++i) side[address(instance, i)].push_back(instance);
      }
    }
  }
}

void Replay::report_stall() {
  Counterparts unsent, unposted;
  collect_remaining(unsent, unposted);
  std::vector<std::pair<Instance, Instance>> waits;  // a posted receive and the send that will serve it
  std::vector<Instance> lone;
  const auto pair_up = [&](const Queue& queue, const Address& where, const Counterparts& counterparts,
                           bool is_receive) {
    const auto found = counterparts.find(where);
    const std::size_t available = found == counterparts.end() ? 0 : found->second.size();
    for (std::size_t i = queue.head; i < queue.items.size(); ++i) {
      if (i - queue.head >= available) {
        lone.push_back(queue.items[i]);
      } else if (is_receive) {
        waits.emplace_back(queue.items[i], found->second[i - queue.head]);
      }
    }
  };
  for (const auto& [where, pending] : pending_) {
    pair_up(pending.receives, where, unsent, true);
    pair_up(pending.sends, where, unposted, false);
  }
  std::sort(lone.begin(), lone.end());
  std::sort(waits.begin(), waits.end());
  for (const Instance& instance : lone) {
    const bool sent = sends(op_of(instance));
    faults_.add([&] {
      return fmt::format("{}: {}", describe(instance), sent ? "nobody receives it" : "nobody sends it");
    });
  }
  report_cycles(waits);
}

/// The posted receive that an incomplete operation waits for in the end, on its own tile.
Replay::Instance Replay::blocking_receive(Instance instance) const {
  while (true) {
    const TileState& state = tiles_[instance.tile];
    if (instance.step >= state.next_step) {
      const Program& steps = program(instance.tile);
      const Step& next = steps.steps[state.next_step];
      const auto first = steps.waits.begin() + next.first_wait;
      const auto open =
          std::find_if(first, first + next.wait_count, [&](std::uint32_t s) { return !state.delivered[s]; });
      instance = first_incomplete(instance.tile, *open);
      continue;
    }
    const Op& op = op_of(instance);
    if (state.open.at(instance.step).missing[instance.op] > 0) {
      const auto first = template_of(instance).dependencies.begin() + op.first_dependency;
      const auto found = std::find_if(first, first + op.dependency_count, [&](std::uint32_t earlier) {
        return !is_complete({instance.tile, instance.step, earlier});
      });
      instance.op = *found;
    } else if (uses_engine(op)) {
      instance = state.engines[engine_of(op)].front();
    } else {
      return instance;
    }
  }
}

Replay::Instance Replay::first_incomplete(std::uint32_t tile, std::uint32_t step) const {
  Instance instance{tile, step, 0};
  while (is_complete(instance) || op_of(instance).detached) ++instance.op;
  return instance;
}

void Replay::report_cycles(const std::vector<std::pair<Instance, Instance>>& waits) {
  const std::map<Instance, Instance> sender(waits.begin(), waits.end());
  std::map<Instance, std::size_t> visited;  // receive -> the walk that came by first
  for (std::size_t walk = 0; walk < waits.size(); ++walk) {
    std::vector<Instance> path;
    Instance receive = waits[walk].first;
    while (sender.contains(receive) && visited.try_emplace(receive, walk).second) {
      path.push_back(receive);
      receive = blocking_receive(sender.at(receive));
    }
    const auto start = std::find(path.begin(), path.end(), receive);
    if (start == path.end()) continue;
    faults_.add([&] {
      std::vector<std::string> links;
      for (auto it = start; it != path.end(); ++it) links.push_back(describe(*it));
      return fmt::format("cyclic wait of {} messages: {}", links.size(), join(links, "; "));
    });
  }
}

std::string Replay::describe(const Instance& message) const {
  const Op& op = op_of(message);
  const TileBinding& binding = trace_.tiles[message.tile];
  const char* verb = sends(op) ? "sends to" : "waits for";
  std::string whom = mesh_.name(trace_.peer(binding, peers(message).front()));
  if (op.peer_count > 1) whom += fmt::format(" and {} more", op.peer_count - 1);
  return fmt::format("{} {} {}, channel {}, {} bytes, in {}", mesh_.name(binding.tile), verb, whom, op.channel, op.bytes,
                     step_name(message));
}

std::string Replay::step_name(const Instance& message) const {
  const Step& step = step_of(message);
  return fmt::format("step {} '{}' (layer {}, microbatch {})", message.step, template_of(message).name,
                     step.layer, step.microbatch);
}

}  // namespace wafersim::workloads
