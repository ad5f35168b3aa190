#include "workloads/verify.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <map>

#include "base/text.h"
#include "workloads/region_map.h"
#include "workloads/replay.h"

namespace wafersim::workloads {

namespace {

std::string describe(const Region& region) {
  if (region.col == 0 && region.cols == 1) return fmt::format("rows {}..{}", region.row, region.row_end() - 1);
  return fmt::format("rows {}..{}, columns {}..{}", region.row, region.row_end() - 1, region.col,
                     region.col_end() - 1);
}

std::string describe(const Held& held) {
  std::vector<std::string> parts;
  for (const Range& each : held.terms) parts.push_back(fmt::format("{}..{}", each.first, each.end() - 1));
  return fmt::format("addends {} of {}", join(parts, ", "), held.total);
}

class Verifier final : public ReplayObserver {
 public:
  Verifier(const Trace& trace, const topology::Mesh& mesh, FaultList& faults)
      : trace_(trace), mesh_(mesh), faults_(faults), tiles_(trace.tiles.size()) {
    for (const Meaning& meaning : trace.meanings) updates_ = updates_ || meaning.kernel == Kernel::update;
    for (std::size_t tile = 0; tile < tiles_.size(); ++tile) {
      for (const View& view : trace.statics[trace.tiles[tile].statics].holds) {
        tiles_[tile].matrices[{view.tensor, view.layer, -1, -1}].replace(view.region, complete(0));
      }
    }
  }

  void performed(const OpInstance& at) override {
    const Op& op = op_of(at);
    const Meaning& meaning = trace_.meanings[op.operand.meaning];
    if (meaning.kernel == Kernel::none) return;
    if (op.kind == OpKind::send || op.kind == OpKind::multicast) return send(at, meaning);
    if (meaning.kernel == Kernel::add || meaning.kernel == Kernel::maximum) return take_landed(at, meaning);
    if (meaning.kernel == Kernel::accumulate) return accumulate(at, meaning);
    for (const View& view : meaning.reads) read(at, view, true);
    for (const View& view : meaning.discards) discard(at, view);
    for (const View& view : meaning.writes) write(at, meaning, view);
  }

  void received(const OpInstance& sender, const OpInstance& receiver) override {
    const Meaning& sent = trace_.meanings[op_of(sender).operand.meaning];
    const Meaning& wanted = trace_.meanings[op_of(receiver).operand.meaning];
    if (sent.kernel == Kernel::none && wanted.kernel == Kernel::none) return;
    Carried carried = carried_to_one(sender);
    if (!agree(sender, sent, receiver, wanted)) {
      faults_.add([&] {
        return fmt::format("{}: carries {}, but {} expects {}", where(sender), named(sender, sent),
                           where(receiver), named(receiver, wanted));
      });
      return;
    }
    Tile& tile = tiles_[receiver.tile];
    for (auto& [key, cells] : carried) {
      for (const Cell& cell : cells) {
        if (wanted.kernel == Kernel::transfer) tile.matrices[key].replace(cell.region, cell.held);
      }
      if (wanted.kernel != Kernel::transfer) tile.landed[key].push_back(std::move(cells));
    }
  }

  void finish() {
    for (std::size_t tile = 0; tile < tiles_.size(); ++tile) {
      const auto start = static_cast<std::uint32_t>(tile);
      for (const View& view : trace_.statics[trace_.tiles[tile].statics].holds) {
        check_weights(start, view);
      }
      for (const auto& [key, matrix] : tiles_[tile].matrices) {
        if (matrix.empty() || !ends_empty(trace_.tensors[key.tensor].scope)) continue;
        faults_.add([&, &matrix = matrix, &key = key] {
          return fmt::format("{}: {} is left at the end: {}", tile_name(start), name(key),
                             describe(matrix.cells().front().region));
        });
      }
    }
  }

 private:
  using Cells = std::vector<Cell>;
  using Carried = std::vector<std::pair<MatrixKey, Cells>>;
  struct InFlight {
    Carried carried;
    std::uint32_t receivers_left = 0;
  };
  struct Tile {
    std::map<MatrixKey, RegionMap> matrices;
    std::map<MatrixKey, std::deque<Cells>> landed;
  };

  static bool ends_empty(TensorScope scope) {
    return scope == TensorScope::activation || scope == TensorScope::microbatch_gradient;
  }
  /// What a read asks for: everything, or some addends of a sum and no others.
  static bool has_addends(const Held& held, const Terms& asked) {
    if (asked == Terms{}) return held.complete();
    return held.total == asked.total && held.terms.size() == 1 && held.terms.front() == Range{asked.first, asked.count};
  }
  static Held complete(std::int32_t version) { return {{{0, 1}}, 1, version}; }

  const Step& step_of(const OpInstance& at) const {
    return trace_.programs[trace_.tiles[at.tile].program].steps[at.step];
  }
  const Op& op_of(const OpInstance& at) const { return trace_.templates[step_of(at).step_template].ops[at.op]; }

  MatrixKey key_of(const OpInstance& at, const View& view) const { return matrix_key(trace_, step_of(at), view); }

  /// The cells of what an operation reads; reports what is not there or not complete.
  Cells read(const OpInstance& at, const View& view, bool whole) {
    const MatrixKey key = key_of(at, view);
    const auto found = tiles_[at.tile].matrices.find(key);
    Cells cells = found == tiles_[at.tile].matrices.end() ? Cells{} : found->second.clip(view.region);
    std::uint64_t area = 0;
    for (const Cell& cell : cells) {
      area += cell.region.area();
      if (whole && !has_addends(cell.held, view.terms)) {
        faults_.add([&] {
          return fmt::format("{}: reads {}, {}, which has {}", where(at), name(key), describe(cell.region),
                             describe(cell.held));
        });
      }
      if (updates_ && trace_.tensors[view.tensor].scope == TensorScope::parameter &&
          cell.held.version != expected_version(at)) {
        faults_.add([&] {
          return fmt::format("{}: reads {}, {}, after {} updates instead of {}", where(at), name(key),
                             describe(cell.region), cell.held.version, expected_version(at));
        });
      }
    }
    if (area != view.region.area()) {
      faults_.add([&] {
        return fmt::format("{}: reads {}, {}, of which {} of {} values are there", where(at), name(key),
                           describe(view.region), area, view.region.area());
      });
    }
    return cells;
  }

  /// A parameter gather comes after the optimizer of its iteration, unless it is for a pass.
  std::int32_t expected_version(const OpInstance& at) const {
    const Step& step = step_of(at);
    return step.iteration + (step.kind == StepKind::parameter_gather && step.pass == Pass::none ? 1 : 0);
  }

  void discard(const OpInstance& at, const View& view) {
    const auto found = tiles_[at.tile].matrices.find(key_of(at, view));
    if (found == tiles_[at.tile].matrices.end()) return;
    found->second.erase(view.region);
    if (found->second.empty()) tiles_[at.tile].matrices.erase(found);
  }

  void write(const OpInstance& at, const Meaning& meaning, const View& view) {
    if (view.region.area() == 0) return;
    const TensorScope scope = trace_.tensors[view.tensor].scope;
    const MatrixKey key = key_of(at, view);
    Held held{{{view.terms.first, view.terms.count}}, view.terms.total, 0};
    if (view.terms.count == 0) held.terms.clear();
    if (is_gradient(scope)) {
      const Step& step = step_of(at);
      const auto replica =
          static_cast<std::uint64_t>(trace_.tiles[at.tile].group / trace_.pipeline_stages + view.replica);
      const auto microbatches = static_cast<std::uint64_t>(trace_.microbatches);
      const std::uint64_t turn = replica * microbatches + static_cast<std::uint64_t>(step.microbatch);
      for (Range& each : held.terms) each.first += turn * held.total;
      held.total *= static_cast<std::uint64_t>(trace_.replicas) * microbatches;
    }
    if (meaning.kernel == Kernel::update) held.version = step_of(at).iteration + 1;
    if (is_gradient(scope) || meaning.adds) {
      add(at, key, view.region, held);
    } else {
      tiles_[at.tile].matrices[key].replace(view.region, held);
    }
  }

  void add(const OpInstance& at, const MatrixKey& key, const Region& region, const Held& held) {
    if (tiles_[at.tile].matrices[key].add(region, held)) return;
    faults_.add([&] {
      return fmt::format("{}: adds {} to {}, {}, which has some of them", where(at), describe(held), name(key),
                         describe(region));
    });
  }

  void accumulate(const OpInstance& at, const Meaning& meaning) {
    for (std::size_t i = 0; i < meaning.reads.size(); ++i) {
      for (const Cell& cell : read(at, meaning.reads[i], false)) {
        add(at, key_of(at, meaning.writes.at(i)), cell.region, cell.held);
      }
    }
  }

  void send(const OpInstance& at, const Meaning& meaning) {
    InFlight& sent = in_flight_[at];
    sent.receivers_left = op_of(at).kind == OpKind::multicast ? op_of(at).peer_count : 1;
    for (const View& view : meaning.writes) {
      sent.carried.emplace_back(key_of(at, view), meaning.kernel == Kernel::pass ? take(at, view) : read(at, view, false));
    }
  }

  /// What a message brings to one of its receivers.
  Carried carried_to_one(const OpInstance& sender) {
    const auto entry = in_flight_.find(sender);
    if (entry == in_flight_.end()) return {};
    if (--entry->second.receivers_left != 0) return entry->second.carried;
    return std::move(in_flight_.extract(entry).mapped().carried);
  }

  /// What has landed of a view; reports when nothing has.
  Cells take(const OpInstance& at, const View& view) {
    const MatrixKey key = key_of(at, view);
    std::deque<Cells>& queue = tiles_[at.tile].landed[key];
    const auto found = std::find_if(queue.begin(), queue.end(), [&](const Cells& cells) {
      return !cells.empty() && overlap(cells.front().region, view.region);
    });
    if (found == queue.end()) {
      faults_.add([&] {
        return fmt::format("{}: takes {}, {}, but nothing has landed", where(at), name(key), describe(view.region));
      });
      return {};
    }
    Cells cells = std::move(*found);
    queue.erase(found);
    return cells;
  }

  void take_landed(const OpInstance& at, const Meaning& meaning) {
    for (const View& view : meaning.writes) {
      for (const Cell& cell : take(at, view)) add(at, key_of(at, view), cell.region, cell.held);
    }
  }

  bool agree(const OpInstance& sender, const Meaning& sent, const OpInstance& receiver,
             const Meaning& wanted) const {
    // Who only passes a message on does not care what becomes of it.
    const bool passed = sent.kernel == Kernel::pass || wanted.kernel == Kernel::pass;
    if ((!passed && sent.kernel != wanted.kernel) || sent.writes.size() != wanted.writes.size()) return false;
    for (std::size_t i = 0; i < sent.writes.size(); ++i) {
      const View &a = sent.writes[i], &b = wanted.writes[i];
      if (a.region != b.region || key_of(sender, a) != key_of(receiver, b)) return false;
    }
    return true;
  }

  void check_weights(std::uint32_t tile, const View& view) {
    const MatrixKey key{view.tensor, view.layer, -1, -1};
    std::uint64_t area = 0;
    for (const Cell& cell : tiles_[tile].matrices[key].clip(view.region)) {
      if (cell.held.complete() && cell.held.version == (updates_ ? trace_.iterations : 0)) {
        area += cell.region.area();
      }
    }
    if (area == view.region.area()) return;
    faults_.add([&] {
      return fmt::format("{}: {} of {} values of {}, {}, are there and up to date at the end", tile_name(tile), area,
                         view.region.area(), name(key), describe(view.region));
    });
  }

  std::string tile_name(std::uint32_t tile) const { return mesh_.name(trace_.tiles[tile].tile); }

  std::string where(const OpInstance& at) const {
    const Step& step = step_of(at);
    const Op& op = op_of(at);
    return fmt::format("{}: {} {} (layer {}, microbatch {}), operation {} ({}, {})", tile_name(at.tile),
                       trace_.templates[step.step_template].name, to_string(step.pass), step.layer, step.microbatch,
                       at.op, to_string(op.kind), to_string(trace_.meanings[op.operand.meaning].kernel));
  }

  std::string name(const MatrixKey& key) const {
    return fmt::format("'{}' of layer {}", trace_.tensors[key.tensor].name, key.layer);
  }

  std::string named(const OpInstance& at, const Meaning& meaning) const {
    std::vector<std::string> parts;
    for (const View& view : meaning.writes) {
      parts.push_back(fmt::format("{}, {}", name(key_of(at, view)), describe(view.region)));
    }
    return parts.empty() ? "nothing that is named" : join(parts, "; ");
  }

  const Trace& trace_;
  const topology::Mesh& mesh_;
  FaultList& faults_;
  std::vector<Tile> tiles_;
  std::map<OpInstance, InFlight> in_flight_;
  bool updates_ = false;
};

}  // namespace

std::vector<std::string> verify_trace(const Trace& trace, const topology::Mesh& mesh, std::size_t limit) {
  FaultList faults(limit);
  check_structure(trace, mesh, faults);
  if (!faults.texts().empty()) return faults.texts();
  Verifier verifier(trace, mesh, faults);
  Replay(trace, mesh, faults, &verifier).run();
  if (faults.texts().empty()) verifier.finish();
  return faults.texts();
}

}  // namespace wafersim::workloads
