#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "models/cost.h"
#include "tests/models/test_models.h"

namespace wafersim::models {
namespace {

/// A kernel table in a file of its own, which the test leaves no trace of.
class KernelTableFile : public testing::Test {
 protected:
  void TearDown() override { std::filesystem::remove(path_); }

  void write(const std::string& text) { std::ofstream(path_) << text; }
  ComputeCost cost() const { return ComputeCost(hardware()); }
  HardwareModel hardware() const {
    HardwareModel model = test::plain_hardware();
    model.launch_overhead = 5;
    model.kernel_table = path_;
    return model;
  }
  /// What is wrong with the table, without the path of the file.
  std::string problems() const {
    try {
      cost();
    } catch (const ScenarioError& error) {
      std::string text = error.what();
      for (std::size_t at = text.find(path_); at != std::string::npos; at = text.find(path_))
        text.erase(at, path_.size());
      return text;
    }
    return "none";
  }

  const std::string path_ =
      testing::TempDir() + testing::UnitTest::GetInstance()->current_test_info()->name() + "_kernels.csv";
};

TEST_F(KernelTableFile, AnEntryTakesThePlaceOfTheFormulaAndTheLaunch) {
  write("batch,m,n,k,cycles\n1,128,128,128,777\r\n\n 2 , 64, 64 ,64, 42\n");
  EXPECT_EQ(cost().gemm({1, 128, 128, 128}), 777u);
  EXPECT_EQ(cost().gemm({2, 64, 64, 64}), 42u);
}

TEST_F(KernelTableFile, OtherShapesKeepTheFormula) {
  write("batch,m,n,k,cycles\n1,128,128,128,777\n");
  HardwareModel without = hardware();
  without.kernel_table.clear();
  EXPECT_EQ(cost().gemm({1, 128, 128, 129}), ComputeCost(without).gemm({1, 128, 128, 129}));
  EXPECT_EQ(cost().gemm({2, 128, 128, 128}), ComputeCost(without).gemm({2, 128, 128, 128}));
}

TEST_F(KernelTableFile, EveryBadLineIsReportedWithItsPlace) {
  write("batch,m,n,k,cycles\n1,2,3,4\n1,2,x,4,0\n1,2,3,4,5\n1,2,3,4,6\n1,2,3,4,-5\n");
  EXPECT_EQ(problems(),
            ":2:1: 4 fields; a row has 5 (batch,m,n,k,cycles)\n"
            ":3:5: n: 'x' is not a whole number above 0\n"
            ":3:9: cycles: '0' is not a whole number above 0\n"
            ":5:1: this shape is already in the table\n"
            ":6:9: cycles: '-5' is not a whole number above 0");
}

TEST_F(KernelTableFile, HeaderIsRequired) {
  write("m,n,k,cycles\n");
  EXPECT_EQ(problems(), ":1:1: the header is 'm,n,k,cycles'; it must be 'batch,m,n,k,cycles'");
  write("");
  EXPECT_EQ(problems(), ":1:1: the table is empty; it starts with the header 'batch,m,n,k,cycles'");
}

TEST_F(KernelTableFile, MissingFileIsAnIoError) { EXPECT_THROW(cost(), IoError); }

}  // namespace
}  // namespace wafersim::models
