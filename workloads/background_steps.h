#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "workloads/model_steps.h"
#include "workloads/program_builder.h"
#include "workloads/replica_shares.h"

/// The steps of a program beside those of the model: sums of gradients, the optimizer, gathers of parameters.
namespace wafersim::workloads {

/// The templates of the sums of a rank's gradients, by bucket; none where there is nothing to sum.
std::map<std::int32_t, std::uint32_t> sync_templates(Trace& trace, const PlanRanks& plan, const Ranks& ranks);

/// On the ends of a pipeline with tied embeddings. Both ends use layer -1, so that their messages match.
void add_tied_gradient_sync(ProgramBuilder& program, Trace& trace, const PlanRanks& plan, const Ranks& ranks);

/// The optimizer and, with zero 1 and 2, the gathers of the weights that it updated.
void add_update(ProgramBuilder& program, Trace& trace, const PlanRanks& plan, const Ranks& ranks);

/// The gathers of zero 3 for the steps of an iteration; none otherwise.
ParameterPrefetch parameter_prefetch(ProgramBuilder& program, Trace& trace, const PlanRanks& plan, const Ranks& ranks,
                                     const std::vector<ModelStep>& steps);

}  // namespace wafersim::workloads
