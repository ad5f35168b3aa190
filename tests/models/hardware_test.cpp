#include "models/hardware.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "tests/models/test_models.h"

namespace wafersim::models {
namespace {

HardwareModel resolve(const WaferSpec& wafer, const RouterSpec& router = {},
                      const NetworkSpec& network = {}) {
  return resolve_hardware(wafer, router, network);
}

template <class Change>
std::string failure(Change change) {
  WaferSpec wafer;
  RouterSpec router;
  NetworkSpec network;
  change(wafer, router, network);
  try {
    resolve_hardware(wafer, router, network);
  } catch (const PlanError& error) {
    return error.what();
  }
  return "resolved";
}

TEST(Hardware, DurationsRoundUpToCyclesOfTheClock) {
  WaferSpec wafer;
  wafer.clock = {Rational(850'000'000)};
  wafer.link.latency = {Rational(200, 1'000'000'000), false};         // 170 cycles exactly
  wafer.nic.injection_latency = {Rational(1, 1'000'000'000), false};  // 0.85 cycles
  const HardwareModel model = resolve(wafer);
  EXPECT_EQ(model.link_cycles, 170u);
  EXPECT_EQ(model.injection_cycles, 1u);
  EXPECT_EQ(model.credit_cycles, 170u) << "the credit latency is the link's when absent";
}

TEST(Hardware, RatesStayExact) {
  WaferSpec wafer;
  wafer.clock = {Rational(1'100'000'000)};
  wafer.link.bandwidth = Bandwidth::per_second(Rational(4'000'000'000'000));
  wafer.sram.bandwidth = Bandwidth::per_second(Rational(1'000'000'000));
  const HardwareModel model = resolve(wafer);
  EXPECT_EQ(model.link_bytes_per_cycle, Rational(40'000, 11));
  EXPECT_EQ(model.sram_bytes_per_cycle, Rational(10, 11));
  EXPECT_EQ(model.injection_bytes_per_cycle, Rational(40'000, 11))
      << "injection runs at the link's rate when absent";
  EXPECT_EQ(model.ejection_bytes_per_cycle, Rational(40'000, 11));
}

TEST(Hardware, NicRatesOfTheirOwn) {
  WaferSpec wafer;
  wafer.nic.injection_bandwidth = Bandwidth::per_clock(Rational(100));
  wafer.nic.ejection_bandwidth = Bandwidth::per_clock(Rational(1, 3));
  const HardwareModel model = resolve(wafer);
  EXPECT_EQ(model.injection_bytes_per_cycle, Rational(100));
  EXPECT_EQ(model.ejection_bytes_per_cycle, Rational(1, 3));
  EXPECT_EQ(model.link_bytes_per_cycle, Rational(256));
}

TEST(Hardware, PeakGivesAFractionalNumberOfArrays) {
  WaferSpec wafer;
  wafer.core.matrix.peak = ComputeRate{Rational(32'800'000'000'000), false};
  const HardwareModel model = resolve(wafer);
  EXPECT_EQ(model.arrays, Rational(32'800, 32'768));
  EXPECT_EQ(model.matrix_flops_per_cycle, Rational(32'800));
}

TEST(Hardware, ArraysGiveThePeak) {
  WaferSpec wafer;
  wafer.core.matrix.shape = {16, 32};
  wafer.core.matrix.arrays = 3;
  EXPECT_EQ(resolve(wafer).matrix_flops_per_cycle, Rational(3 * 2 * 16 * 32));
}

TEST(Hardware, MemoryIsUnlimitedAndWithoutDramByDefault) {
  const HardwareModel model = resolve(WaferSpec{});
  EXPECT_FALSE(model.sram_bytes_per_cycle.has_value());
  EXPECT_EQ(model.sram_capacity, 64u << 20);
  EXPECT_EQ(model.dram_capacity, 0u);
}

TEST(Hardware, DieSharesItsDram) {
  WaferSpec wafer;
  wafer.dram = DramSpec{DataSize{72'000'000'000}, Bandwidth::per_second(Rational(1'000'000'000'000)), {8, 8}};
  const HardwareModel model = resolve(wafer);
  EXPECT_EQ(model.dram_bytes_per_cycle, Rational(1000));
  EXPECT_EQ(model.dram_capacity_per_tile(), 1'125'000'000u);
}

TEST(Hardware, SecondsAreCyclesOverClock) {
  WaferSpec wafer;
  wafer.clock = {Rational(2'000'000'000)};
  EXPECT_DOUBLE_EQ(resolve(wafer).seconds(3'000'000'000), 1.5);
}

TEST(Hardware, DefaultBufferKeepsALinkBusy) {
  // S = 256 cycles: two packets cover any loop up to 256.
  EXPECT_EQ(default_vc_buffer(65'536, Rational(256), 2, 4, 4), 2u * 65'536);
  EXPECT_EQ(default_vc_buffer(65'536, Rational(256), 56, 100, 100), 2u * 65'536);
  EXPECT_EQ(default_vc_buffer(65'536, Rational(256), 57, 100, 100), 3u * 65'536);
  // S = 1: one packet for every cycle of the loop.
  EXPECT_EQ(default_vc_buffer(4, Rational(4), 2, 1, 1), 5u * 4);
  // S = 2/3 of a cycle, loop 4, one more for the rounding: 5 / (2/3) = 7.5.
  EXPECT_EQ(default_vc_buffer(2, Rational(3), 2, 1, 1), 9u * 2);
}

TEST(Hardware, BufferAsGivenOrForTheSlowerOfLinkAndInjection) {
  WaferSpec wafer;
  wafer.link.bandwidth = Bandwidth::per_clock(Rational(4));
  RouterSpec router;
  NetworkSpec network;
  network.packet_bytes = {4};
  EXPECT_EQ(resolve(wafer, router, network).vc_buffer_bytes, 4u * (1 + 3));
  wafer.nic.injection_latency = Duration::of_cycles(5);
  EXPECT_EQ(resolve(wafer, router, network).vc_buffer_bytes, 4u * (1 + 7));
  router.vc_buffer = DataSize{4};
  EXPECT_EQ(resolve(wafer, router, network).vc_buffer_bytes, 4u);
}

TEST(Hardware, SwitchingIsForThePipelineUnlessGiven) {
  RouterSpec router;
  EXPECT_EQ(router.switching(), Switching::wormhole);
  router.pipeline = Duration::of_cycles(0);
  EXPECT_EQ(router.switching(), Switching::cut_through);
  router.flit.switching = Switching::wormhole;
  EXPECT_EQ(router.switching(), Switching::wormhole);
  router.flit.switching.reset();
  router.flit.preset = PipelinePreset::p3;
  EXPECT_EQ(router.switching(), Switching::wormhole) << "its pipeline is the preset's";
}

/// Links of 2.5 B a cycle cannot take whole flits: that stops a router of flits without a pipeline, not one of packets.
TEST(Hardware, LinksOfPartsOfAFlitAreForPackets) {
  WaferSpec wafer;
  wafer.link.bandwidth = Bandwidth::per_clock(Rational(5, 2));
  RouterSpec router;
  router.pipeline = Duration::of_cycles(0);
  router.flit.flit_bytes = DataSize{1 << 20};
  EXPECT_EQ(resolve(wafer, router).router_cycles, 0U);
  router.flit.flit_bytes.reset();
  EXPECT_EQ(failure([](auto& w, auto& r, auto& n) {
              w.link.bandwidth = Bandwidth::per_clock(Rational(5, 2));
              r.pipeline = Duration::of_cycles(0);
              n.fidelity = Fidelity::flit;
            }),
            "router.switching: cut_through (auto where router.pipeline is 0 cycles) needs links, injection and ejection of one "
            "flit (3 B) a cycle");
}

TEST(Hardware, RefusesValuesOutOfRange) {
  EXPECT_EQ(failure([](auto& w, auto&, auto&) { w.link.latency = Duration::of_cycles(0); }),
            "wafer.link.latency: 0 cycles is 0 cycles; it must be at least 1");
  EXPECT_EQ(failure([](auto&, auto& r, auto&) { r.credit_latency = Duration::of_cycles(0); }),
            "router.credit_latency: 0 cycles is 0 cycles; it must be at least 1");
  EXPECT_EQ(failure([](auto&, auto& r, auto&) { r.pipeline = Duration::of_cycles(-1); }),
            "router.pipeline: -1 cycles is out of range; it must be at least 0");
  EXPECT_EQ(failure([](auto& w, auto&, auto&) { w.link.bandwidth = Bandwidth::per_clock(Rational(0)); }),
            "wafer.link.bandwidth: 0 B/cycle is out of range; it must be above 0");
  EXPECT_EQ(
      failure([](auto& w, auto&, auto&) { w.nic.ejection_bandwidth = Bandwidth::per_clock(Rational(0)); }),
      "wafer.nic.ejection_bandwidth: 0 B/cycle is out of range; it must be above 0");
  EXPECT_EQ(failure([](auto& w, auto&, auto&) { w.clock = {Rational(0)}; }),
            "wafer.clock: 0 Hz is out of range; it must be above 0");
  EXPECT_EQ(failure([](auto& w, auto&, auto&) { w.core.matrix.arrays = 0; }),
            "wafer.core.matrix.arrays: 0 is out of range; it must be at least 1");
  EXPECT_EQ(failure([](auto& w, auto&, auto&) {
              w.core.matrix.shape = {0, 8};
            }),
            "wafer.core.matrix.shape: 0x8 is out of range; it must be at least 1x1");
  EXPECT_EQ(failure([](auto&, auto& r, auto&) { r.virtual_channels = 0; }),
            "router.virtual_channels: 0 is out of range; it must be at least 1");
  EXPECT_EQ(failure([](auto&, auto&, auto& n) { n.packet_bytes = {0}; }),
            "network.packet_bytes: 0 B is out of range; it must be at least 1 B");
  EXPECT_EQ(failure([](auto&, auto& r, auto&) { r.vc_buffer = DataSize{1024}; }),
            "router.vc_buffer: 1 KiB is smaller than one packet (network.packet_bytes: 64 KiB)");
  EXPECT_EQ(failure([](auto&, auto&, auto&) {}), "resolved");
}

}  // namespace
}  // namespace wafersim::models
