#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <tuple>
#include <vector>

#include "workloads/model_steps.h"
#include "workloads/program_builder.h"
#include "workloads/replica_shares.h"

/// The steps of a program beside those of the model: sums of gradients, the optimizer, gathers of parameters.
namespace wafersim::workloads {

/// Writes the templates of background steps and the optimizer into a trace, those of equal layers once.
class BackgroundTemplates {
 public:
  /// Both must outlive this.
  BackgroundTemplates(Trace& trace, const PlanRanks& plan) : trace_(trace), plan_(plan) {}

  /// Of the sums of a rank's gradients, by bucket; none where there is nothing to sum.
  std::map<std::int32_t, std::uint32_t> syncs(const Ranks& ranks);
  /// Of the gather of a bucket's parameters.
  std::uint32_t gather(std::int32_t bucket, const Ranks& ranks);
  /// Of the sum of the table that both ends of a pipeline hold.
  std::uint32_t tied_sync(const Ranks& ranks);
  std::uint32_t optimizer(const Ranks& ranks);

 private:
  /// Of a rank and its replica: layers have number 0.
  using Key = std::tuple<InnerRank, int, std::int32_t>;
  Key key(std::int32_t bucket, const Ranks& ranks) const;
  bool is_layer(std::int32_t bucket) const;

  Trace& trace_;
  const PlanRanks& plan_;
  std::map<Key, std::optional<std::uint32_t>> syncs_;
  std::map<Key, std::uint32_t> gathers_;
};

/// Whether the optimizer is followed by gathers of the weights that it updated (zero 1 and 2).
bool gathers_updates(const PlanStages& plan);

/// The gathers of zero 3 for the steps of an iteration of a rank that holds these buckets; none otherwise. `gather` gives the
/// template of the gather of a bucket.
ParameterPrefetch parameter_prefetch(ProgramBuilder& program, const PlanStages& plan, const std::vector<std::int32_t>& held,
                                     const std::vector<ModelStep>& steps,
                                     const std::function<std::uint32_t(std::int32_t)>& gather);

}  // namespace wafersim::workloads
