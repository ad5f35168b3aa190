#include "workloads/memory_bound.h"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "base/error.h"

namespace wafersim::workloads {

namespace {

/// The sums that are followed: each class, and everything.
constexpr std::size_t kAll = kMemoryClasses;
constexpr std::size_t kSums = kMemoryClasses + 1;
using Sums = std::array<std::int64_t, kSums>;

Sums operator+(Sums a, const Sums& b) {
  for (std::size_t i = 0; i < kSums; ++i) a[i] += b[i];
  return a;
}

Sums times(Sums a, std::int64_t factor) {
  for (std::int64_t& each : a) each *= factor;
  return a;
}

Sums largest(Sums a, const Sums& b) {
  for (std::size_t i = 0; i < kSums; ++i) a[i] = std::max(a[i], b[i]);
  return a;
}

/// A set of operations of one template.
class OpSet {
 public:
  explicit OpSet(std::size_t operations) : words_(ceil_div<std::size_t>(operations, 64)) {}
  void add(std::size_t id) { words_[id / 64] |= std::uint64_t{1} << (id % 64); }
  void add_all(const OpSet& other) {
    for (std::size_t i = 0; i < words_.size(); ++i) words_[i] |= other.words_[i];
  }
  bool contains(std::size_t id) const { return (words_[id / 64] >> (id % 64) & 1) != 0; }

 private:
  std::vector<std::uint64_t> words_;
};

class BoundBuilder {
 public:
  BoundBuilder(const Trace& trace, const std::vector<std::int32_t>& in_flight)
      : trace_(trace), in_flight_(in_flight) {
    for (const StepTemplate& each : trace.templates) profiles_.push_back(profile(each));
    bounds_.resize(trace.programs.size());
  }

  /// What tile `binding` may hold at most, statics included.
  TileBound bound(const TileBinding& binding) {
    std::optional<ProgramBound>& known = bounds_[binding.program];
    if (!known) known = bound(trace_.programs[binding.program], binding.stage);
    Sums sums = known->sums;
    for (std::size_t c = 0; c < kMemoryClasses; ++c) {
      sums = sums + sums_of(c, trace_.statics[binding.statics].bytes[c]);
    }
    TileBound result{{}, static_cast<Bytes>(sums[kAll]), known->step};
    for (std::size_t c = 0; c < kMemoryClasses; ++c) result.by_class[c] = static_cast<Bytes>(sums[c]);
    return result;
  }

 private:
  struct ProgramBound {
    Sums sums{};
    std::int32_t step = -1;  ///< with the largest total
  };

  struct Profile {
    Sums peak{};             ///< above the level at which the step opens
    Sums change{};           ///< from its opening to its end
    Sums detached_free{};    ///< bytes that may be freed later than that
    Bytes early_of_all = 0;  ///< messages that may come before the step takes part in its collectives
    Bytes early_of_one = 0;  ///< of its largest collective
    Bytes pipeline_receives = 0;
  };

  static Sums sums_of(std::size_t memory_class, Bytes bytes) {
    Sums sums{};
    sums[memory_class] = static_cast<std::int64_t>(bytes);
    sums[kAll] = sums[memory_class];
    return sums;
  }
  static Sums sums_of(const Op& op) { return sums_of(static_cast<std::size_t>(op.memory_class), op.bytes); }
  static Sums communication(Bytes bytes) {
    return sums_of(static_cast<std::size_t>(MemoryClass::communication_buffers), bytes);
  }

  Profile profile(const StepTemplate& step) const {
    Profile result;
    for (const Op& op : step.ops) {
      if (op.kind == OpKind::allocate) result.change = result.change + sums_of(op);
      if (op.kind == OpKind::free) result.change = result.change + times(sums_of(op), -1);
      if (op.kind == OpKind::free && op.detached) result.detached_free = result.detached_free + sums_of(op);
      if (op.kind == OpKind::receive && op.scope == MatchScope::microbatch)
        result.pipeline_receives += op.bytes;
    }
    for (const auto& [collective, bytes] : early_bytes(step)) {
      result.early_of_all += bytes;
      result.early_of_one = std::max(result.early_of_one, bytes);
    }
    result.peak = peak(step);
    return result;
  }

  /// Blocks of a stream that a neighbour may be ahead by.
  static constexpr Bytes kPacedAhead = 2;

  /// Bytes of each collective (an axis and a tensor) that others may send before this member takes part:
  /// partial sums where it sums, because complete values then hold its own contribution, else everything.
  static std::map<std::pair<Axis, std::uint32_t>, Bytes> early_bytes(const StepTemplate& step) {
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
  Sums peak(const StepTemplate& step) const {
    std::vector<std::uint32_t> allocations, frees;
    for (std::uint32_t id = 0; id < step.ops.size(); ++id) {
      if (step.ops[id].kind == OpKind::allocate) allocations.push_back(id);
      if (step.ops[id].kind == OpKind::free) frees.push_back(id);
    }
    const std::vector<OpSet> before = ancestors(step);
    Sums highest{};
    for (const std::uint32_t last : allocations) {
      Sums live{};
      const auto add = [&](const Op& op, std::int64_t sign) {
        const std::int64_t bytes = sign * static_cast<std::int64_t>(op.bytes);
        live[static_cast<std::size_t>(op.memory_class)] += bytes;
        live[kAll] += bytes;
      };
      for (const std::uint32_t id : allocations) {
        if (!before[id].contains(last)) add(step.ops[id], 1);
      }
      for (const std::uint32_t id : frees) {
        const Op& op = step.ops[id];
        const auto first = step.dependencies.begin() + op.first_dependency;
        const bool done = std::all_of(first, first + op.dependency_count,
                                      [&](std::uint32_t needed) { return before[last].contains(needed); });
        if (done) add(op, -1);
      }
      highest = largest(highest, live);
    }
    return highest;
  }

  /// For each operation, which others are certain to be complete when it starts: it depends on them, directly
  /// or through others, or through the operation before it on its engine, which takes them in program order.
  static std::vector<OpSet> ancestors(const StepTemplate& step) {
    std::vector<OpSet> before(step.ops.size(), OpSet(step.ops.size()));
    std::optional<std::size_t> last_matrix, last_vector;
    for (std::size_t id = 0; id < step.ops.size(); ++id) {
      const Op& op = step.ops[id];
      const auto inherit = [&](std::size_t earlier) {
        before[id].add_all(before[earlier]);
        before[id].add(earlier);
      };
      for (std::uint32_t d = 0; d < op.dependency_count; ++d)
        inherit(step.dependencies[op.first_dependency + d]);
      if (op.kind != OpKind::matrix && op.kind != OpKind::vector) continue;
      std::optional<std::size_t>& last = op.kind == OpKind::matrix ? last_matrix : last_vector;
      if (last) inherit(*last);
      last = id;
    }
    return before;
  }

  /// Passes that may be on their way to a stage in a direction: those in flight at the upstream end. From the first
  /// stage upstream is the last, with several chunks; otherwise nothing goes there.
  std::int64_t window(Pass pass, std::int32_t sender_stage) const {
    const auto stages = static_cast<std::int32_t>(in_flight_.size());
    const std::int32_t upstream = pass == Pass::forward ? sender_stage : sender_stage - 1;
    return in_flight_[static_cast<std::size_t>((upstream + stages) % stages)];
  }

  /// Background steps of one microbatch, which a later step of the model waits for: what they may hold until then.
  class Pending {
   public:
    void add(std::uint32_t step, const Profile& profile) {
      open_.emplace(step, &profile);
      held_ = held_ + profile.peak;
      early_ = std::max(early_, profile.early_of_all);
      most_ = std::max(most_, open_.size());
    }
    /// Returns by how much a step that waits for `step` finds the level changed.
    Sums end(std::uint32_t step) {
      const auto found = open_.find(step);
      if (found == open_.end()) return {};
      const Profile& profile = *found->second;
      held_ = held_ + times(profile.peak, -1);
      open_.erase(found);
      return profile.change;
    }
    const Sums& held() const { return held_; }
    /// Peers take part in the same steps, so they can be ahead by a few more than are open here.
    Bytes early() const { return most_ == 0 ? 0 : (most_ + kStepsAhead) * early_; }

   private:
    static constexpr Bytes kStepsAhead = 3;
    std::map<std::uint32_t, const Profile*> open_;
    Sums held_{};
    Bytes early_ = 0;
    std::size_t most_ = 0;
  };

  ProgramBound bound(const Program& program, std::int32_t stage) const {
    std::int32_t fullest = -1;
    Sums level{}, highest{}, unsent_forward{}, unsent_backward{};
    std::array<Sums, 2> background{};
    Bytes early = 0, forward_receives = 0, backward_receives = 0;
    Pending pending;
    for (std::uint32_t number = 0; number < program.steps.size(); ++number) {
      const Step& step = program.steps[number];
      const Profile& each = profiles_[step.step_template];
      if (step.background) {
        if (step.microbatch >= 0) {
          pending.add(number, each);
          continue;
        }
        if (step.iteration > 0) continue;
        Sums& open = background[step.kind == StepKind::gradient_sync ? 0 : 1];
        open = open + each.peak + communication(each.early_of_all);
        continue;
      }
      for (std::uint32_t i = 0; i < step.wait_count; ++i) {
        level = level + pending.end(program.waits[step.first_wait + i]);
      }
      const Sums most = level + each.peak + pending.held();
      if (fullest < 0 || most[kAll] > highest[kAll]) fullest = static_cast<std::int32_t>(number);
      highest = largest(highest, most);
      level = level + each.change;
      const bool forward = step.pass == Pass::forward;
      Sums& unsent = forward ? unsent_forward : unsent_backward;
      unsent = largest(unsent, each.detached_free);
      early = std::max(early, each.early_of_one);
      Bytes& receives = forward ? forward_receives : backward_receives;
      receives = std::max(receives, each.pipeline_receives);
    }
    Sums total = highest + largest(background[0], background[1]) + communication(2 * early + pending.early());
    total = total + times(unsent_forward, window(Pass::forward, stage));
    total = total + times(unsent_backward, window(Pass::backward, stage));
    total = total + times(communication(forward_receives), window(Pass::forward, stage - 1));
    total = total + times(communication(backward_receives), window(Pass::backward, stage + 1));
    return {total, fullest};
  }

  const Trace& trace_;
  const std::vector<std::int32_t>& in_flight_;
  std::vector<Profile> profiles_;
  std::vector<std::optional<ProgramBound>> bounds_;  ///< by program
};

}  // namespace

std::vector<TileBound> bound_tiles(const Trace& trace, const std::vector<std::int32_t>& in_flight) {
  BoundBuilder builder(trace, in_flight);
  std::vector<TileBound> result;
  for (const TileBinding& binding : trace.tiles) result.push_back(builder.bound(binding));
  return result;
}

}  // namespace wafersim::workloads
