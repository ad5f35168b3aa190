#include "tests/workloads/numeric/ordering.h"

#include <fmt/format.h>

#include <map>
#include <optional>
#include <tuple>

#include "workloads/region_map.h"

namespace wafersim::workloads::numeric {

namespace {

enum class Use { reads, adds, changes };

struct Access {
  std::uint32_t op = 0;
  Use use = Use::reads;
  Region region;
};

/// Tensor, layer and whether that is absolute.
using Name = std::tuple<std::uint32_t, std::int32_t, bool>;

class TemplateCheck {
 public:
  TemplateCheck(const Trace& trace, const StepTemplate& step) : trace_(trace), step_(step) {
    order();
    for (std::uint32_t op = 0; op < step.ops.size(); ++op) collect(op);
  }

  void report(std::vector<std::string>& faults, std::size_t limit) const {
    for (const auto& [name, accesses] : accesses_) {
      for (std::size_t i = 0; i < accesses.size(); ++i) {
        for (std::size_t j = i + 1; j < accesses.size() && faults.size() < limit; ++j) {
          if (collide(accesses[i], accesses[j])) faults.push_back(describe(name, accesses[i], accesses[j]));
        }
      }
    }
  }

 private:
  /// Row `op` says which operations are complete before it starts.
  /// The complete sum of something arrives only after this tile's own part of it has left.
  void order() {
    std::map<OpKind, std::uint32_t> last;
    before_.assign(step_.ops.size(), std::vector<bool>(step_.ops.size()));
    for (std::uint32_t op = 0; op < step_.ops.size(); ++op) {
      const Op& each = step_.ops[op];
      for (std::uint32_t i = 0; i < each.dependency_count; ++i) {
        follow(op, step_.dependencies[each.first_dependency + i]);
      }
      for (const std::uint32_t sum : sums_before(op)) follow(op, sum);
      // An engine issues in program order, one at a time.
      if (each.kind != OpKind::matrix && each.kind != OpKind::vector) continue;
      if (last.contains(each.kind)) follow(op, last[each.kind]);
      last[each.kind] = op;
    }
  }

  /// The sends of partial sums of what an operation receives.
  std::vector<std::uint32_t> sums_before(std::uint32_t op) const {
    std::vector<std::uint32_t> result;
    const Meaning& meaning = trace_.meanings[step_.ops[op].operand.meaning];
    if (step_.ops[op].kind != OpKind::receive || meaning.kernel != Kernel::transfer) return result;
    for (std::uint32_t earlier = 0; earlier < op; ++earlier) {
      const Meaning& sent = trace_.meanings[step_.ops[earlier].operand.meaning];
      if (step_.ops[earlier].kind != OpKind::send || sent.kernel != Kernel::land) continue;
      for (const View& a : sent.writes) {
        for (const View& b : meaning.writes) {
          const bool same = a.tensor == b.tensor && a.layer == b.layer && a.absolute == b.absolute;
          if (same && overlap(a.region, b.region)) result.push_back(earlier);
        }
      }
    }
    return result;
  }

  void follow(std::uint32_t op, std::uint32_t earlier) {
    before_[op][earlier] = true;
    for (std::uint32_t i = 0; i < earlier; ++i) {
      if (before_[earlier][i]) before_[op][i] = true;
    }
  }

  void collect(std::uint32_t op) {
    const Op& each = step_.ops[op];
    const Meaning& meaning = trace_.meanings[each.operand.meaning];
    const bool lands = meaning.kernel == Kernel::land && each.kind == OpKind::receive;
    for (const View& view : meaning.reads) note(op, Use::reads, view);
    for (const View& view : meaning.discards) note(op, Use::changes, view);
    for (const View& view : meaning.writes) {
      const bool gradient = trace_.tensors[view.tensor].scope == TensorScope::gradient;
      const bool moves = meaning.kernel == Kernel::transfer || meaning.kernel == Kernel::land;
      if (lands) continue;
      if (each.kind == OpKind::send) {
        note(op, Use::reads, view);
      } else {
        note(op, !moves && (gradient || meaning.adds) ? Use::adds : Use::changes, view);
      }
    }
  }

  void note(std::uint32_t op, Use use, const View& view) {
    accesses_[{view.tensor, view.layer, view.absolute}].push_back({op, use, view.region});
  }

  bool collide(const Access& a, const Access& b) const {
    if (a.op == b.op || (a.use == b.use && a.use != Use::changes)) return false;
    return overlap(a.region, b.region) && !before_[b.op][a.op] && !before_[a.op][b.op];
  }

  std::string describe(const Name& name, const Access& a, const Access& b) const {
    const auto one = [&](const Access& access) {
      const Op& op = step_.ops[access.op];
      constexpr const char* kUses[] = {"reads", "adds to", "changes"};
      return fmt::format("operation {} ({}, {}) {}", access.op, to_string(op.kind),
                         to_string(trace_.meanings[op.operand.meaning].kernel),
                         kUses[static_cast<std::size_t>(access.use)]);
    };
    return fmt::format("{}: {} '{}' while {} it", step_.name, one(a), trace_.tensors[std::get<0>(name)].name,
                       one(b));
  }

  const Trace& trace_;
  const StepTemplate& step_;
  std::vector<std::vector<bool>> before_;
  std::map<Name, std::vector<Access>> accesses_;
};

}  // namespace

std::vector<std::string> unordered_uses(const Trace& trace, std::size_t limit) {
  std::vector<std::string> faults;
  for (const StepTemplate& step : trace.templates) TemplateCheck(trace, step).report(faults, limit);
  return faults;
}

}  // namespace wafersim::workloads::numeric
