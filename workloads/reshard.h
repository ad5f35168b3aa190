#pragma once

#include <map>
#include <tuple>
#include <vector>

#include "workloads/plan_cuts.h"
#include "workloads/shard.h"

namespace wafersim::workloads {

/// How the tiles of a model group exchange rows of the residual stream, or of its gradient, between two operators whose degrees
/// cut it in different ways. Tiles by member (PlanCuts::member).
class Reshard {
 public:
  Reshard(const models::TransformerSpec& model, const TrainingSpec& training, const PlanCuts& cuts, Cut from, Cut to, int sp);

  /// Every tile has the rows that it needs, and no others.
  bool agrees() const { return held_ == wanted_; }
  /// Every tile needs all rows, and has those of its tensor-stream rank: an all-gather over the tatp group of `from`.
  bool gathers() const { return gathers_; }
  const TokenSet& held(int member) const { return held_[static_cast<std::size_t>(member)]; }
  const TokenSet& wanted(int member) const { return wanted_[static_cast<std::size_t>(member)]; }
  /// What one tile sends another. Where several have the same rows (tp without megatron) each gets them from its own line.
  TokenSet sent(int from, int to) const;

 private:
  bool may_send(int from, int to) const;

  bool replicated_;  ///< the ranks of a tensor-parallel group hold the same rows before
  bool gathers_;
  std::vector<int> from_tp_;  ///< tensor-parallel rank before
  std::vector<TokenSet> held_;
  std::vector<TokenSet> wanted_;
};

/// Those of a plan, each made once.
class Reshards {
 public:
  /// All must outlive the object.
  Reshards(const models::TransformerSpec& model, const TrainingSpec& training, const PlanCuts& cuts)
      : model_(model), training_(training), cuts_(cuts) {}
  const Reshard& get(Cut from, Cut to, int sp) const;
  const PlanCuts& cuts() const { return cuts_; }

 private:
  const models::TransformerSpec& model_;
  const TrainingSpec& training_;
  const PlanCuts& cuts_;
  mutable std::map<std::tuple<Cut, Cut, int>, Reshard> known_;
};

/// Rows of both, and rows of the first that the second has not.
TokenSet common(const TokenSet& a, const TokenSet& b);
TokenSet without(const TokenSet& a, const TokenSet& b);

}  // namespace wafersim::workloads
