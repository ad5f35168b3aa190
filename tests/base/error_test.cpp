#include "base/error.h"

#include <gtest/gtest.h>

namespace wafersim {
namespace {

TEST(Location, IsFileLineColumn) {
  EXPECT_EQ((Location{"scenario.yaml", 14, 5}).to_string(), "scenario.yaml:14:5");
}

TEST(Location, WithoutLineIsTheFile) { EXPECT_EQ((Location{"--set", 0, 0}).to_string(), "--set"); }

TEST(Problem, NamesPlacePathAndMessage) {
  const Problem problem{{"scenario.yaml", 14, 5}, "mesh.bufer", "unknown key"};
  EXPECT_EQ(problem.to_string(), "scenario.yaml:14:5: mesh.bufer: unknown key");
}

TEST(Problem, LeavesOutWhatIsUnknown) {
  EXPECT_EQ((Problem{{}, "mesh.bufer", "unknown key"}).to_string(), "mesh.bufer: unknown key");
  EXPECT_EQ((Problem{{}, "", "empty file"}).to_string(), "empty file");
  EXPECT_EQ((Problem{{"a.yaml", 0, 0}, "", "empty file"}).to_string(), "a.yaml: empty file");
}

TEST(ScenarioError, ListsEveryProblemInOrder) {
  const ScenarioError error({{{"a.yaml", 1, 1}, "x", "first"}, {{"a.yaml", 2, 1}, "y", "second"}});
  EXPECT_STREQ(error.what(), "a.yaml:1:1: x: first\na.yaml:2:1: y: second");
  ASSERT_EQ(error.problems().size(), 2U);
  EXPECT_EQ(error.problems()[1].path, "y");
}

TEST(Error, EachKindHasItsExitStatus) {
  EXPECT_EQ(static_cast<int>(ScenarioError({}).status()), 2);
  EXPECT_EQ(static_cast<int>(PlanError("").status()), 3);
  EXPECT_EQ(static_cast<int>(InternalError("").status()), 4);
  EXPECT_EQ(static_cast<int>(IoError("").status()), 5);
}

TEST(RequireInvariant, ThrowsOnlyWhenBroken) {
  EXPECT_NO_THROW(require_invariant(true, "holds"));
  try {
    require_invariant(false, "bytes were lost");
    FAIL() << "did not throw";
  } catch (const InternalError& error) {
    EXPECT_STREQ(error.what(), "bytes were lost");
  }
}

}  // namespace
}  // namespace wafersim
