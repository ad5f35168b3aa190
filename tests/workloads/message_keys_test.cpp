#include "workloads/message_keys.h"

#include <gtest/gtest.h>

#include "workloads/trace.h"

namespace wafersim::workloads {
namespace {

TEST(MessageKeys, AKeyIsThatOfAShiftedStep) {
  for (const MatchScope scope : {MatchScope::step, MatchScope::microbatch}) {
    for (const std::int32_t microbatch : {-1, 0, 5, 4000}) {
      for (const std::int16_t iteration : {std::int16_t{0}, std::int16_t{14}, std::int16_t{300}}) {
        Op op;
        op.scope = scope;
        op.channel = (1U << 23) - 2;
        Step step;
        step.kind = StepKind::optimizer;
        step.pass = Pass::none;
        step.layer = 4095;
        step.microbatch = microbatch;
        step.iteration = iteration;
        Step later = step;
        if (microbatch >= 0) later.microbatch += 61'000;
        later.iteration = static_cast<std::int16_t>(iteration + 7);
        const std::uint64_t key = message_key(op, step);
        EXPECT_EQ(shifted_key(key, 61'000, 7), message_key(op, later)) << microbatch << ' ' << iteration;
        EXPECT_EQ(shifted_key(message_key(op, later), -61'000, -7), key) << microbatch << ' ' << iteration;
        const KeyParts parts = key_parts(key);
        EXPECT_EQ(parts.microbatch, microbatch);
        EXPECT_EQ(parts.iteration, static_cast<std::uint32_t>(iteration) % parts.iteration_modulus);
        EXPECT_EQ(parts.iteration_modulus, scope == MatchScope::step ? 16U : 65536U);
      }
    }
  }
}

}  // namespace
}  // namespace wafersim::workloads
