#include "workloads/step_memory.h"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "base/random.h"

namespace wafersim::workloads {

namespace {

constexpr std::size_t kAll = kMemoryClasses;

MemorySums sums_of(const Op& op) { return workloads::sums_of(static_cast<std::size_t>(op.memory_class), op.bytes); }

/// For each operation of a template, which of its allocations and of what its frees wait for are certain to be complete when it
/// starts: it depends on them, directly or through others, or through the operation before it on its engine, which takes them in
/// program order.
class Ancestors {
 public:
  explicit Ancestors(const StepTemplate& step) : places_(step.ops.size(), kNone) {
    std::size_t followed = 0;
    const auto follow = [&](std::uint32_t id) {
      if (places_[id] == kNone) places_[id] = static_cast<std::uint32_t>(followed++);
    };
    for (std::uint32_t id = 0; id < step.ops.size(); ++id) {
      const Op& op = step.ops[id];
      if (op.kind == OpKind::allocate) follow(id);
      if (op.kind != OpKind::free) continue;
      for (std::uint32_t d = 0; d < op.dependency_count; ++d) follow(step.dependencies[op.first_dependency + d]);
    }
    width_ = ceil_div<std::size_t>(followed, 64);
    words_.resize(step.ops.size() * width_);
    std::optional<std::uint32_t> last_matrix, last_vector;
    for (std::uint32_t id = 0; id < step.ops.size(); ++id) {
      const Op& op = step.ops[id];
      for (std::uint32_t d = 0; d < op.dependency_count; ++d) inherit(id, step.dependencies[op.first_dependency + d]);
      if (op.kind != OpKind::matrix && op.kind != OpKind::vector) continue;
      std::optional<std::uint32_t>& last = op.kind == OpKind::matrix ? last_matrix : last_vector;
      if (last) inherit(id, *last);
      last = id;
    }
  }

  /// `earlier` is an allocation, or something that a free waits for.
  bool contains(std::uint32_t id, std::uint32_t earlier) const {
    return (words_[id * width_ + places_[earlier] / 64] >> (places_[earlier] % 64) & 1) != 0;
  }

 private:
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};

  void inherit(std::uint32_t id, std::uint32_t earlier) {
    std::uint64_t* const own = words_.data() + id * width_;
    const std::uint64_t* const other = words_.data() + earlier * width_;
    for (std::size_t i = 0; i < width_; ++i) own[i] |= other[i];
    if (places_[earlier] != kNone) own[places_[earlier] / 64] |= std::uint64_t{1} << (places_[earlier] % 64);
  }

  std::vector<std::uint32_t> places_;  ///< by operation: its bit; none of those that nobody asks for
  std::size_t width_ = 0;
  std::vector<std::uint64_t> words_;  ///< by operation, `width_` for each
};

/// Blocks of a stream that a neighbour may be ahead by.
constexpr Bytes kPacedAhead = 2;

/// Bytes of each collective (an axis and a tensor) that others may send before this member takes part:
/// partial sums where it sums, because complete values then hold its own contribution, else everything.
std::map<std::pair<Axis, std::uint32_t>, Bytes> early_bytes(const StepTemplate& step) {
  std::map<std::pair<Axis, std::uint32_t>, Bytes> partial, all;
  std::map<std::tuple<Axis, std::uint32_t, std::uint32_t>, Bytes> paced;  // the largest of each neighbour
  for (const Op& op : step.ops) {
    if (op.kind != OpKind::receive || op.scope != MatchScope::step) continue;
    const std::pair key{op.axis, op.operand.tensor};
    if (op.operand.paced) {
      Bytes& largest = paced[{op.axis, op.operand.tensor, op.peer}];
      largest = std::max(largest, op.bytes);
      continue;
    }
    all[key] += op.bytes;
    if (op.operand.partial) partial[key] += op.bytes;
  }
  for (const auto& [key, bytes] : partial) all[key] = bytes;
  for (const auto& [key, bytes] : paced) all[{std::get<0>(key), std::get<1>(key)}] += kPacedAhead * bytes;
  return all;
}

/// The most that may be live at once. The last allocation before that moment is one of them: at its time
/// every other one that does not depend on it may be there, and a free is certain to be done when all that
/// it waits for is, because frees act at once.
MemorySums peak(const StepTemplate& step) {
  std::vector<std::uint32_t> allocations, frees;
  for (std::uint32_t id = 0; id < step.ops.size(); ++id) {
    if (step.ops[id].kind == OpKind::allocate) allocations.push_back(id);
    if (step.ops[id].kind == OpKind::free) frees.push_back(id);
  }
  const Ancestors before(step);
  const auto add = [](MemorySums& sums, const Op& op, std::int64_t sign) {
    const std::int64_t bytes = sign * static_cast<std::int64_t>(op.bytes);
    sums[static_cast<std::size_t>(op.memory_class)] += bytes;
    sums[kAll] += bytes;
  };
  MemorySums highest{}, earlier{};  // earlier: up to the last allocation, none of which depends on it
  for (auto last = allocations.begin(); last != allocations.end(); ++last) {
    add(earlier, step.ops[*last], 1);
    MemorySums live = earlier;
    for (auto later = last + 1; later != allocations.end(); ++later) {
      if (!before.contains(*later, *last)) add(live, step.ops[*later], 1);
    }
    for (const std::uint32_t id : frees) {
      const Op& op = step.ops[id];
      // The latest is the one most likely to be missing.
      const auto end = std::make_reverse_iterator(step.dependencies.begin() + op.first_dependency);
      const bool done = std::all_of(end - op.dependency_count, end,
                                    [&](std::uint32_t needed) { return before.contains(*last, needed); });
      if (done) add(live, op, -1);
    }
    highest = largest(highest, live);
  }
  return highest;
}

/// Calls `visit` with everything of an operation that StepMemory depends on, but for the operations that it waits for.
template <class Visit>
void visit_memory(const Op& op, const Visit& visit) {
  const auto number = [](auto value) { return static_cast<std::uint64_t>(value); };
  visit(number(op.kind) | number(op.memory_class) << 8 | number(op.scope) << 16 | number(op.detached) << 24);
  visit(number(op.first_dependency) << 32 | op.dependency_count);
  if (op.kind == OpKind::allocate || op.kind == OpKind::free) visit(op.bytes);
  if (op.kind != OpKind::receive) return;
  visit(op.bytes);
  visit(number(op.axis) | number(op.operand.paced) << 8 | number(op.operand.partial) << 16 | number(op.peer) << 32);
  visit(op.operand.tensor);
}

std::uint64_t memory_hash(const StepTemplate& step) {
  std::uint64_t hash = step.ops.size();
  const auto add = [&hash](std::uint64_t value) { hash = mix_bits(hash ^ value) + 0x9e3779b97f4a7c15ULL; };
  for (const Op& op : step.ops) visit_memory(op, add);
  for (const std::uint32_t dependency : step.dependencies) add(dependency);
  return hash;
}

bool same_memory(const Op& a, const Op& b) {
  std::array<std::uint64_t, 5> of_a{}, of_b{};
  std::size_t count_a = 0, count_b = 0;
  visit_memory(a, [&](std::uint64_t value) { of_a[count_a++] = value; });
  visit_memory(b, [&](std::uint64_t value) { of_b[count_b++] = value; });
  return of_a == of_b && count_a == count_b;
}

bool same_memory(const StepTemplate& a, const StepTemplate& b) {
  return a.dependencies == b.dependencies &&
         std::equal(a.ops.begin(), a.ops.end(), b.ops.begin(), b.ops.end(),
                    [](const Op& one, const Op& other) { return same_memory(one, other); });
}

}  // namespace

StepMemory step_memory(const StepTemplate& step) {
  StepMemory result;
  for (const Op& op : step.ops) {
    if (op.kind == OpKind::allocate) result.change = result.change + sums_of(op);
    if (op.kind == OpKind::free) result.change = result.change + times(sums_of(op), -1);
    if (op.kind == OpKind::free && op.detached) result.detached_free = result.detached_free + sums_of(op);
    if (op.kind == OpKind::receive && op.scope == MatchScope::microbatch) result.pipeline_receives += op.bytes;
  }
  for (const auto& [collective, bytes] : early_bytes(step)) {
    result.early_of_all += bytes;
    result.early_of_one = std::max(result.early_of_one, bytes);
  }
  result.peak = peak(step);
  return result;
}

std::vector<StepMemory> step_memories(const Trace& trace) {
  std::unordered_multimap<std::uint64_t, std::size_t> known;
  std::vector<StepMemory> result;
  for (const StepTemplate& step : trace.templates) {
    const std::uint64_t hash = memory_hash(step);
    const auto [first, end] = known.equal_range(hash);
    const auto alike = std::find_if(
        first, end, [&](const auto& each) { return same_memory(trace.templates[each.second], step); });
    if (alike != end) {
      result.push_back(result[alike->second]);
      continue;
    }
    known.emplace(hash, result.size());
    result.push_back(step_memory(step));
  }
  return result;
}

}  // namespace wafersim::workloads
