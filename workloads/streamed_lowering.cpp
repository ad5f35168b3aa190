#include <unordered_map>
#include <utility>

#include "base/error.h"
#include "workloads/reduction_tree.h"
#include "workloads/step_builder.h"
#include "workloads/streamed_collective.h"

namespace wafersim::workloads {
namespace {

constexpr std::uint32_t kTowardsRoot = 0;  // channels
constexpr std::uint32_t kFromRoot = 1;

/// Builds the one step of one tile.
class TileStep {
 public:
  TileStep(Trace& trace, TileId tile, bool follows, Cycle launch, Cycle task_overhead, const models::HardwareModel& hardware)
      : trace_(trace), builder_(trace, "collective"), follows_(follows), task_(work_of(task_overhead, hardware)) {
    binding_.tile = tile;
    binding_.first_peer = static_cast<std::uint32_t>(trace.peers.size());
    if (launch != 0) start_.push_back(builder_.vector(work_of(launch, hardware), {}));
  }

  /// Taken as it comes in.
  OpId receive(TileId from, std::uint32_t channel, Bytes bytes) {
    const OpId id = builder_.receive(Axis::none, peer(from), channel, bytes, start_);
    builder_.stream(id);
    return id;
  }

  /// What a use of `received` waits for: with store_and_forward a task of the core that begins when all of it is there.
  std::vector<OpId> use(const std::vector<OpId>& received) {
    if (follows_ || task_.vector_flops == 0 || received.empty()) return received;
    return {builder_.reduce(Axis::none, task_, received)};
  }

  /// Of own data and what was received (`ready`, as use() returns it), after the send `before`.
  OpId send(const std::vector<TileId>& to, std::uint32_t channel, Bytes bytes, const std::vector<OpId>& ready,
            std::optional<OpId> before = {}) {
    std::vector<OpId> after = ready;
    after.insert(after.end(), start_.begin(), start_.end());
    if (before) after.push_back(*before);
    std::vector<std::uint32_t> peers;
    for (const TileId tile : to) peers.push_back(peer(tile));
    const OpId id = peers.size() == 1 ? builder_.send(Axis::none, peers.front(), channel, bytes, after)
                                      : builder_.multicast(Axis::none, peers, channel, bytes, after);
    builder_.stream(id);
    if (follows_ && !ready.empty()) builder_.follow(id);
    return id;
  }

  void finish() {
    Program program;
    program.steps.emplace_back();
    program.steps.back().step_template = builder_.finish();
    binding_.program = static_cast<std::uint32_t>(trace_.programs.size());
    trace_.programs.push_back(std::move(program));
    trace_.tiles.push_back(binding_);
  }

 private:
  /// The vector engine is busy for so many cycles.
  static Work work_of(Cycle cycles, const models::HardwareModel& hardware) {
    if (cycles == 0) return {};
    const Rational most = Rational(static_cast<std::int64_t>(cycles - 1)) * hardware.vector_flops_per_cycle;
    return {.gemm = {}, .vector_flops = most.floor() + 1, .sram_bytes = 0, .class_bytes = {}};
  }

  /// Tiles are numbered as they are first named, so that equal steps of different tiles are the same template.
  std::uint32_t peer(TileId tile) {
    const auto [place, fresh] = peers_.try_emplace(tile, binding_.peer_count);
    if (!fresh) return place->second;
    trace_.peers.push_back(tile);
    return binding_.peer_count++;
  }

  Trace& trace_;
  StepBuilder builder_;
  TileBinding binding_;
  std::unordered_map<TileId, std::uint32_t> peers_;
  bool follows_;
  Work task_;
  std::vector<OpId> start_;
};

}  // namespace

/// Lowers a collective tile by tile.
class StreamedCollective::Lowering {
 public:
  explicit Lowering(const StreamedCollective& collective)
      : collective_(collective),
        spec_(collective.spec_),
        root_(collective.root().y * collective.shape().cols + collective.root().x),
        launch_(spec_.launch.cycles(collective.hardware_.clock)),
        task_overhead_(spec_.task_overhead.cycles(collective.hardware_.clock)) {
    trace_.statics.emplace_back();
  }

  Trace trees() {
    const ReductionTree tree = collective_.tree();
    for (int rank = 0; rank < tree.size(); ++rank) {
      TileStep step = step_of(rank);
      if (spec_.kind == StreamedKind::broadcast) {
        pass_down(step, tree, rank);
      } else {
        pass_up(step, tree, rank);
      }
      step.finish();
    }
    return std::move(trace_);
  }

  Trace multicast() {
    for (int rank = 0; rank < collective_.shape().size(); ++rank) {
      TileStep step = step_of(rank);
      if (rank == root_) {
        step.send(all_but_root(), kFromRoot, spec_.bytes.bytes, {});
      } else {
        step.use({step.receive(collective_.tile(root_), kFromRoot, spec_.bytes.bytes)});
      }
      step.finish();
    }
    return std::move(trace_);
  }

  Trace ring() {
    for (int rank = 0; rank < collective_.shape().size(); ++rank) {
      TileStep step = step_of(rank);
      pass_round(step, rank);
      step.finish();
    }
    return std::move(trace_);
  }

 private:
  TileStep step_of(int rank) {
    return {trace_,        collective_.tile(rank), collective_.relay() == StreamRelay::cut_through, launch_, task_overhead_,
            collective_.hardware_};
  }

  std::vector<TileId> all_but_root() const {
    std::vector<TileId> tiles;
    for (int rank = 0; rank < collective_.shape().size(); ++rank) {
      if (rank != root_) tiles.push_back(collective_.tile(rank));
    }
    return tiles;
  }

  void pass_up(TileStep& step, const ReductionTree& tree, int rank) {
    const Bytes bytes = spec_.bytes.bytes;
    std::vector<OpId> sums;
    for (const int child : tree.children(rank)) sums.push_back(step.receive(collective_.tile(child), kTowardsRoot, bytes));
    sums = step.use(sums);
    const bool all = spec_.kind == StreamedKind::all_reduce;
    if (rank != root_) {
      step.send({collective_.tile(tree.parent(rank))}, kTowardsRoot, bytes, sums);
      if (all) step.use({step.receive(collective_.tile(root_), kFromRoot, bytes)});
    } else if (all) {
      step.send(all_but_root(), kFromRoot, bytes, sums);
    }
  }

  void pass_down(TileStep& step, const ReductionTree& tree, int rank) {
    std::vector<OpId> received;
    if (rank != root_) received.push_back(step.receive(collective_.tile(tree.parent(rank)), kFromRoot, spec_.bytes.bytes));
    received = step.use(received);
    std::optional<OpId> last;
    for (const int child : tree.children(rank)) {
      last = step.send({collective_.tile(child)}, kFromRoot, spec_.bytes.bytes, received, last);
    }
  }

  /// In step s tile r sends share r - s, which it has received in the step before, from which on in the first P - 1 steps its
  /// own values are in it, too. Shares of no elements are not sent.
  void pass_round(TileStep& step, int rank) {
    const int tiles = collective_.shape().size();
    const TileId next = collective_.tile((rank + 1) % tiles);
    const TileId previous = collective_.tile((rank + tiles - 1) % tiles);
    std::vector<OpId> received;
    std::optional<OpId> last;
    for (int s = 0; s < 2 * (tiles - 1); ++s) {
      const auto channel = static_cast<std::uint32_t>(s);
      if (const Bytes bytes = share(rank - s)) last = step.send({next}, channel, bytes, received, last);
      received.clear();
      if (const Bytes bytes = share(rank - s - 1)) received = step.use({step.receive(previous, channel, bytes)});
    }
  }

  /// Of the elements, cut evenly, the last shares larger by one; `index` modulo the tiles.
  Bytes share(int index) const {
    const int tiles = collective_.shape().size();
    const auto at = static_cast<Bytes>((index % tiles + tiles) % tiles);
    const Bytes elements = spec_.bytes.bytes / kStreamedElement;
    const auto count = static_cast<Bytes>(tiles);
    return (elements / count + (count - at <= elements % count ? 1 : 0)) * kStreamedElement;
  }

  const StreamedCollective& collective_;
  const CollectiveSpec& spec_;
  int root_;
  Cycle launch_;
  Cycle task_overhead_;
  Trace trace_;
};

Trace StreamedCollective::trace() const {
  if (spec_.algorithm == StreamedAlgorithm::ring) return Lowering(*this).ring();
  if (spec_.algorithm == StreamedAlgorithm::router_multicast) return Lowering(*this).multicast();
  return Lowering(*this).trees();
}

}  // namespace wafersim::workloads
