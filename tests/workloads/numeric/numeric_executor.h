#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tests/workloads/numeric/kernel_call.h"
#include "workloads/replay.h"

namespace wafersim::workloads::numeric {

/// A number of a bucket as one tile has it.
struct BucketValue {
  std::uint32_t tile = 0;  ///< index into Trace::tiles
  std::int32_t iteration = 0;
  std::int32_t layer = 0;
  std::uint64_t row = 0;
  double value = 0;
};

/// Does the operations of a trace on real matrices as their meanings say, and knows nothing else of the plan.
class NumericExecutor final : public ReplayObserver {
 public:
  /// `initial`: by Parameters::index, of which each tile gets what it holds.
  NumericExecutor(const Trace& trace, const Problem& problem, const ParameterMap& map,
                  const std::vector<double>& initial, FaultList& faults);

  void performed(const OpInstance& at) override;
  void received(const OpInstance& sender, const OpInstance& receiver) override;

  /// Mean over the tokens of the global batch; not a number when some have none.
  double loss(std::uint64_t iteration) const;
  /// The gradients that the optimizer read.
  const std::vector<BucketValue>& gradients() const { return gradients_; }
  /// The sums of squares that it read.
  const std::vector<double>& square_sums() const { return square_sums_; }
  /// What each tile holds now of what it held at first.
  std::vector<BucketValue> weights() const;
  /// The gradients of the parameters that each tile holds, left without an optimizer.
  std::vector<BucketValue> gradients_left(std::int32_t iteration) const;

 private:
  struct Carried {
    MatrixKey key;
    Region region;
    Matrix values;
  };
  struct Tile {
    TileValues values;
    std::deque<Carried> landed;
    std::deque<Carried> passing;  ///< on their way to other members
    AttentionStatistics statistics;
  };
  using Results = std::vector<KernelCall::Result>;

  const Step& step_of(const OpInstance& at) const {
    return trace_.programs[trace_.tiles[at.tile].program].steps[at.step];
  }
  const Op& op_of(const OpInstance& at) const {
    return trace_.templates[step_of(at).step_template].ops[at.op];
  }
  const Meaning& meaning_of(const OpInstance& at) const { return trace_.meanings[op_of(at).operand.meaning]; }
  StepValues step_values(const OpInstance& at) { return {trace_, tiles_[at.tile].values, step_of(at)}; }

  void send(const OpInstance& at, const Meaning& meaning);
  void take_landed(const OpInstance& at, const Meaning& meaning);
  /// The first of that name, if there is one.
  static std::optional<Carried> take(std::deque<Carried>& from, const MatrixKey& key, const Region& region);
  Results compute(const OpInstance& at, const Meaning& meaning);
  Results square_sum(const Meaning& meaning, const StepValues& step) const;
  Results update(const OpInstance& at, const Meaning& meaning, const StepValues& step);
  std::vector<BucketValue> held(const MatrixKey& instead) const;
  void fault(const OpInstance& at, const std::string& what);

  const Trace& trace_;
  const Problem& problem_;
  const ParameterMap& map_;
  FaultList& faults_;
  std::vector<TensorShape> shapes_;
  std::vector<Tile> tiles_;
  struct InFlight {
    std::vector<Carried> parts;
    std::uint32_t receivers_left = 0;
  };
  std::map<OpInstance, InFlight> in_flight_;
  TokenLosses losses_;
  std::vector<BucketValue> gradients_;
  std::vector<double> square_sums_;
};

}  // namespace wafersim::workloads::numeric
