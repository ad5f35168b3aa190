#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "tests/workloads/lowering_fixture.h"
#include "workloads/shard.h"

namespace wafersim::workloads {
namespace {

/// Rank by rank, the tokens of all are those of the microbatch, each once, and ordinals count those of the ranks before.
TEST(WorkTokens, OfAllRanksAreTheMicrobatchInTurn) {
  for (const auto sp : {SequenceParallel::none, SequenceParallel::ulysses, SequenceParallel::ring}) {
    for (const auto attention : {models::AttentionMask::causal, models::AttentionMask::full}) {
      for (const auto exchange : {StreamAttention::stream_kv, StreamAttention::heads}) {
        for (const auto& [degree, tatp, sequence] : {std::tuple(1, 1, 7), {2, 3, 32}, {3, 2, 31}, {4, 5, 97}, {5, 4, 160}}) {
          if (sp == SequenceParallel::none && degree > 1) continue;
          LoweringFixture setup;
          setup.model.attention = attention;
          setup.model.sequence = setup.model.context = sequence;
          setup.training.microbatch = 3;
          setup.plan.sp = sp;
          setup.plan.sp_degree = degree;
          setup.plan.tatp = tatp;
          setup.plan.stream.attention = exchange;
          std::vector<int> owners(static_cast<std::size_t>(3 * sequence), 0);
          std::uint64_t before = 0;
          for (int s = 0; s < degree; ++s) {
            for (int t = 0; t < tatp; ++t) {
              const TokenSet tokens = work_tokens(setup.model, setup.training, setup.plan, s, t);
              EXPECT_EQ(tokens.ordinal, before) << degree << " x " << tatp << ", rank " << s << ", " << t;
              before += tokens.count();
              for (const Range& range : tokens.ranges) {
                for (std::uint64_t token = range.first; token < range.end(); ++token) ++owners.at(token);
              }
            }
          }
          EXPECT_TRUE(std::all_of(owners.begin(), owners.end(), [](int count) { return count == 1; }))
              << degree << " x " << tatp << " of " << sequence;
        }
      }
    }
  }
}

}  // namespace
}  // namespace wafersim::workloads
