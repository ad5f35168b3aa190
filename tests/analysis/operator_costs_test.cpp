#include "analysis/operator_costs.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "analysis/step_schedule.h"
#include "base/error.h"
#include "base/random.h"
#include "tests/workloads/lowering_fixture.h"
#include "topology/routing_policy.h"

namespace wafersim::analysis {
namespace {

using workloads::Cut;
using workloads::LoweringFixture;
using workloads::OperatorDegrees;

/// Calls `visit` for every choice of an option for each operator.
template <class Visit>
void for_each_choice(const OperatorChain& chain, const Visit& visit) {
  std::vector<std::size_t> chosen(chain.operators.size(), 0);
  for (bool more = true; more;) {
    visit(chosen);
    std::size_t i = 0;
    while (i < chosen.size() && ++chosen[i] == chain.options.size()) chosen[i++] = 0;
    more = i < chosen.size();
  }
}

Cycle least_cost(const OperatorChain& chain) {
  std::optional<Cycle> least;
  for_each_choice(chain, [&](const std::vector<std::size_t>& chosen) {
    const std::optional<Cycle> cost = chain.cost(chosen);
    if (cost && (!least || *cost < *least)) least = cost;
  });
  return least.value();
}

/// Chains of any length, some of whose operators cannot have some degrees.
TEST(OperatorChain, TheCheapestIsThatOfAllCombinations) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    RandomStream random(seed, "operators");
    OperatorChain chain;
    const std::size_t options = 1 + random.below(5), operators = 1 + random.below(4);
    chain.options.resize(options);
    chain.operators.assign(operators, OperatorChain::Costs(options));
    chain.reshard.assign(options, std::vector<Cycle>(options, 0));
    for (auto& costs : chain.operators) {
      for (std::size_t i = 0; i < options; ++i) {
        if (i == 0 || random.below(4) > 0) costs[i] = random.below(30);
      }
    }
    for (std::size_t i = 0; i < options; ++i) {
      for (std::size_t j = 0; j < options; ++j) chain.reshard[i][j] = i == j ? 0 : random.below(20);
    }
    const ChosenOperators found = cheapest(chain);
    EXPECT_EQ(found.cost, least_cost(chain)) << seed;
    EXPECT_EQ(chain.cost(found.options), found.cost) << seed;
  }
}

/// A machine on which latency decides or bandwidth does.
class OperatorCase {
 public:
  OperatorCase(int tp, int tatp, Rational bandwidth, Cycle latency, std::int64_t sequence = 64) {
    setup_.model.attention_kernel = models::AttentionKernel::fused;
    setup_.model.attention = models::AttentionMask::causal;
    setup_.model.sequence = setup_.model.context = sequence;
    setup_.wafer.mesh.shape = {2, 4};
    setup_.set_degrees(1, tp, 1);
    setup_.plan.tatp = tatp;
    setup_.training.global_batch = 4;
    hardware_ = models::resolve_hardware(setup_.wafer, {}, {});
    hardware_.link_bytes_per_cycle = bandwidth;
    hardware_.link_cycles = latency;
  }

  OperatorChain chain() const {
    const topology::Mesh mesh = setup_.mesh();
    const auto policy = topology::make_routing_policy("xy", mesh);
    const workloads::Mapping mapping(setup_.plan, mesh);
    return operator_chain(input(setup_.plan, mesh), mapping, {*policy});
  }
  /// The whole plan, predicted.
  Cycle predicted(const OperatorDegrees& attention, const OperatorDegrees& mlp) const {
    const topology::Mesh mesh = setup_.mesh();
    const auto policy = topology::make_routing_policy("xy", mesh);
    workloads::PlanSpec plan = setup_.plan;
    plan.attention = attention;
    plan.mlp = mlp;
    const workloads::LoweredPlan lowered = workloads::lower(input(plan, mesh));
    StepCosts costs({lowered.trace, lowered.mapping, plan, hardware_, mesh, *policy});
    return predict(costs, lowered.trace).cycles;
  }

 private:
  workloads::LoweringInput input(const workloads::PlanSpec& plan, const topology::Mesh& mesh) const {
    return {setup_.model, setup_.training, plan, setup_.placement, hardware_, mesh};
  }

  LoweringFixture setup_;
  models::HardwareModel hardware_;
};

/// In the last two, with slow links and many tokens, attention is best cut by heads and the MLP on the sequence.
std::vector<OperatorCase> cases() {
  return {OperatorCase(8, 1, Rational(4), 1), OperatorCase(1, 8, Rational(64), 50), OperatorCase(2, 4, Rational(1, 4), 1, 256),
          OperatorCase(1, 8, Rational(1, 4), 1, 512), OperatorCase(2, 4, Rational(1, 4), 1, 1024)};
}

TEST(OperatorChain, OfAPlanHasEveryDivisionThatIsValid) {
  for (const OperatorCase& each : cases()) {
    const OperatorChain chain = each.chain();
    ASSERT_EQ(chain.options.size(), 4U);
    const ChosenOperators found = cheapest(chain);
    EXPECT_EQ(found.cost, least_cost(chain));
    EXPECT_GT(found.cost, 0U);
    for (std::size_t i = 0; i < chain.options.size(); ++i) {
      EXPECT_EQ(chain.options[i].tp * chain.options[i].tatp, 8);
      EXPECT_TRUE(chain.operators[0][i] && chain.operators[1][i]);
      EXPECT_EQ(chain.reshard[i][i], 0U);
    }
  }
}

/// Operators that are played alone are in the order of whole plans: that with the cheapest operators is among the best of all
/// combinations.
TEST(OperatorChain, TheCheapestMakesOneOfTheBestPlans) {
  int number = 0, mixed = 0;
  for (const OperatorCase& each : cases()) {
    const OperatorChain chain = each.chain();
    std::vector<Cycle> all;
    for_each_choice(chain, [&](const std::vector<std::size_t>& chosen) {
      all.push_back(each.predicted(chain.options[chosen[0]], chain.options[chosen[1]]));
    });
    const ChosenOperators found = cheapest(chain);
    const Cycle own = each.predicted(chain.options[found.options[0]], chain.options[found.options[1]]);
    const Cycle best = *std::min_element(all.begin(), all.end());
    RecordProperty("case_" + std::to_string(++number),
                   "attention tp " + std::to_string(chain.options[found.options[0]].tp) + ", mlp tp " +
                       std::to_string(chain.options[found.options[1]].tp) + ", over the best " +
                       std::to_string(static_cast<double>(own) / static_cast<double>(best)));
    EXPECT_LE(static_cast<double>(own), 1.02 * static_cast<double>(best));
    mixed += found.options[0] == found.options[1] ? 0 : 1;
  }
  EXPECT_EQ(mixed, 2);
}

TEST(OperatorChain, LeavesOutWhatIsNotValid) {
  LoweringFixture setup;
  setup.model.attention_kernel = models::AttentionKernel::materialized;  // needs all keys at once
  setup.wafer.mesh.shape = {2, 4};
  setup.set_degrees(1, 8, 1);
  const topology::Mesh mesh = setup.mesh();
  const models::HardwareModel hardware = models::resolve_hardware(setup.wafer, {}, {});
  const auto policy = topology::make_routing_policy("xy", mesh);
  const workloads::Mapping mapping(setup.plan, mesh);
  const OperatorChain chain = operator_chain({setup.model, setup.training, setup.plan, setup.placement, hardware, mesh},
                                             mapping, {*policy});
  for (std::size_t i = 0; i < chain.options.size(); ++i) {
    EXPECT_EQ(chain.operators[0][i].has_value(), chain.options[i].tatp == 1);
    EXPECT_TRUE(chain.operators[1][i].has_value());
  }
}

}  // namespace
}  // namespace wafersim::analysis
