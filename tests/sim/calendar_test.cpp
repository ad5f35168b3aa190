#include "sim/calendar.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

/// What the simulator relies on in its calendar and in SystemC's time.
namespace wafersim::sim {
namespace {

Frequency gigahertz(const std::string& value) {
  Rational rate;
  EXPECT_TRUE(Rational::parse_decimal(value, rate));
  return {rate * Rational(1'000'000'000)};
}

/// Logs "name.u<payload>@cycle" and "name.e@cycle", and does what the test has told it to.
class Probe : public Client {
 public:
  Probe(Calendar& calendar, std::string name, Rank rank, std::vector<std::string>& log)
      : calendar_(calendar), name_(std::move(name)), log_(log) {
    calendar.add(*this, rank);
  }
  void update(unsigned kind, std::uint32_t payload) override {
    log_.push_back(name_ + ".u" + std::to_string(payload) + "@" + std::to_string(calendar_.now()));
    if (on_update) on_update(kind, payload);
  }
  void evaluate() override {
    log_.push_back(name_ + ".e@" + std::to_string(calendar_.now()));
    if (on_evaluate) on_evaluate();
  }
  std::function<void(unsigned, std::uint32_t)> on_update;
  std::function<void()> on_evaluate;

 private:
  Calendar& calendar_;
  std::string name_;
  std::vector<std::string>& log_;
};

class CalendarTest : public testing::Test {
 protected:
  using Log = std::vector<std::string>;

  void start() {
    sc_core::sc_start();
    calendar_.rethrow();
  }

  Calendar calendar_{"calendar", gigahertz("1")};
  Log log_;
};

TEST_F(CalendarTest, UpdatesComeBeforeEvaluationsAndRanksInOrder) {
  Probe router(calendar_, "router", Rank::router, log_), nic(calendar_, "nic", Rank::nic, log_),
      dram(calendar_, "dram", Rank::dram, log_), core(calendar_, "core", Rank::core, log_);
  for (Probe* probe : {&router, &nic, &dram, &core}) {
    probe->on_update = [this, probe](unsigned, std::uint32_t) {
      calendar_.request_evaluation(*probe);
      calendar_.request_evaluation(*probe);  // asked for twice, made once
    };
    calendar_.post(*probe, 7, 0, 1);
  }
  calendar_.post(router, 7, 0, 2);
  start();
  EXPECT_EQ(log_, (Log{"router.u1@7", "nic.u1@7", "dram.u1@7", "core.u1@7", "router.u2@7", "core.e@7",
                       "dram.e@7", "nic.e@7", "router.e@7"}));
  EXPECT_EQ(calendar_.last_busy(), 7U);
  EXPECT_EQ(calendar_.events(), 9U);
}

/// What lies in the calendar can be looked at between cycles and be put back later in time.
TEST_F(CalendarTest, PendingEventsCanBeMoved) {
  Probe core(calendar_, "core", Rank::core, log_);
  constexpr Cycle kFar = 3 * Calendar::kWheel;
  core.on_update = [this](unsigned, std::uint32_t payload) {
    if (payload == 0) calendar_.request_boundary();
  };
  calendar_.on_start([&] {
    const std::vector<Calendar::Pending> all = calendar_.pending();
    ASSERT_EQ(all.size(), 42U);
    EXPECT_TRUE(std::is_sorted(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.at < b.at; }));
    EXPECT_EQ(all.front().at, 5U);
    EXPECT_EQ(all.back().at, kFar);
  });
  calendar_.on_boundary([&] {
    EXPECT_EQ(calendar_.current(), 5U);
    std::vector<Calendar::Pending> left = calendar_.pending();
    for (Calendar::Pending& event : left) event.at += 1'000'000;
    calendar_.replace(1'000'005, left);
  });
  calendar_.post(core, 5, 0, 0);
  for (std::uint32_t i = 1; i <= 40; ++i) calendar_.post(core, 70, 0, i);  // in more than one chunk
  calendar_.post(core, kFar, 0, 41);
  start();
  ASSERT_EQ(log_.size(), 42U);
  EXPECT_EQ(log_.front(), "core.u0@5");
  EXPECT_EQ(log_.at(40), "core.u40@1000070");
  EXPECT_EQ(log_.back(), "core.u41@" + std::to_string(kFar + 1'000'000));
}

/// An evaluation may post for its own cycle, and ask for lower ranks again; nothing of the cycle is left
/// over.
TEST_F(CalendarTest, CycleGoesOnUntilNothingIsLeft) {
  Probe core(calendar_, "core", Rank::core, log_), router(calendar_, "router", Rank::router, log_);
  int rounds = 0;
  core.on_evaluate = [&] { calendar_.request_evaluation(router); };
  core.on_update = [&](unsigned, std::uint32_t) { calendar_.request_evaluation(core); };
  router.on_evaluate = [&] {
    if (++rounds == 1) calendar_.post(core, calendar_.now(), 3, 5);
  };
  calendar_.post(core, 4, 3, 1);
  start();
  EXPECT_EQ(log_, (Log{"core.u1@4", "core.e@4", "router.e@4", "core.u5@4", "core.e@4", "router.e@4"}));
}

TEST_F(CalendarTest, KindsArriveAsPosted) {
  Probe core(calendar_, "core", Rank::core, log_);
  std::vector<unsigned> kinds;
  core.on_update = [&](unsigned kind, std::uint32_t) { kinds.push_back(kind); };
  for (unsigned kind = 0; kind < 15; ++kind) calendar_.post(core, 1, kind, 0xffff'ffff);
  start();
  EXPECT_EQ(kinds, (std::vector<unsigned>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14}));
}

/// Events beyond the wheel lie in a heap and may meet near ones in their cycle.
TEST_F(CalendarTest, NearAndFarEventsComeInTheirCycles) {
  constexpr auto kWheel = static_cast<std::uint32_t>(Calendar::kWheel);
  const std::vector<std::uint32_t> ahead = {1, kWheel - 1, kWheel, kWheel + 1, 2 * kWheel, 25 * kWheel};
  Probe core(calendar_, "core", Rank::core, log_);
  core.on_update = [&](unsigned, std::uint32_t payload) {
    if (payload != 0) return;
    for (auto cycles = ahead.rbegin(); cycles != ahead.rend(); ++cycles) {
      calendar_.post(core, calendar_.now() + *cycles, 0, *cycles);
    }
  };
  calendar_.post(core, 10, 0, 0);
  calendar_.post(core, 10 + kWheel, 0, 9);
  start();
  Log expected{"core.u0@10"};
  for (const std::uint32_t cycles : ahead) {
    expected.push_back("core.u" + std::to_string(cycles) + "@" + std::to_string(10 + cycles));
  }
  expected.insert(expected.begin() + 3, "core.u9@" + std::to_string(10 + kWheel));
  std::sort(log_.begin() + 3, log_.begin() + 5);  // two in one cycle: their order is nobody's business
  std::sort(expected.begin() + 3, expected.begin() + 5);
  EXPECT_EQ(log_, expected);
}

TEST_F(CalendarTest, ManyEventsOfACycleAllArriveInOrder) {
  Probe core(calendar_, "core", Rank::core, log_);
  Log expected;
  for (int cycle = 1; cycle <= 3; ++cycle) {  // later cycles use the storage again
    for (std::uint32_t i = 0; i < 500; ++i) {
      calendar_.post(core, static_cast<Cycle>(cycle), 0, i);
      expected.push_back("core.u" + std::to_string(i) + "@" + std::to_string(cycle));
    }
  }
  // Posting during the delivery of a full cycle.
  core.on_update = [&](unsigned, std::uint32_t payload) {
    if (calendar_.now() == 3) calendar_.post(core, 5, 0, payload);
  };
  start();
  for (std::uint32_t i = 0; i < 500; ++i) expected.push_back("core.u" + std::to_string(i) + "@5");
  EXPECT_EQ(log_, expected);
}

std::vector<std::string> sorted(std::vector<std::string> list) {
  std::sort(list.begin(), list.end());
  return list;
}

TEST_F(CalendarTest, ShuffleVisitsAllInAnotherOrder) {
  calendar_.shuffle(5);
  std::vector<std::unique_ptr<Probe>> probes;
  Log in_order;
  for (int i = 0; i < 100; ++i) {
    probes.push_back(std::make_unique<Probe>(calendar_, "p" + std::to_string(i), Rank::core, log_));
    Probe* const probe = probes.back().get();
    probe->on_update = [this, probe](unsigned, std::uint32_t) { calendar_.request_evaluation(*probe); };
    calendar_.post(*probe, 3, 0, 0);
    in_order.push_back("p" + std::to_string(i) + ".u0@3");
  }
  for (int i = 0; i < 100; ++i) in_order.push_back("p" + std::to_string(i) + ".e@3");
  start();
  EXPECT_NE(log_, in_order);
  EXPECT_EQ(sorted(log_), sorted(in_order));
  // Updates still come first.
  EXPECT_TRUE(std::all_of(log_.begin(), log_.begin() + 100,
                          [](const std::string& line) { return line.find(".u") != std::string::npos; }));
}

TEST_F(CalendarTest, EvaluationAtTheStart) {
  Probe core(calendar_, "core", Rank::core, log_);
  calendar_.evaluate_at_start(core);
  start();
  EXPECT_EQ(log_, Log{"core.e@0"});
}

/// A process of a user's own.
class Outside : public sc_core::sc_module {
 public:
  SC_HAS_PROCESS(Outside);
  Outside(sc_core::sc_module_name name, std::function<void()> body)
      : sc_module(name), body_(std::move(body)) {
    SC_THREAD(run);
  }

 private:
  void run() { body_(); }
  std::function<void()> body_;
};

TEST_F(CalendarTest, ProcessOutsideWakesItEarlierThanPlanned) {
  Probe core(calendar_, "core", Rank::core, log_);
  std::vector<Cycle> seen;
  Outside outside("outside", [&] {
    sc_core::wait(50, sc_core::SC_NS);
    seen.push_back(calendar_.now());
    calendar_.post(core, 60, 0, 60);
    calendar_.post(core, 55, 0, 55);
    calendar_.post(core, 70'000, 0, 70'000);
    sc_core::wait(10'000, sc_core::SC_NS);
    seen.push_back(calendar_.now());
    calendar_.request_evaluation(core);  // in the next cycle
    calendar_.request_evaluation(core);
  });
  calendar_.post(core, 20'000, 0, 1);  // what it had planned
  start();
  EXPECT_EQ(log_, (Log{"core.u55@55", "core.u60@60", "core.e@10051", "core.u1@20000", "core.u70000@70000"}));
  EXPECT_EQ(seen, (std::vector<Cycle>{50, 10'050}));
}

/// Without processes outside, many cycles may pass in one activation. The time stamp catches up in the end.
TEST_F(CalendarTest, RunsAheadOfTheTimeStamp) {
  Probe core(calendar_, "core", Rank::core, log_);
  calendar_.run_ahead();
  core.on_update = [&](unsigned, std::uint32_t payload) {
    EXPECT_LE(sc_core::sc_time_stamp(),
              sc_core::sc_time::from_value(calendar_.now() * calendar_.period().value()));
    if (payload < 20'000) calendar_.post(core, calendar_.now() + 1 + payload % 7, 0, payload + 1);
  };
  calendar_.post(core, 0, 0, 0);
  start();
  Log expected;
  Cycle cycle = 0;
  for (std::uint32_t payload = 0; payload <= 20'000; ++payload) {
    expected.push_back("core.u" + std::to_string(payload) + "@" + std::to_string(cycle));
    if (payload < 20'000) cycle += 1 + payload % 7;
  }
  EXPECT_EQ(log_, expected);
  EXPECT_EQ(calendar_.last_busy(), cycle);
  EXPECT_EQ(sc_core::sc_time_stamp(), sc_core::sc_time(static_cast<double>(cycle), sc_core::SC_NS));
}

void expect_time_follows(const std::string& clock, double picoseconds) {
  Calendar calendar("calendar", gigahertz(clock));
  std::vector<std::string> log;
  Probe core(calendar, "core", Rank::core, log);
  int checks = 0;
  core.on_update = [&](unsigned, std::uint32_t) {
    EXPECT_EQ(sc_core::sc_time_stamp(),
              sc_core::sc_time::from_value(calendar.now() * calendar.period().value()));
    ++checks;
    if (calendar.now() < 1'000'000'000'000) calendar.post(core, calendar.now() * 3 + 1, 0, 0);
  };
  calendar.post(core, 1, 0, 0);
  sc_core::sc_start();
  calendar.rethrow();
  EXPECT_EQ(calendar.period(), sc_core::sc_time(picoseconds, sc_core::SC_PS));
  EXPECT_GT(checks, 20);
  EXPECT_GT(calendar.last_busy(), 1'000'000'000'000U);
}

TEST(CalendarTime, FollowsCyclesAt850Megahertz) { expect_time_follows("0.85", 1176); }
TEST(CalendarTime, FollowsCyclesAt1100Megahertz) { expect_time_follows("1.1", 909); }

TEST_F(CalendarTest, ExceptionOfAClientIsThrownAgain) {
  Probe core(calendar_, "core", Rank::core, log_);
  core.on_evaluate = [] { throw std::out_of_range("from a client"); };
  core.on_update = [&](unsigned, std::uint32_t) { calendar_.request_evaluation(core); };
  calendar_.post(core, 5, 0, 0);
  calendar_.post(core, 6, 0, 1);
  sc_core::sc_start();
  try {
    calendar_.rethrow();
    FAIL() << "nothing was thrown";
  } catch (const std::out_of_range& error) {
    EXPECT_STREQ(error.what(), "from a client");
  }
  EXPECT_EQ(log_, (Log{"core.u0@5", "core.e@5"}));  // it stopped there
}

TEST_F(CalendarTest, NoCycleBeyondTheLimit) {
  Probe core(calendar_, "core", Rank::core, log_);
  calendar_.set_limit(9);
  for (const Cycle cycle : {8U, 9U, 10U}) calendar_.post(core, cycle, 0, 0);
  start();
  EXPECT_EQ(log_, (Log{"core.u0@8", "core.u0@9"}));
  EXPECT_TRUE(calendar_.stopped_by_limit());
  EXPECT_FALSE(calendar_.stopped_by_poll());
}

TEST_F(CalendarTest, NoCycleBeyondTheLimitForAProcessOutsideEither) {
  Probe core(calendar_, "core", Rank::core, log_);
  calendar_.set_limit(9);
  Outside outside("outside", [&] {
    sc_core::wait(20, sc_core::SC_NS);
    calendar_.post(core, 25, 0, 0);
  });
  calendar_.post(core, 3, 0, 0);
  start();
  EXPECT_EQ(log_, Log{"core.u0@3"});
  EXPECT_TRUE(calendar_.stopped_by_limit());
  EXPECT_EQ(calendar_.last_busy(), 3U);
}

TEST_F(CalendarTest, LimitWithoutWorkBeyondItStopsNothing) {
  Probe core(calendar_, "core", Rank::core, log_);
  calendar_.set_limit(9);
  calendar_.post(core, 9, 0, 0);
  start();
  EXPECT_FALSE(calendar_.stopped_by_limit());
}

TEST_F(CalendarTest, PollStopsTheRun) {
  Probe core(calendar_, "core", Rank::core, log_);
  core.on_update = [&](unsigned, std::uint32_t) { calendar_.post(core, calendar_.now() + 1, 0, 0); };
  int polls = 0;
  calendar_.on_poll([&] { return ++polls < 3; });
  calendar_.post(core, 1, 0, 0);
  start();
  EXPECT_TRUE(calendar_.stopped_by_poll());
  EXPECT_EQ(polls, 3);
  EXPECT_LT(calendar_.last_busy(), 100'000U);
}

}  // namespace
}  // namespace wafersim::sim
