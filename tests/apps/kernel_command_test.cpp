#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/apps/program.h"

namespace wafersim::testing {
namespace {

const std::string kStudies = WAFERSIM_SOURCE_DIR "/scenarios/studies/wse/";

nlohmann::json run(const Workplace& place, const std::string& arguments) {
  const Outcome outcome = place.wafersim("kernel " + arguments + " --json");
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  return nlohmann::json::parse(outcome.out);
}

TEST(KernelCommand, AStencilOfTheStudyIsAsLongOnAnyWafer) {
  const Workplace place;
  for (const char* study : {"stencil.yaml", "stencil-7pt.yaml"}) {
    const auto small = run(place, kStudies + study + " --set kernel.stencil.steps=1 --set wafer.mesh=9x9");
    const auto large = run(place, kStudies + study + " --set kernel.stencil.steps=1 --set wafer.mesh=12x17");
    EXPECT_EQ(small.at("cycles"), large.at("cycles")) << study;
    EXPECT_EQ(small.at("kind"), "stencil");
    const double flops = small.at("flops").get<double>() / 81;
    EXPECT_EQ(flops, large.at("flops").get<double>() / (12 * 17)) << study;
    const auto& shares = small.at("breakdown");
    EXPECT_NEAR(shares.at("compute").get<double>() + shares.at("memory_stall").get<double>() + shares.at("waiting").get<double>(),
                1, 1e-12);
    EXPECT_LE(small.at("memory").at("peak_bytes"), small.at("memory").at("capacity_bytes"));
  }
}

TEST(KernelCommand, AGemvOfTheStudyReportsWhatItDid) {
  const Workplace place;
  const auto json =
      run(place, kStudies + "gemv-16k.yaml --set wafer.mesh=32x4 --set kernel.gemv.rows=1024 --set kernel.gemv.cols=128");
  EXPECT_EQ(json.at("kind"), "gemv");
  EXPECT_EQ(json.at("flops"), 2 * 1024 * 128);
  EXPECT_EQ(json.at("group"), 2);
  // Sums of 31 tiles and one message to all of them, in each of 4 columns.
  EXPECT_EQ(json.at("messages"), 4 * (31 + 1));
  EXPECT_EQ(json.at("bytes_sent"), 4 * (31 + 1) * 64);
  EXPECT_FALSE(json.at("scenario").contains("model"));
  EXPECT_FALSE(json.at("scenario").contains("collective"));
}

TEST(KernelCommand, AGemmTellsItsRounds) {
  const Workplace place;
  const auto json = run(place, kStudies + "gemm.yaml --set wafer.mesh=8x8 --set kernel.gemm='{m: 96, k: 96, n: 96}'");
  EXPECT_EQ(json.at("steps"), 8);
  EXPECT_EQ(json.at("cycles"), json.at("model_cycles"));
  const Outcome text = place.wafersim("kernel " + kStudies + "gemm.yaml --set wafer.mesh=8x8");
  EXPECT_EQ(text.status, 0) << text.err;
  EXPECT_NE(text.out.find("utilization"), std::string::npos) << text.out;
}

TEST(KernelCommand, SaysWhatDoesNotFit) {
  const Workplace place;
  const auto refused = [&](const std::string& arguments, int status, const std::string& text) {
    const Outcome outcome = place.wafersim("kernel " + kStudies + arguments);
    EXPECT_EQ(outcome.status, status) << arguments << "\n" << outcome.err;
    EXPECT_NE(outcome.err.find(text), std::string::npos) << arguments << "\n" << outcome.err;
  };
  refused("gemv-16k.yaml --set kernel.gemv.rows=100", 2,
          "kernel.gemv.rows: 100 rows of the matrix are fewer than the 512 rows of tiles");
  refused("gemv-16k.yaml --set kernel.gemv.group=600", 2,
          "kernel.gemv.group: a group of 600 is larger than a column of 512 tiles");
  refused("gemv-16k.yaml --set kernel.gemv.reduction=chain --set kernel.gemv.group=8", 2,
          "only for the reductions two_phase and k_tree");
  refused("gemv-16k.yaml --set kernel.gemv.reduction=ring", 2, "valid: chain, star, tree, two_phase, k_tree");
  refused("gemv-16k.yaml --set kernel.gemv.reduction=k_tre", 2, "k_tree");
  refused("gemv-16k.yaml --set wafer.mesh=8x8", 3, "more than the 48000 bytes of its SRAM");
  refused("gemm.yaml --set kernel.shape=4x8", 2, "kernel.shape: 4x8 is no square of tiles");
  refused("gemm.yaml --set kernel.gemm.k=31", 2, "kernel.gemm.k: 31 is less than the 32 tiles");
  refused("gemm.yaml --set kernel.gemv='{rows: 64}'", 2, "needs one of the sections stencil, gemv, gemm, and only one");
  refused("gemm.yaml --set kernel.gemm=none", 2, "needs one of the sections");
  refused("gemm.yaml --set wafer.dead_tiles='[tile_3_0]'", 3, "tile_3_0 is dead");
  refused("stencil.yaml --set kernel.stencil.blocks=1", 3, "more than the 48000 bytes of its SRAM");
  refused("stencil.yaml --set kernel.stencil.form=box", 2, "kernel.stencil.x: 1 points of a tile are fewer than the radius 4");
  refused("stencil.yaml --set kernel.stencil.blocks=1001", 2,
          "kernel.stencil.blocks: 1001 are more than the 1000 points along z");
  refused("stencil.yaml --set kernel.stencil.radius=0", 2, "kernel.stencil.radius");
  refused("stencil.yaml --set kernel.shape=20x20", 2, "kernel.shape: 20x20 does not fit the mesh 16x16");
  refused("line.yaml", 2, "`wafersim kernel` needs this section");
}

}  // namespace
}  // namespace wafersim::testing
