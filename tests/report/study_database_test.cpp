#include "report/study_database.h"

#include <SQLiteCpp/SQLiteCpp.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "base/error.h"
#include "report/study_report.h"

namespace wafersim::report {
namespace {

namespace fs = std::filesystem;

const char* const kResult = R"({"schema_version": 1, "seconds": 0.5, "tokens_per_second": 100, "memory": {"fits": true,
  "peak_bytes": 2048}, "list": [1, 2], "scenario": {"seed": 1}, "engine": {"wall_seconds": 3}, "cpu_seconds": 3})";

class StudyDatabaseTest : public ::testing::Test {
 protected:
  StudyDatabaseTest() : folder_(fs::path(::testing::TempDir()) / ("wafersim_database_" + std::to_string(::getpid()))) {
    fs::create_directories(folder_);
  }
  ~StudyDatabaseTest() override { fs::remove_all(folder_); }

  fs::path file(const std::string& name = "study.sqlite") const { return folder_ / name; }

  fs::path folder_;
};

const StudyHeader kHeader{"a study", "run", {{"seed", "7"}}};
const std::vector<PlannedPoint> kThree = {{{{"plan.tp", "1"}}, "{\"tp\": 1}"},
                                          {{{"plan.tp", "2"}, {"plan.pp", "2"}}, "{\"tp\": 2}"},
                                          {{{"plan.tp", "x"}}, ""}};

TEST(StudyMeasures, AreNumbersThatEqualRunsShare) {
  const std::vector<std::pair<std::string, double>> expected = {
      {"seconds", 0.5}, {"tokens_per_second", 100}, {"memory.fits", 1}, {"memory.peak_bytes", 2048}};
  EXPECT_EQ(measures_of(kResult), expected);
}

TEST_F(StudyDatabaseTest, KeepsOutcomesAcrossSessions) {
  {
    StudyDatabase database(file());
    database.plan(kHeader, kThree);
    EXPECT_EQ(database.pending(), (std::vector<std::uint64_t>{1, 2, 3}));
    database.record(2, {kResult, 0, ""});
    database.record(3, {"", 2, "plan.tp: 'x' is no number"});
  }
  StudyDatabase database(file());
  database.plan(kHeader, kThree);
  EXPECT_EQ(database.pending(), (std::vector<std::uint64_t>{1}));
  EXPECT_EQ(database.header().name, "a study");
  EXPECT_EQ(database.header().fixed, kHeader.fixed);
  const std::vector<PointRow> rows = database.rows();
  ASSERT_EQ(rows.size(), 3U);
  EXPECT_EQ(rows[1].status, "done");
  EXPECT_EQ(rows[1].result.find("wall_seconds"), std::string::npos);
  EXPECT_EQ(rows[2].message, "plan.tp: 'x' is no number");
  database.retry_failed();
  EXPECT_EQ(database.pending(), (std::vector<std::uint64_t>{1, 3}));
}

TEST_F(StudyDatabaseTest, OutcomesFollowTheirPointsWhenTheStudyChanges) {
  StudyDatabase database(file());
  database.plan(kHeader, kThree);
  database.record(1, {kResult, 0, ""});
  database.record(2, {kResult, 0, ""});
  // A point in front, and another scenario behind the settings of what was point 1.
  database.plan(kHeader, {{{{"plan.tp", "16"}}, "{\"tp\": 16}"}, kThree[1], {kThree[0].settings, "{\"tp\": 1, \"seed\": 2}"}});
  EXPECT_EQ(database.pending(), (std::vector<std::uint64_t>{1, 3}));
}

TEST_F(StudyDatabaseTest, TheViewHasARowForEachPoint) {
  StudyDatabase database(file());
  database.plan(kHeader, kThree);
  database.record(2, {kResult, 0, ""});
  const SQLite::Database read(file().string());
  SQLite::Statement query(read, R"(SELECT point, status, "plan.tp", "plan.pp", "memory.peak_bytes" FROM results)");
  ASSERT_TRUE(query.executeStep());
  EXPECT_EQ(query.getColumn(2).getString(), "1");
  EXPECT_TRUE(query.getColumn(4).isNull());
  ASSERT_TRUE(query.executeStep());
  EXPECT_EQ(query.getColumn(0).getInt(), 2);
  EXPECT_EQ(query.getColumn(1).getString(), "done");
  EXPECT_EQ(query.getColumn(3).getString(), "2");
  EXPECT_EQ(query.getColumn(4).getDouble(), 2048);
}

TEST_F(StudyDatabaseTest, MergesShards) {
  StudyDatabase first(file("first.sqlite"));
  StudyDatabase second(file("second.sqlite"));
  StudyDatabase both(file());
  for (StudyDatabase* database : {&first, &second, &both}) database->plan(kHeader, kThree);
  first.record(1, {kResult, 0, ""});
  second.record(2, {kResult, 0, ""});
  EXPECT_EQ(both.take_from(file("first.sqlite")), 1U);
  EXPECT_EQ(both.take_from(file("second.sqlite")), 1U);
  EXPECT_EQ(both.take_from(file("second.sqlite")), 0U);
  EXPECT_EQ(both.pending(), (std::vector<std::uint64_t>{3}));
}

TEST_F(StudyDatabaseTest, RefusesOtherFilesAndOtherCommands) {
  std::ofstream(file("text")) << std::string(4096, 'x');
  EXPECT_THROW(StudyDatabase(file("text")), IoError);
  EXPECT_THROW(StudyDatabase(folder_ / "none" / "study.sqlite"), IoError);
  StudyDatabase database(file());
  database.plan(kHeader, kThree);
  try {
    database.plan({"a study", "traffic", {}}, kThree);
    FAIL() << "another command was accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), ExitStatus::scenario);
    EXPECT_NE(std::string(error.what()).find("results of command 'run', this is 'traffic'"), std::string::npos);
  }
}

TEST_F(StudyDatabaseTest, TablesForPeopleAndPrograms) {
  StudyDatabase database(file());
  database.plan(kHeader, kThree);
  database.record(1, {kResult, 0, ""});
  database.record(3, {"", 2, "wrong, \"x\"\nmore"});
  EXPECT_EQ(study_csv(database.rows()),
            "point,status,plan.pp,plan.tp,memory.fits,memory.peak_bytes,seconds,tokens_per_second,message\n"
            "1,done,,1,1,2048,0.5,100,\n"
            "2,pending,2,2,,,,,\n"
            "3,failed,,x,,,,,\"wrong, \"\"x\"\"\nmore\"\n");
  const std::string text = study_text(database.header(), database.rows());
  EXPECT_NE(text.find("a study: 1 of 3 points done, 1 failed"), std::string::npos) << text;
  EXPECT_NE(text.find("500 ms"), std::string::npos) << text;
  EXPECT_NE(text.find("point 3: wrong, \"x\"\n"), std::string::npos) << text;
}

}  // namespace
}  // namespace wafersim::report
