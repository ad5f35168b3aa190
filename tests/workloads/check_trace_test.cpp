#include <gtest/gtest.h>

#include <functional>

#include "tests/workloads/collective_executor.h"
#include "workloads/step_builder.h"
#include "workloads/trace.h"

namespace wafersim::workloads {
namespace {

using Texts = std::vector<std::string>;
using Build = std::function<void(StepBuilder&)>;

/// A trace on a 1 x n mesh in which tile i has the steps of `programs[i]`, each of them waiting for the one
/// before. Peer p of tile i is tile (i + p) mod n.
Trace make_trace(const std::vector<std::vector<Build>>& programs) {
  Trace trace;
  trace.statics.emplace_back();
  const auto size = static_cast<std::uint32_t>(programs.size());
  for (std::uint32_t tile = 0; tile < size; ++tile) {
    Program& program = trace.programs.emplace_back();
    for (const Build& build : programs[tile]) {
      StepBuilder builder(trace, "step");
      build(builder);
      Step step;
      step.step_template = builder.finish();
      step.layer = static_cast<std::int32_t>(program.steps.size());
      step.first_wait = static_cast<std::uint32_t>(program.waits.size());
      if (step.layer > 0) {
        program.waits.push_back(static_cast<std::uint32_t>(step.layer - 1));
        step.wait_count = 1;
      }
      program.steps.push_back(step);
    }
    TileBinding binding;
    binding.tile = tile;
    binding.program = tile;
    binding.first_peer = static_cast<std::uint32_t>(trace.peers.size());
    binding.peer_count = size;
    for (std::uint32_t peer = 0; peer < size; ++peer) trace.peers.push_back((tile + peer) % size);
    trace.tiles.push_back(binding);
  }
  return trace;
}

topology::Mesh row_of(const Trace& trace) {
  return topology::Mesh({{1, static_cast<int>(trace.tiles.size())}, {}, {}});
}
Texts check(const Trace& trace, std::size_t limit = 10) { return check_trace(trace, row_of(trace), limit); }

void send(StepBuilder& builder, std::uint32_t peer, Bytes bytes = 8, const std::vector<OpId>& after = {}) {
  builder.send(Axis::tp, peer, 5, bytes, after);
}
OpId receive(StepBuilder& builder, std::uint32_t peer, Bytes bytes = 8) {
  return builder.receive(Axis::tp, peer, 5, bytes, {});
}

TEST(CheckTrace, AcceptsAnExchange) {
  const Build exchange = [](StepBuilder& builder) {
    send(builder, 1);
    builder.vector(Work{}, {receive(builder, 1)});
  };
  EXPECT_EQ(check(make_trace({{exchange, exchange}, {exchange, exchange}})), Texts{});
}

TEST(CheckTrace, AcceptsEveryCollective) {
  for (const Collective algorithm :
       {Collective::ring, Collective::line, Collective::rows_cols, Collective::tree, Collective::halving_doubling, Collective::direct,
        Collective::multicast, Collective::router_multicast}) {
    for (const CollectiveKind kind :
         {CollectiveKind::all_gather, CollectiveKind::reduce_scatter, CollectiveKind::all_reduce}) {
      const Trace trace = lower_case({algorithm, kind, {3, 4}, topology::snake({3, 4}), 100, 2});
      EXPECT_EQ(check(trace), Texts{}) << to_string(algorithm);
    }
  }
}

TEST(CheckTrace, NamesMessagesWithoutCounterpart) {
  const Trace trace =
      make_trace({{[](StepBuilder& b) { send(b, 1); }}, {[](StepBuilder& b) { receive(b, 1); }}, {}});
  EXPECT_EQ(
      check(trace),
      (Texts{
          "tile_0_0 sends to tile_1_0, channel 5, 8 bytes, in step 0 'step' (layer 0, microbatch -1): nobody "
          "receives it",
          "tile_1_0 waits for tile_2_0, channel 5, 8 bytes, in step 0 'step' (layer 0, microbatch -1): "
          "nobody "
          "sends it"}));
}

TEST(CheckTrace, NamesASurplusReceive) {
  const Trace trace = make_trace({{[](StepBuilder& b) { send(b, 1); }}, {[](StepBuilder& b) {
                                    receive(b, 1);
                                    receive(b, 1);
                                  }}});
  EXPECT_EQ(check(trace),
            Texts{"tile_1_0 waits for tile_0_0, channel 5, 8 bytes, in step 0 'step' (layer 0, microbatch "
                  "-1): nobody sends it"});
}

TEST(CheckTrace, NamesDifferentSizes) {
  const Trace trace =
      make_trace({{[](StepBuilder& b) { send(b, 1, 8); }}, {[](StepBuilder& b) { receive(b, 1, 9); }}});
  EXPECT_EQ(
      check(trace),
      Texts{"tile_0_0 sends to tile_1_0, channel 5, 8 bytes, in step 0 'step' (layer 0, microbatch -1): "
            "the receiver expects 9 bytes in step 0 'step' (layer 0, microbatch -1)"});
}

TEST(CheckTrace, MessagesOfOtherStepsDoNotMatch) {
  const Build nothing = [](StepBuilder&) {};
  const Trace trace = make_trace(
      {{nothing, [](StepBuilder& b) { send(b, 1); }}, {[](StepBuilder& b) { receive(b, 1); }, nothing}});
  EXPECT_EQ(check(trace).size(), 2U);
}

TEST(CheckTrace, MessagesOfAMicrobatchMatchAcrossSteps) {
  const Build nothing = [](StepBuilder&) {};
  const Trace trace = make_trace(
      {{nothing, [](StepBuilder& b) { b.send(Axis::pp, 1, 0, 8, {}, {}, MatchScope::microbatch); }},
       {[](StepBuilder& b) { b.receive(Axis::pp, 1, 0, 8, {}, {}, MatchScope::microbatch); }}});
  EXPECT_EQ(check(trace), Texts{});
}

TEST(CheckTrace, NamesTheCycleOfAWait) {
  const Build first_receive = [](StepBuilder& b) { send(b, 1, 8, {receive(b, 2)}); };
  const Texts faults = check(make_trace({{first_receive}, {first_receive}, {first_receive}}));
  ASSERT_EQ(faults.size(), 1U);
  EXPECT_EQ(faults[0],
            "cyclic wait of 3 messages: "
            "tile_0_0 waits for tile_2_0, channel 5, 8 bytes, in step 0 'step' (layer 0, microbatch -1); "
            "tile_2_0 waits for tile_1_0, channel 5, 8 bytes, in step 0 'step' (layer 0, microbatch -1); "
            "tile_1_0 waits for tile_0_0, channel 5, 8 bytes, in step 0 'step' (layer 0, microbatch -1)");
}

TEST(CheckTrace, FindsCyclesThroughTheOrderOfAnEngine) {
  // Each tile's first product waits for the message that the other one sends after its second product.
  const Build blocked = [](StepBuilder& b) {
    b.matrix(Work{}, {receive(b, 1)});
    const OpId second = b.matrix(Work{}, {});
    send(b, 1, 8, {second});
  };
  EXPECT_EQ(check(make_trace({{blocked}, {blocked}})).size(), 1U);
  // A reduction takes its engine when it is ready: no cycle.
  const Build free = [](StepBuilder& b) {
    b.reduce(Axis::tp, Work{}, {receive(b, 1)});
    const OpId second = b.vector(Work{}, {});
    send(b, 1, 8, {second});
  };
  EXPECT_EQ(check(make_trace({{free}, {free}})), Texts{});
}

TEST(CheckTrace, FindsCyclesThroughStepsThatWait) {
  const Build waits = [](StepBuilder& b) { b.receive(Axis::pp, 1, 0, 8, {}, {}, MatchScope::microbatch); };
  const Build sends = [](StepBuilder& b) { b.send(Axis::pp, 1, 0, 8, {}, {}, MatchScope::microbatch); };
  EXPECT_EQ(check(make_trace({{waits, sends}, {waits, sends}})).size(), 1U);
  EXPECT_EQ(check(make_trace({{sends, waits}, {waits, sends}})), Texts{});
}

TEST(CheckTrace, DetachedOperationsDoNotHoldUpLaterSteps) {
  const Build waits = [](StepBuilder& b) {
    b.detach(b.receive(Axis::pp, 1, 0, 8, {}, {}, MatchScope::microbatch));
  };
  const Build sends = [](StepBuilder& b) { b.send(Axis::pp, 1, 0, 8, {}, {}, MatchScope::microbatch); };
  EXPECT_EQ(check(make_trace({{waits, sends}, {waits, sends}})), Texts{});
}

TEST(CheckTrace, ReportsBrokenIndices) {
  const auto exchange = [] {
    return make_trace({{[](StepBuilder& b) { send(b, 1, 8, {b.vector(Work{}, {})}); }},
                       {[](StepBuilder& b) { receive(b, 1); }}});
  };
  Trace trace = exchange();
  trace.templates[0].dependencies[0] = 1;
  EXPECT_EQ(check(trace),
            Texts{"template step: operation 1 (send): depends on an operation that is not an earlier one"});
  trace = exchange();
  trace.templates[0].ops[0].work = 9;
  EXPECT_EQ(check(trace), Texts{"template step: operation 0 (vector): work out of range"});
  trace = exchange();
  trace.templates[0].ops[1].peer = 2;
  EXPECT_EQ(check(trace), Texts{"tile_0_0: an operation names a peer that the tile does not have"});
  trace = exchange();
  trace.peers[1] = 77;
  EXPECT_EQ(check(trace), Texts{"tile_0_0: peer tile 77 does not run the trace"});
  trace = exchange();
  trace.programs[1].steps[0].step_template = 4;
  EXPECT_EQ(check(trace), Texts{"program 1: step 0: template out of range"});
  trace = exchange();
  std::swap(trace.tiles[0].tile, trace.tiles[1].tile);
  EXPECT_EQ(check(trace), Texts{"tile_0_0: bindings do not ascend by tile"});
}

TEST(CheckTrace, RefusesDeadTilesAndKeepsToTheLimit) {
  const Trace trace =
      make_trace({{[](StepBuilder& b) { send(b, 1); }}, {[](StepBuilder& b) { receive(b, 1); }}});
  EXPECT_EQ(check_trace(trace, topology::Mesh({{1, 2}, {{1, 0}}, {}})), Texts{"tile_1_0: the tile is dead"});
  const Build lonely = [](StepBuilder& b) {
    for (int i = 0; i < 20; ++i) receive(b, 1);
  };
  EXPECT_EQ(check(make_trace({{lonely}, {}}), 3).size(), 3U);
}

}  // namespace
}  // namespace wafersim::workloads
