#include "tests/workloads/numeric/ordering.h"

#include <fmt/format.h>

#include <map>
#include <tuple>

#include "tests/workloads/numeric/tile_values.h"
#include "workloads/region_map.h"

namespace wafersim::workloads::numeric {

namespace {

enum class Use { reads, adds, changes };

struct Access {
  std::uint32_t op = 0;
  Use use = Use::reads;
  Region region;
};

struct Used {
  Use use = Use::reads;
  View view;
};

/// What an operation does with the tile's own numbers; what lands or passes is kept apart from them.
std::vector<Used> uses_of(const Trace& trace, const Op& op) {
  const Meaning& meaning = trace.meanings[op.operand.meaning];
  const bool moves = meaning.kernel == Kernel::transfer || meaning.kernel == Kernel::land;
  std::vector<Used> result;
  if (meaning.kernel == Kernel::pass) return result;
  for (const View& view : meaning.reads) result.push_back({Use::reads, view});
  for (const View& view : meaning.discards) result.push_back({Use::changes, view});
  if (meaning.kernel == Kernel::land && op.kind == OpKind::receive) return result;
  for (const View& view : meaning.writes) {
    const bool gradient = is_gradient(trace.tensors[view.tensor].scope);
    const Use written = !moves && (gradient || meaning.adds) ? Use::adds : Use::changes;
    const bool sends = op.kind == OpKind::send || op.kind == OpKind::multicast;
    result.push_back({sends ? Use::reads : written, view});
  }
  return result;
}

bool conflict(Use a, Use b) { return a != b || a == Use::changes; }

bool has_engine(const Op& op) { return op.kind == OpKind::matrix || op.kind == OpKind::vector; }

std::string describe(const Trace& trace, const Op& op, std::uint32_t number, Use use) {
  constexpr const char* kUses[] = {"reads", "adds to", "changes"};
  return fmt::format("operation {} ({}, {}) {}", number, to_string(op.kind),
                     to_string(trace.meanings[op.operand.meaning].kernel),
                     kUses[static_cast<std::size_t>(use)]);
}

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
      if (!has_engine(each)) continue;
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
    for (const Used& used : uses_of(trace_, step_.ops[op])) {
      accesses_[{used.view.tensor, used.view.layer, used.view.absolute}].push_back(
          {op, used.use, used.view.region});
    }
  }

  bool collide(const Access& a, const Access& b) const {
    if (a.op == b.op || !conflict(a.use, b.use)) return false;
    return overlap(a.region, b.region) && !before_[b.op][a.op] && !before_[a.op][b.op];
  }

  std::string describe(const Name& name, const Access& a, const Access& b) const {
    const auto one = [&](const Access& each) {
      return numeric::describe(trace_, step_.ops[each.op], each.op, each.use);
    };
    return fmt::format("{}: {} '{}' while {} it", step_.name, one(a), trace_.tensors[std::get<0>(name)].name,
                       one(b));
  }

  const Trace& trace_;
  const StepTemplate& step_;
  std::vector<std::vector<bool>> before_;
  std::map<Name, std::vector<Access>> accesses_;
};

/// Steps of one program, of which several may be open at once.
class ProgramCheck {
 public:
  ProgramCheck(const Trace& trace, const Program& program) : trace_(trace), program_(program) {
    std::vector<bool> delivered(program.steps.size());
    for (std::uint32_t number = 0; number < program.steps.size(); ++number) {
      const Step& step = program.steps[number];
      for (std::uint32_t i = 0; i < step.wait_count; ++i)
        delivered[program.waits[step.first_wait + i]] = true;
      delivered_.push_back(delivered);
      const std::vector<Op>& ops = trace.templates[step.step_template].ops;
      for (std::uint32_t op = 0; op < ops.size(); ++op) {
        for (const Used& used : uses_of(trace, ops[op])) {
          accesses_[matrix_key(trace, step, used.view)].push_back({{op, used.use, used.view.region}, number});
        }
      }
    }
  }

  void report(std::vector<std::string>& faults, std::size_t limit) const {
    for (const auto& [key, accesses] : accesses_) {
      for (std::size_t i = 0; i < accesses.size(); ++i) {
        for (std::size_t j = i + 1; j < accesses.size() && faults.size() < limit; ++j) {
          if (collide(accesses[i], accesses[j])) faults.push_back(describe(key, accesses[i], accesses[j]));
        }
      }
    }
  }

 private:
  struct StepAccess {
    Access access;
    std::uint32_t step = 0;
  };

  const Op& op_of(const StepAccess& at) const {
    return trace_.templates[program_.steps[at.step].step_template].ops[at.access.op];
  }

  /// `a` comes first in the program. Detached operations send what a stage hands on and free it: nothing uses
  /// it but a step that recomputes, in a new buffer of the same name.
  bool collide(const StepAccess& a, const StepAccess& b) const {
    if (a.step == b.step || !conflict(a.access.use, b.access.use)) return false;
    if (!overlap(a.access.region, b.access.region)) return false;
    if (has_engine(op_of(a)) && op_of(a).kind == op_of(b).kind) return false;
    return !op_of(a).detached && !delivered_[b.step][a.step];
  }

  std::string describe(const MatrixKey& key, const StepAccess& a, const StepAccess& b) const {
    const auto one = [&](const StepAccess& each) {
      const Step& step = program_.steps[each.step];
      return fmt::format("{} of {} (layer {})",
                         numeric::describe(trace_, op_of(each), each.access.op, each.access.use),
                         trace_.templates[step.step_template].name, step.layer);
    };
    return fmt::format("'{}' of layer {}: {} while {}", trace_.tensors[key.tensor].name, key.layer, one(a),
                       one(b));
  }

  const Trace& trace_;
  const Program& program_;
  std::vector<std::vector<bool>> delivered_;  ///< by step: which steps are over when it opens
  std::map<MatrixKey, std::vector<StepAccess>> accesses_;
};

}  // namespace

std::vector<std::string> unordered_uses(const Trace& trace, std::size_t limit) {
  std::vector<std::string> faults;
  for (const StepTemplate& step : trace.templates) TemplateCheck(trace, step).report(faults, limit);
  for (const Program& program : trace.programs) ProgramCheck(trace, program).report(faults, limit);
  return faults;
}

}  // namespace wafersim::workloads::numeric
