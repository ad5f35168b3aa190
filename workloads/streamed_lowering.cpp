#include <utility>

#include "workloads/reduction_tree.h"
#include "workloads/streamed_collective.h"
#include "workloads/tile_program.h"

namespace wafersim::workloads {
namespace {

constexpr std::uint32_t kTowardsRoot = 0;  // channels
constexpr std::uint32_t kFromRoot = 1;

}  // namespace

/// Lowers a collective tile by tile.
class StreamedCollective::Lowering {
 public:
  explicit Lowering(const StreamedCollective& collective)
      : collective_(collective),
        spec_(collective.spec_),
        root_(collective.root().y * collective.shape().cols + collective.root().x),
        launch_(busy_work(spec_.launch.cycles(collective.hardware_.clock), collective.hardware_)),
        task_(busy_work(spec_.task_overhead.cycles(collective.hardware_.clock), collective.hardware_)),
        programs_(trace_) {}

  Trace trees() {
    const ReductionTree tree = collective_.tree();
    for (int rank = 0; rank < tree.size(); ++rank) {
      StreamedStep step = step_of(rank);
      if (spec_.kind == StreamedKind::broadcast) {
        pass_down(step, tree, rank);
      } else {
        pass_up(step, tree, rank);
      }
      end(step);
    }
    return std::move(trace_);
  }

  Trace multicast() {
    for (int rank = 0; rank < collective_.shape().size(); ++rank) {
      StreamedStep step = step_of(rank);
      if (rank == root_) {
        step.send(all_but_root(), kFromRoot, spec_.bytes.bytes, {});
      } else {
        step.use({step.receive(collective_.tile(root_), kFromRoot, spec_.bytes.bytes)});
      }
      end(step);
    }
    return std::move(trace_);
  }

  Trace ring() {
    for (int rank = 0; rank < collective_.shape().size(); ++rank) {
      StreamedStep step = step_of(rank);
      pass_round(step, rank);
      end(step);
    }
    return std::move(trace_);
  }

 private:
  StreamedStep step_of(int rank) {
    programs_.begin(collective_.tile(rank));
    StreamedStep step(programs_, "collective", collective_.relay(), task_);
    step.first_vector(launch_);
    return step;
  }

  void end(StreamedStep& step) {
    programs_.step(step.finish());
    programs_.end();
  }

  std::vector<TileId> all_but_root() const {
    std::vector<TileId> tiles;
    for (int rank = 0; rank < collective_.shape().size(); ++rank) {
      if (rank != root_) tiles.push_back(collective_.tile(rank));
    }
    return tiles;
  }

  void pass_up(StreamedStep& step, const ReductionTree& tree, int rank) {
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

  void pass_down(StreamedStep& step, const ReductionTree& tree, int rank) {
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
  void pass_round(StreamedStep& step, int rank) {
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
  Work launch_;
  Work task_;
  Trace trace_;
  TilePrograms programs_;
};

Trace StreamedCollective::trace() const {
  if (spec_.algorithm == StreamedAlgorithm::ring) return Lowering(*this).ring();
  if (spec_.algorithm == StreamedAlgorithm::router_multicast) return Lowering(*this).multicast();
  return Lowering(*this).trees();
}

}  // namespace wafersim::workloads
