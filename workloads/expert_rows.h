#pragma once

#include "workloads/shard.h"

/// Rows of the tensors of a mixture of experts. The choices of a rank's tokens are numbered token by token,
/// top_k each: choice c goes to expert c mod experts and takes its slot c div experts, so that all experts
/// get equally many, up to one. An expert has `Shard::expert_slots` slots for each rank; choices beyond them
/// are dropped, slots beyond the choices hold zeros. Slots of all ranks that share the experts out (ep) are
/// the rows of one matrix: expert by expert, rank by rank, slot by slot.
namespace wafersim::workloads {

/// Those of an expert, for the tokens of all ranks.
inline TokenSet expert_rows(const Shard& shard, std::uint64_t expert) {
  const std::uint64_t rows = static_cast<std::uint64_t>(shard.ep) * shard.expert_slots;
  return {{{expert * rows, rows}}, 0};
}

/// Those of several experts, for the tokens of one rank of ep.
inline TokenSet expert_rows(const Shard& shard, const Range& experts, int source) {
  TokenSet result;
  for (std::uint64_t expert = experts.first; expert < experts.end(); ++expert) {
    const std::uint64_t block =
        expert * static_cast<std::uint64_t>(shard.ep) + static_cast<std::uint64_t>(source);
    result.ranges.push_back({block * shard.expert_slots, shard.expert_slots});
  }
  return result;
}

}  // namespace wafersim::workloads
