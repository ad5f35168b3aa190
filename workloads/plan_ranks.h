#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "workloads/peer_layout.h"
#include "workloads/plan_stages.h"

namespace wafersim::workloads {

/// What each rank of a plan is: its groups, its part of the model, its place in the pipeline. Made as it is asked for.
class PlanRanks : public PlanStages {
 public:
  /// `input` and `mapping` must outlive this.
  PlanRanks(const LoweringInput& input, const Mapping& mapping);
  PlanRanks(const PlanRanks&) = delete;
  PlanRanks& operator=(const PlanRanks&) = delete;

  /// Every rank, replica by replica, stage by stage.
  std::vector<Ranks> all() const;
  const RankContext& context(const Ranks& ranks) const;

  Group group(Axis axis, int rank) const { return peers_.group(axis, rank); }
  Replicas replicas(const Ranks& ranks) const { return peers_.replicas(ranks); }
  /// Of a rank that ties(): both ends.
  Group ends(const Ranks& ranks) const { return peers_.ends(is_first(ranks)); }
  /// The tiles that a rank exchanges messages with, in the order of PeerLayout.
  std::vector<TileId> peers(const Ranks& ranks) const { return peers_.peers(ranks, ties(ranks)); }
  TileId tile(const Ranks& ranks) const { return mapping_.tile(ranks); }

  /// Until it is asked for those of another rank.
  const std::map<std::int32_t, Bucket>& buckets(const Ranks& ranks) const;

 private:
  /// What the tiles of the plan are in a cut.
  struct CutRanks {
    CutRanks(const PlanRanks& plan, Cut which);
    LoweringInput input;
    ParameterLayout parameters;
    std::vector<Range> kv_sharers;
    mutable std::map<InnerRank, std::unique_ptr<const RankContext>> contexts;
  };
  RankContext make_context(const InnerRank& rank) const;
  const RankContext& cut_context(Cut cut, const InnerRank& rank) const;
  const std::vector<Range>& kv_sharers() const;

  const Mapping& mapping_;
  PlanCuts cuts_;
  Reshards reshards_;
  PeerLayout peers_;
  ParameterLayout parameters_;
  std::map<Cut, CutRanks> cut_ranks_;  ///< of operators, where some have degrees of their own
  mutable std::vector<std::unique_ptr<const RankContext>> contexts_;  ///< by inner rank
  mutable std::vector<Range> kv_sharers_;
  /// Of the inner rank and stage that was asked for last: a tile's are asked for many times in a row.
  mutable std::pair<const RankContext*, int> known_{nullptr, -1};
  mutable std::map<std::int32_t, Bucket> buckets_;
};

}  // namespace wafersim::workloads
