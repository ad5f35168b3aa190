#include "report/run_directory.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <filesystem>
#include <set>

#include "base/error.h"
#include "report/atomic_file.h"
#include "tests/report/run_fixture.h"

namespace wafersim::report {
namespace {

namespace fs = std::filesystem;
using wafersim::testing::read_text;
using wafersim::testing::RunFixture;
using wafersim::testing::TestDirectory;
using wafersim::testing::write_text;

std::set<std::string> names_in(const fs::path& directory) {
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(directory)) names.insert(entry.path().filename().string());
  return names;
}

std::string error_of_preparing(const fs::path& directory) {
  try {
    prepare_directory(directory, false);
  } catch (const IoError& error) {
    return error.what();
  }
  return {};
}

TEST(AtomicFile, NameAppearsWithCommit) {
  const TestDirectory directory;
  const fs::path path = directory.path() / "file";
  AtomicFile file(path);
  file.write("all of it");
  EXPECT_FALSE(fs::exists(path));
  file.commit();
  EXPECT_EQ(read_text(path), "all of it");
  EXPECT_EQ(names_in(directory.path()), std::set<std::string>{"file"});
}

TEST(AtomicFile, WithoutCommitTheOldFileStaysAndNothingElse) {
  const TestDirectory directory;
  write_text(directory.path() / "file", "old");
  {
    AtomicFile file(directory.path() / "file");
    file.write("new");
  }
  EXPECT_EQ(read_text(directory.path() / "file"), "old");
  EXPECT_EQ(names_in(directory.path()), std::set<std::string>{"file"});
}

TEST(AtomicFile, CommitReplacesTheOldFile) {
  const TestDirectory directory;
  write_text(directory.path() / "file", "old and longer");
  AtomicFile file(directory.path() / "file");
  file.write("new");
  file.commit();
  EXPECT_EQ(read_text(directory.path() / "file"), "new");
}

TEST(AtomicFile, FullDiskIsAnErrorAndLeavesNothing) {
  const TestDirectory directory;
  const fs::path path = directory.path() / "file";
  std::signal(SIGXFSZ, SIG_IGN);  // a file size limit stands for a full disk
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  rlimit small = before;
  small.rlim_cur = 1000;
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  std::string message;
  try {
    AtomicFile file(path);
    file.write(std::string(100'000, 'x'));
    file.commit();
  } catch (const IoError& error) {
    message = error.what();
  }
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  EXPECT_EQ(message, "cannot write " + path.string() + ": File too large");
  EXPECT_TRUE(names_in(directory.path()).empty());
}

TEST(RunDirectory, IsCreatedWithItsParents) {
  const TestDirectory directory;
  prepare_directory(directory.path() / "runs" / "first", false);
  EXPECT_TRUE(fs::is_directory(directory.path() / "runs" / "first"));
  EXPECT_TRUE(names_in(directory.path() / "runs" / "first").empty());
}

TEST(RunDirectory, OtherPeoplesFilesAreRefusedUnlessForced) {
  const TestDirectory directory;
  write_text(directory.path() / "thesis.tex", "");
  EXPECT_NE(error_of_preparing(directory.path()).find("holds files that are not the results of a run"),
            std::string::npos);
  EXPECT_NO_THROW(prepare_directory(directory.path(), true));
}

TEST(RunDirectory, AnotherProgramsSummaryIsNoRun) {
  const TestDirectory directory;
  write_text(directory.path() / kSummaryFile, R"({"name": "something else"})");
  EXPECT_FALSE(error_of_preparing(directory.path()).empty());
  write_text(directory.path() / kSummaryFile, "not JSON");
  EXPECT_FALSE(error_of_preparing(directory.path()).empty());
}

TEST(RunDirectory, AnEarlierRunIsReplaced) {
  const TestDirectory directory;
  const RunFixture run;
  const analysis::RunSummary summary = run.summarize();
  write_run(directory.path(), run.context(summary), {});
  EXPECT_EQ(error_of_preparing(directory.path()), "");
  EXPECT_EQ(names_in(directory.path()),
            (std::set<std::string>{"links.csv", "ranks.csv", "steps.csv", "summary.json", "tiles.csv"}));
  EXPECT_EQ(read_text(directory.path() / kSummaryFile), summary_text(run.context(summary)));
}

TEST(RunDirectory, StreamsOfAnEarlierRunDoNotStay) {
  const TestDirectory directory;
  const RunFixture run;
  const analysis::RunSummary summary = run.summarize();
  write_text(directory.path() / kMessagesFile, "");
  write_run(directory.path(), run.context(summary), {true, false});
  EXPECT_TRUE(fs::exists(directory.path() / kMessagesFile));
  write_run(directory.path(), run.context(summary), {});
  EXPECT_FALSE(fs::exists(directory.path() / kMessagesFile));
  write_text(directory.path() / kTimelineFile, "");
  write_run(directory.path(), run.context(summary), {false, true});
  EXPECT_TRUE(fs::exists(directory.path() / kTimelineFile));
  write_run(directory.path(), run.context(summary), {});
  EXPECT_FALSE(fs::exists(directory.path() / kTimelineFile));
}

TEST(RunDirectory, AFileInTheWayIsNamed) {
  const TestDirectory directory;
  const fs::path file = directory.path() / "file";
  write_text(file, "");
  EXPECT_EQ(error_of_preparing(file), "cannot write results to " + file.string() + ": it is not a directory");
  const std::string below = error_of_preparing(file / "run");
  EXPECT_NE(below.find((file / "run").string()), std::string::npos) << below;
  EXPECT_NE(below.find("Not a directory"), std::string::npos) << below;
}

TEST(RunDirectory, ReadOnlyFileSystemIsFoundBeforeTheRun) {
  EXPECT_NE(error_of_preparing("/proc/wafersim").find("cannot create directory /proc/wafersim: "),
            std::string::npos);
}

}  // namespace
}  // namespace wafersim::report
