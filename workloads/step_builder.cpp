#include "workloads/step_builder.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "base/error.h"
#include "base/random.h"

namespace wafersim::workloads {
namespace {

constexpr std::uint32_t kChannels = 1U << 24;  // what message_key has room for

/// A hash of values in order, the same on every machine.
class ContentHash {
 public:
  ContentHash& add(std::uint64_t value) {
    state_ = mix_bits(state_ ^ value) + 0x9e3779b97f4a7c15ULL;
    return *this;
  }
  ContentHash& add(const std::string& text) {
    add(text.size());
    for (const char letter : text) add(static_cast<unsigned char>(letter));
    return *this;
  }
  std::uint64_t value() const { return state_; }

 private:
  std::uint64_t state_ = 0;
};

std::uint64_t hash(const Tensor& tensor) {
  return ContentHash().add(tensor.name).add(static_cast<std::uint64_t>(tensor.scope)).value();
}

void add_views(ContentHash& content, const Views& views) {
  content.add(views.size());
  for (const View& view : views) {
    content.add(view.tensor).add(static_cast<std::uint64_t>(view.layer)).add(view.absolute ? 1 : 0);
    content.add(static_cast<std::uint64_t>(view.replica));
    content.add(view.region.row).add(view.region.rows).add(view.region.col).add(view.region.cols);
    content.add(view.terms.first).add(view.terms.count).add(view.terms.total);
  }
}

std::uint64_t hash(const Meaning& meaning) {
  ContentHash content;
  content.add(static_cast<std::uint64_t>(meaning.kernel)).add(meaning.adds ? 1 : 0);
  add_views(content, meaning.reads);
  add_views(content, meaning.writes);
  add_views(content, meaning.discards);
  return content.value();
}

std::uint64_t hash(const Work& work) {
  ContentHash content;
  content.add(work.gemm.batch).add(work.gemm.m).add(work.gemm.n).add(work.gemm.k);
  content.add(work.vector_flops).add(work.sram_bytes);
  for (const Bytes bytes : work.class_bytes) content.add(bytes);
  return content.value();
}

std::uint64_t pack(std::uint64_t high, std::uint64_t low) { return high << 32 | low; }

void add_operation(ContentHash& content, const Op& op) {
  const auto byte = [](auto value) { return static_cast<std::uint64_t>(value); };
  content.add(byte(op.kind) | byte(op.axis) << 8 | byte(op.memory_class) << 16 | byte(op.scope) << 24 |
              byte(op.detached) << 32 | byte(op.streamed) << 33 | byte(op.follows) << 34 | byte(op.operand.partial) << 40 | byte(op.operand.paced) << 48);
  content.add(pack(op.first_dependency, op.dependency_count)).add(pack(op.work, op.peer));
  content.add(pack(op.channel, op.operand.tensor)).add(op.bytes);
  content.add(pack(op.operand.meaning, op.peer_count));
}

std::uint64_t hash(const StepTemplate& step_template) {
  ContentHash content;
  content.add(step_template.name).add(step_template.ops.size());
  for (const Op& op : step_template.ops) add_operation(content, op);
  for (const std::uint32_t dependency : step_template.dependencies) content.add(dependency);
  for (const std::uint32_t receiver : step_template.receivers) content.add(receiver);
  return content.value();
}

/// Index of `value` in `table`, where it is put when it is not there.
template <class T>
std::uint32_t intern_in(std::vector<T>& table, std::unordered_multimap<std::uint64_t, std::uint32_t>& index,
                        T value) {
  const std::uint64_t key = hash(value);
  const auto [first, last] = index.equal_range(key);
  const auto found =
      std::find_if(first, last, [&](const auto& entry) { return table[entry.second] == value; });
  if (found != last) return found->second;
  const auto position = static_cast<std::uint32_t>(table.size());
  table.push_back(std::move(value));
  index.emplace(key, position);
  return position;
}

}  // namespace

std::uint32_t add_template(Trace& trace, StepTemplate made) {
  return intern_in(trace.templates, trace.interned.templates, std::move(made));
}

StepBuilder::StepBuilder(Trace& trace, std::string name) : trace_(trace) { template_.name = std::move(name); }

OpId StepBuilder::matrix(const Work& work, const std::vector<OpId>& after, const Operand& makes) {
  return compute(OpKind::matrix, Axis::none, work, after, makes);
}

OpId StepBuilder::vector(const Work& work, const std::vector<OpId>& after, const Operand& makes) {
  return compute(OpKind::vector, Axis::none, work, after, makes);
}

OpId StepBuilder::reduce(Axis axis, const Work& work, const std::vector<OpId>& after, const Operand& makes) {
  return compute(OpKind::reduce, axis, work, after, makes);
}

OpId StepBuilder::send(Axis axis, std::uint32_t peer, std::uint32_t channel, Bytes bytes,
                       const std::vector<OpId>& after, const Operand& carries, MatchScope scope) {
  return message(OpKind::send, axis, peer, channel, bytes, after, carries, scope);
}

OpId StepBuilder::receive(Axis axis, std::uint32_t peer, std::uint32_t channel, Bytes bytes,
                          const std::vector<OpId>& after, const Operand& carries, MatchScope scope) {
  return message(OpKind::receive, axis, peer, channel, bytes, after, carries, scope);
}

OpId StepBuilder::multicast(Axis axis, const std::vector<std::uint32_t>& peers, std::uint32_t channel, Bytes bytes,
                            const std::vector<OpId>& after, const Operand& carries) {
  const auto first = static_cast<std::uint32_t>(template_.receivers.size());
  template_.receivers.insert(template_.receivers.end(), peers.begin(), peers.end());
  const OpId id = message(OpKind::multicast, axis, first, channel, bytes, after, carries, MatchScope::step);
  template_.ops[id].peer_count = static_cast<std::uint32_t>(peers.size());
  return id;
}

OpId StepBuilder::allocate(MemoryClass memory_class, Bytes bytes, const std::vector<OpId>& after,
                           const Operand& holds) {
  return memory(OpKind::allocate, memory_class, bytes, after, holds);
}

OpId StepBuilder::free(MemoryClass memory_class, Bytes bytes, const std::vector<OpId>& after,
                       const Operand& held) {
  std::vector<OpId> all = users(trace_.meanings[held.meaning].discards);
  all.insert(all.end(), after.begin(), after.end());
  return memory(OpKind::free, memory_class, bytes, all, held);
}

void StepBuilder::record_uses(OpId id, const Op& op) {
  const Meaning& meaning = trace_.meanings[op.operand.meaning];
  for (const Views* views : {&meaning.reads, &meaning.writes, &meaning.discards}) {
    for (const View& view : *views) uses_.add(id, view);
  }
}

std::uint32_t StepBuilder::new_channels(std::uint32_t count) {
  require_invariant(count <= kChannels - next_channel_, "a step uses more than 2^24 channels");
  return std::exchange(next_channel_, next_channel_ + count);
}

std::uint32_t StepBuilder::tensor(const std::string& name, TensorScope scope) {
  return intern_in(trace_.tensors, trace_.interned.tensors, {name, scope});
}

std::uint32_t StepBuilder::meaning(Meaning meaning) {
  return intern_in(trace_.meanings, trace_.interned.meanings, std::move(meaning));
}

StepTemplate StepBuilder::take() {
  StepTemplate done{std::exchange(template_.name, {}), std::exchange(template_.ops, {}),
                    std::exchange(template_.dependencies, {}), std::exchange(template_.receivers, {})};
  template_.name = done.name;
  next_channel_ = 0;
  uses_.clear();
  done.ops.shrink_to_fit();
  done.dependencies.shrink_to_fit();
  done.receivers.shrink_to_fit();
  return done;
}

OpId StepBuilder::compute(OpKind kind, Axis axis, const Work& work, const std::vector<OpId>& after,
                          const Operand& makes) {
  Op op;
  op.kind = kind;
  op.axis = axis;
  op.work = intern(work);
  op.operand = makes;
  return add(op, after);
}

OpId StepBuilder::message(OpKind kind, Axis axis, std::uint32_t peer, std::uint32_t channel, Bytes bytes,
                          const std::vector<OpId>& after, const Operand& carries, MatchScope scope) {
  require_invariant(bytes >= 1, "a message carries at least one byte");
  require_invariant(channel < kChannels, "a channel is below 2^24");
  Op op;
  op.kind = kind;
  op.axis = axis;
  op.scope = scope;
  op.peer = peer;
  op.channel = channel;
  op.bytes = bytes;
  op.operand = carries;
  return add(op, after);
}

OpId StepBuilder::memory(OpKind kind, MemoryClass memory_class, Bytes bytes, const std::vector<OpId>& after,
                         const Operand& what) {
  Op op;
  op.kind = kind;
  op.memory_class = memory_class;
  op.bytes = bytes;
  op.operand = what;
  return add(op, after);
}

OpId StepBuilder::add(Op op, const std::vector<OpId>& after) {
  const auto id = static_cast<OpId>(template_.ops.size());
  std::vector<std::uint32_t>& all = template_.dependencies;
  op.first_dependency = static_cast<std::uint32_t>(all.size());
  const auto first = all.insert(all.end(), after.begin(), after.end());
  std::sort(first, all.end());
  all.erase(std::unique(first, all.end()), all.end());
  op.dependency_count = static_cast<std::uint32_t>(all.size()) - op.first_dependency;
  require_invariant(op.dependency_count == 0 || all.back() < id, "an operation depends on earlier ones only");
  template_.ops.push_back(op);
  record_uses(id, op);
  return id;
}

std::uint32_t StepBuilder::intern(const Work& work) {
  return intern_in(trace_.works, trace_.interned.works, work);
}

}  // namespace wafersim::workloads
