#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/apps/search_results.h"

namespace wafersim::testing {
namespace {

class SearchCommand : public ::testing::Test {
 protected:
  SearchCommand() { place_.write("tiny.yaml", kSearchScenario); }
  std::uint64_t cycles_of_run(const std::string& arguments) const {
    const Outcome outcome = place_.wafersim("run " + arguments + " --json -o alone --force");
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    return nlohmann::json::parse(outcome.out).at("cycles").get<std::uint64_t>();
  }

  Workplace place_;
};

TEST_F(SearchCommand, TheBestPlanRunsInTheCyclesOfTheTable) {
  const Outcome outcome = place_.wafersim("search tiny.yaml -o out --max-plans 60 --top 3 --baselines megatron,fsdp");
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("megatron"), std::string::npos) << outcome.out;
  EXPECT_TRUE(place_.has("out/search.svg"));
  EXPECT_FALSE(place_.has("out/.work"));
  const std::vector<SearchRow> rows = search_rows(place_.read("out/search.csv"));
  const SearchRow& best = fastest_simulated(rows);
  EXPECT_EQ(cycles_of_run("out/best.yaml"), best.number("simulated_cycles"));
  EXPECT_EQ(cycles_of_run("out/best.yaml --set network.fidelity=analytic"), best.number("predicted_cycles"));
  std::uint64_t fsdp = kNever;
  for (const SearchRow& row : rows) {
    if (row.at("search") != "fsdp") continue;
    EXPECT_EQ(row.at("zero"), "3");
    EXPECT_EQ(row.at("tp") + row.at("tatp") + row.at("pp"), "111");
    if (!row.at("simulated_cycles").empty()) fsdp = std::min(fsdp, row.number("simulated_cycles"));
  }
  EXPECT_EQ(cycles_of_run("out/best-fsdp.yaml"), fsdp);
}

/// Plans whose operators divide a model group each in its own way are plans of their own, which run as the table says.
TEST_F(SearchCommand, OperatorsMayHaveDegreesOfTheirOwn) {
  const std::string options = " --operators --top 4 --keep plan.dp,plan.pp,plan.sp,plan.mapping,router.routing --set plan.dp=2"
                              " --set wafer.link.bandwidth=4B/cycle --set model.sequence=128 --set model.context=128";
  const Outcome outcome = place_.wafersim("search tiny.yaml -o out --jobs 2" + options);
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const std::vector<SearchRow> rows = search_rows(place_.read("out/search.csv"));
  std::size_t divided = 0;
  for (const SearchRow& row : rows) {
    if (row.at("operators").empty()) continue;
    ++divided;
    EXPECT_EQ(row.at("plan"), row.at("base"));
    EXPECT_GT(row.number("tp") * row.number("tatp"), 1U);
    EXPECT_NE(row.at("outcome"), "refused") << row.at("reason");
  }
  EXPECT_GT(divided, 0U);
  EXPECT_EQ(cycles_of_run("out/best.yaml"), fastest_simulated(rows).number("simulated_cycles"));
  ASSERT_EQ(place_.wafersim("search tiny.yaml -o again --jobs 1" + options).status, 0);
  EXPECT_EQ(place_.read("again/search.csv"), place_.read("out/search.csv"));
  EXPECT_EQ(place_.read("again/best.yaml"), place_.read("out/best.yaml"));
}

TEST_F(SearchCommand, TheSameSeedGivesTheSameAnswer) {
  ASSERT_EQ(place_.wafersim("search tiny.yaml -o one --max-plans 100 --top 2 --seed 7 --jobs 1").status, 0);
  ASSERT_EQ(place_.wafersim("search tiny.yaml -o two --max-plans 100 --top 2 --seed 7 --jobs 3").status, 0);
  EXPECT_EQ(place_.read("one/search.csv"), place_.read("two/search.csv"));
  EXPECT_EQ(place_.read("one/best.yaml"), place_.read("two/best.yaml"));
  EXPECT_EQ(place_.read("one/search.svg"), place_.read("two/search.svg"));
}

TEST_F(SearchCommand, KeptKeysStayAsTheyAre) {
  const Outcome outcome = place_.wafersim(
      "search tiny.yaml -o out --top 1 --set plan.tp=2 --set plan.zero=1 --keep "
      "plan.tp,plan.zero,plan.mapping,router.routing,plan.sp");
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  for (const SearchRow& row : search_rows(place_.read("out/search.csv"))) {
    EXPECT_EQ(row.at("tp"), "2");
    EXPECT_EQ(row.at("zero"), "1");
    EXPECT_EQ(row.at("sp"), "none");
    EXPECT_EQ(row.at("mapping"), "default");
    EXPECT_EQ(row.at("routing"), "xy");
  }
}

TEST_F(SearchCommand, AnInterruptKeepsWhatWasFound) {
  const Outcome outcome = place_.shell(
      "\"$WAFERSIM\" search tiny.yaml -o out --max-plans 100000 --jobs 1 --quiet & sleep 3; kill -INT $!; wait $!");
  ASSERT_EQ(outcome.status, 130) << outcome.err;
  EXPECT_FALSE(search_rows(place_.read("out/search.csv")).empty());
  EXPECT_TRUE(place_.has("out/search.svg"));
  EXPECT_EQ(place_.wafersim("run out/best.yaml -o alone").status, 0);
  EXPECT_FALSE(place_.has("out/.work"));
}

TEST_F(SearchCommand, ABudgetEndsIt) {
  const Outcome outcome = place_.wafersim("search tiny.yaml -o out --max-plans 100000 --budget 4s");
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_TRUE(place_.has("out/best.yaml"));
}

TEST_F(SearchCommand, AdviceHasAPlanForEachCell) {
  write_advice_presets(place_);
  const Outcome outcome = place_.wafersim(
      "advise --wafer small-wafer --models small-gpt,huge-gpt --sequences 32,64 --tokens 512 --max-plans 40 --confirm --json "
      "-o out");
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const auto json = nlohmann::json::parse(outcome.out);
  EXPECT_EQ(outcome.out, place_.read("out/advice.json"));
  ASSERT_EQ(json["cells"].size(), 4u);
  EXPECT_EQ(search_rows(place_.read("out/advice.csv")).size(), 4u);
  for (const auto& cell : json["cells"]) {
    if (cell["model"] == "huge-gpt") {
      EXPECT_NE(cell["fault"].get<std::string>().find("wafer.sram.capacity"), std::string::npos) << cell["fault"];
      continue;
    }
    const std::string file = "out/small-gpt-" + std::to_string(cell["sequence"].get<int>()) + ".yaml";
    EXPECT_EQ(cycles_of_run(file), cell["simulated_cycles"].get<std::uint64_t>());
    EXPECT_EQ(cell["sequence"].get<int>() * cell["global_batch"].get<int>(), 512);
  }
  const Outcome unknown = place_.wafersim("advise --wafer small-wafer --models smal-gpt");
  EXPECT_EQ(unknown.status, 2);
  EXPECT_NE(unknown.err.find("--models: unknown preset 'smal-gpt'; did you mean 'small-gpt'?"), std::string::npos)
      << unknown.err;
}

TEST_F(SearchCommand, BadInputsAreNamed) {
  Outcome outcome = place_.wafersim("search tiny.yaml --baselines megatrom");
  EXPECT_EQ(outcome.status, 2);
  EXPECT_NE(outcome.err.find("--baselines: 'megatrom' is unknown; did you mean 'megatron'? valid: megatron, megatron_sp, fsdp"),
            std::string::npos)
      << outcome.err;
  outcome = place_.wafersim("search tiny.yaml --keep plan.tq");
  EXPECT_EQ(outcome.status, 2);
  EXPECT_NE(outcome.err.find("--keep: 'plan.tq' is unknown; did you mean 'plan.tp'?"), std::string::npos) << outcome.err;
  outcome = place_.wafersim("search tiny.yaml --budget soon");
  EXPECT_EQ(outcome.status, 2);
  EXPECT_NE(outcome.err.find("'soon' is not a time above 0"), std::string::npos) << outcome.err;
  outcome = place_.wafersim("search tiny.yaml -o none --set plan.tp=32 --keep plan.tp");
  EXPECT_EQ(outcome.status, 3);
  EXPECT_NE(outcome.err.find("no plan for model on 4x4 is valid: plan.tp 32 is more than the 4 attention heads"),
            std::string::npos)
      << outcome.err;
  outcome = place_.wafersim("search tiny.yaml -o large --set wafer.sram.capacity=\"4 KiB\"");
  EXPECT_EQ(outcome.status, 3);
  EXPECT_NE(outcome.err.find("alone exceed 4.00 KiB of a tile (wafer.sram.capacity, wafer.dram.capacity)"), std::string::npos)
      << outcome.err;
  outcome = place_.wafersim("search tiny.yaml -o tight --set wafer.sram.capacity=\"256 KiB\"");
  EXPECT_EQ(outcome.status, 3);
  EXPECT_NE(outcome.err.find("plans that were looked at fits 256 KiB of a tile"), std::string::npos) << outcome.err;
  EXPECT_TRUE(place_.has("tight/search.csv"));
}

}  // namespace
}  // namespace wafersim::testing
