#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "tests/apps/program.h"

/// Options of `run` about folding and checkpoints.
namespace wafersim::testing {
namespace {

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

nlohmann::ordered_json summary(const Workplace& work, const std::string& directory) {
  return nlohmann::ordered_json::parse(work.read(directory + "/summary.json"));
}

/// Two replicas of a pipeline with many microbatches and enough events for periods to be looked for.
constexpr const char* kPipelineScenario = R"(
name: pipeline
wafer: {mesh: 4x4, clock: 1 GHz, link: {bandwidth: 64 GB/s, latency: 4 cycles}, sram: {capacity: 64 MiB}}
model: {layers: 4, hidden: 64, heads: 4, ffn: 256, vocab: 128, context: 64, sequence: 64}
training: {global_batch: 400, microbatch: 1}
network: {packet_bytes: 1 KiB}
plan: {dp: 2, tp: 2, pp: 2, zero: 1}
)";

/// All that two runs must have alike.
void expect_same_files(const Workplace& work, const std::string& one, const std::string& other) {
  for (const char* file : {"/tiles.csv", "/links.csv", "/steps.csv", "/memory.csv"}) {
    EXPECT_EQ(work.read(one + file), work.read(other + file)) << file;
  }
  auto first = summary(work, one);
  auto second = summary(work, other);
  first.erase("engine");
  second.erase("engine");
  EXPECT_EQ(first.dump(), second.dump());
}

TEST(Checkpoints, AStoppedRunGoesOn) {
  const Workplace work;
  work.write("s.yaml", kSmallScenario);
  ASSERT_EQ(work.wafersim("run s.yaml -o whole --quiet --memory").status, 0);
  EXPECT_FALSE(work.has("whole/checkpoint.bin"));
  const auto half = std::to_string(summary(work, "whole")["cycles"].get<std::uint64_t>() / 2);
  ASSERT_EQ(work.wafersim("run s.yaml -o out --quiet --memory --checkpoint-every 60s --max-cycles " + half).status, 0);
  EXPECT_EQ(summary(work, "out")["partial"], true);
  EXPECT_TRUE(work.has("out/checkpoint.bin"));
  const Outcome outcome = work.wafersim("run s.yaml -o out --quiet --memory --resume");
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  expect_same_files(work, "out", "whole");
  EXPECT_FALSE(work.has("out/checkpoint.bin")) << "the run has ended";
}

TEST(Checkpoints, AnInterruptKeepsTheState) {
  const Workplace work;
  work.write("s.yaml", kSmallScenario);
  const std::string run = "\"$WAFERSIM\" run s.yaml -o out --quiet --fold off --checkpoint-every 3600s --set training.iterations=3000";
  const Outcome outcome = work.shell(run + " & program=$!; while [ ! -d out ] && kill -0 $program; do sleep 0.01; done; "
                                           "kill -INT $program; wait $program");
  EXPECT_EQ(outcome.status, 130) << outcome.err;
  ASSERT_TRUE(work.has("out/checkpoint.bin"));
  const auto cycles = summary(work, "out")["cycles"].get<std::uint64_t>();
  const Outcome more = work.wafersim("run s.yaml -o out --quiet --resume --set training.iterations=3000 --max-cycles " +
                                     std::to_string(cycles + 1000));
  EXPECT_EQ(more.status, 0) << more.err;
  EXPECT_EQ(summary(work, "out")["cycles"], cycles + 1000);
}

TEST(Checkpoints, WhatCannotBeResumedIsRefused) {
  const Workplace work;
  work.write("s.yaml", kSmallScenario);
  ASSERT_EQ(work.wafersim("run s.yaml -o out --quiet --checkpoint-every 60s --max-cycles 100").status, 0);
  const std::string state = work.read("out/checkpoint.bin");
  const auto expect_refused = [&](const std::string& options, int status, const std::string& reason) {
    const Outcome outcome = work.wafersim("run s.yaml -o out --quiet " + options);
    EXPECT_EQ(outcome.status, status) << options;
    EXPECT_TRUE(contains(outcome.err, reason)) << outcome.err;
  };
  expect_refused("--resume --set training.microbatch=2", 2, "it belongs to another scenario");
  expect_refused("--resume --memory", 2, "it was written without --memory");
  expect_refused("--resume --messages", 2, "--resume: a run with --messages cannot be taken up again");
  expect_refused("--resume --report", 2, "--resume: a run with --report cannot be taken up again");
  expect_refused("--resume --timeline", 2, "--resume: a run with --timeline cannot be taken up again");
  expect_refused("--checkpoint-every 60s --set network.fidelity=flit", 2, "--checkpoint-every: the state of the flit engine");
  expect_refused("--checkpoint-every 5", 2, "--checkpoint-every");
  expect_refused("--checkpoint-every '10 cycles'", 2, "is not a time above 0");
  expect_refused("--fold on", 2, "--fold");

  std::string damaged = state;
  damaged.back() = static_cast<char>(damaged.back() ^ 1);
  work.write("out/checkpoint.bin", damaged);
  expect_refused("--resume", 2, "it is damaged: its check sum is wrong");
  work.write("out/checkpoint.bin", state.substr(0, state.size() / 2));
  expect_refused("--resume", 2, "it is damaged: it holds ");
  work.write("out/checkpoint.bin", state.substr(0, 40));
  expect_refused("--resume", 2, "it is damaged: it ends within its header");
  work.write("out/checkpoint.bin", "a letter");
  expect_refused("--resume", 2, "it is no checkpoint of wafersim");
  std::string older = state;
  older.replace(older.find("0.1.0"), 5, "0.0.9");
  work.write("out/checkpoint.bin", older);
  expect_refused("--resume", 2, "it was written by wafersim 0.0.9");
  std::filesystem::remove(work.path() / "out/checkpoint.bin");
  expect_refused("--resume", 5, "cannot read out/checkpoint.bin: No such file");
}

/// The same run folded, into `auto` and `stages`, and in full, into `off`.
void run_both(const Workplace& work, const std::string& options) {
  for (const std::string fold : {"auto", "stages", "off"}) {
    const Outcome outcome = work.wafersim("run s.yaml --quiet -o " + fold + " --fold " + fold + " " + options);
    ASSERT_EQ(outcome.status, 0) << outcome.err;
  }
  expect_same_files(work, "auto", "off");
  expect_same_files(work, "stages", "off");
}

TEST(Folding, TheSummarySaysWhatWasFolded) {
  const Workplace work;
  work.write("s.yaml", kSmallScenario);
  run_both(work, "--memory --set training.iterations=40");
  EXPECT_EQ(summary(work, "off")["engine"]["folded_fraction"], 0.0);
  EXPECT_TRUE(summary(work, "off")["engine"]["fold"]["stopped_by"].empty());
  ASSERT_EQ(work.wafersim("run s.yaml --quiet -o messages --messages").status, 0);
  EXPECT_EQ(summary(work, "messages")["engine"]["fold"]["stopped_by"][0], "messages are recorded");
}

TEST(Folding, TheFilesOfWhatIsRecordedAreTheSame) {
  const Workplace work;
  work.write("s.yaml", kPipelineScenario);
  run_both(work, "--memory --report --timeline --critical-path");
  const auto engine = summary(work, "auto")["engine"];
  EXPECT_GT(engine["fold"]["skipped_periods"], 10);
  EXPECT_EQ(engine["fold"]["replicas_folded"], 2);
  for (const char* file : {"/timeline.json.gz", "/critical_path.json", "/tile_windows.csv", "/link_windows.csv", "/step_cycles.csv",
                           "/operations.csv", "/latency.csv", "/spans.csv", "/bubbles.csv", "/flows.csv"}) {
    EXPECT_EQ(work.read(std::string("auto") + file), work.read(std::string("off") + file)) << file;
  }
}

}  // namespace
}  // namespace wafersim::testing
