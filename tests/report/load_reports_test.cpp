#include "report/load_reports.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "report/check_report.h"
#include "tests/report/run_fixture.h"

namespace wafersim::report {
namespace {

using nlohmann::ordered_json;
using workloads::Axis;
using workloads::Placement;

LoadReports reports() {
  workloads::MappingReport mapping;
  mapping.chosen = {{Axis::tp, {Placement::snake, topology::Shape{2, 4}}}, {Axis::pp, {Placement::row, {}}}};
  mapping.order = {Axis::tp, Axis::dp, Axis::pp};
  mapping.exhaustive = true;
  mapping.candidates = mapping.measured = 1234;
  mapping.before = topology::LoadSummary{4096, 8192};
  mapping.after = {1024, 8192};
  topology::RoutingReport routing;
  routing.baseline = "xy";
  routing.before = {1024, 8192};
  routing.after = {768, 9216};
  routing.bound = 512;
  routing.turns = "turn model, no S>W, N>W";
  routing.moved_destinations = 3;
  return {mapping, routing};
}

std::string text_of(const LoadReports& of) {
  std::string text;
  for (const auto& [label, value] : report_lines(of)) text += label + ": " + value + "\n";
  return text;
}

ordered_json summary_of(const LoadReports& of) {
  const wafersim::testing::RunFixture run;
  const analysis::RunSummary summary = run.summarize();
  RunContext context = run.context(summary);
  context.loads = of;
  return ordered_json::parse(summary_text(context));
}

TEST(LoadReports, SayWhatWasChosenAndWhatItBrought) {
  EXPECT_EQ(text_of(reports()),
            "mapping chosen: tp snake 2x4, pp row\n"
            "  nesting: tp, dp, pp, from the inside out\n"
            "  candidates: 1,234 of 1,234 measured\n"
            "  largest link load: 1.00 KiB instead of 4.00 KiB (-75.00 %)\n"
            "  bytes x hops: 8.00 KiB, no change\n"
            "routes balanced: against xy; to 3 destinations moved\n"
            "  turns: turn model, no S>W, N>W\n"
            "  largest link load: 768 B instead of 1.00 KiB (-25.00 %)\n"
            "  bytes x hops: 9.00 KiB instead of 8.00 KiB (+12.50 %)\n"
            "  lower bound: 512 B on some link, whatever the routes\n");
}

TEST(LoadReports, SayNothingWhereNothingWasLeftToChoose) {
  EXPECT_TRUE(report_lines({}).empty());
  const ordered_json json = summary_of({});
  EXPECT_TRUE(json["plan"]["mapping_report"].is_null());
  EXPECT_TRUE(json["network"]["routing_report"].is_null());
}

TEST(LoadReports, ADefaultMappingThatDoesNotFitIsNull) {
  LoadReports of = reports();
  of.mapping->before.reset();
  const ordered_json json = summary_of(of)["plan"]["mapping_report"];
  EXPECT_TRUE(json["max_link_bytes_before"].is_null());
  EXPECT_TRUE(json["byte_hops_before"].is_null());
  EXPECT_EQ(json["max_link_bytes_after"], 1024);
  EXPECT_NE(text_of(of).find("default mapping: cannot be laid out here"), std::string::npos);
}

TEST(LoadReports, SayWhatTravelsAlongTensorStreams) {
  LoadReports of;
  of.streams = workloads::StreamReport{{true, false}, {{{4096, 2048}, {1024, 8192}}}};
  EXPECT_EQ(text_of(of),
            "tensor streams: bytes sent for a layer and microbatch, all tiles of a replica\n"
            "  attention: inputs, 2.00 KiB; weights would be 4.00 KiB\n"
            "  mlp: weights, 1.00 KiB; inputs would be 8.00 KiB\n");
  const ordered_json expected = ordered_json::parse(
      R"({"attention": {"operand": "inputs", "bytes_with_weights": 4096, "bytes_with_inputs": 2048},
          "mlp": {"operand": "weights", "bytes_with_weights": 1024, "bytes_with_inputs": 8192}})");
  EXPECT_EQ(summary_of(of)["plan"]["stream_report"], expected);
  CheckFacts facts;
  facts.scenario_json = "{}";
  facts.loads = of;
  EXPECT_EQ(ordered_json::parse(check_json(facts))["stream_report"], expected);
  EXPECT_TRUE(summary_of({})["plan"]["stream_report"].is_null());
}

TEST(LoadReports, TheSameBlocksInSummaryAndCheck) {
  const ordered_json summary = summary_of(reports());
  CheckFacts facts;
  facts.scenario_json = "{}";
  facts.loads = reports();
  const ordered_json check = ordered_json::parse(check_json(facts));
  EXPECT_EQ(check["mapping_report"], summary["plan"]["mapping_report"]);
  EXPECT_EQ(check["routing_report"], summary["network"]["routing_report"]);
  EXPECT_EQ(check["mapping_report"], ordered_json::parse(R"({"chosen": {"tp": "snake 2x4", "pp": "row"},
      "order": ["tp", "dp", "pp"], "order_searched": false, "search": "exhaustive", "candidates": 1234,
      "measured": 1234, "max_link_bytes_before": 4096, "max_link_bytes_after": 1024,
      "byte_hops_before": 8192, "byte_hops_after": 8192})"));
  EXPECT_EQ(check["routing_report"], ordered_json::parse(R"({"baseline": "xy",
      "turns": "turn model, no S>W, N>W", "moved_destinations": 3, "max_link_bytes_before": 1024,
      "max_link_bytes_after": 768, "max_link_bytes_bound": 512, "byte_hops_before": 8192,
      "byte_hops_after": 9216})"));
  EXPECT_NE(check_text(facts).find("mapping chosen           tp snake 2x4, pp row\n"), std::string::npos);
}

}  // namespace
}  // namespace wafersim::report
