#include "apps/plan_worker.h"

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>

#include "apps/interrupt.h"
#include "report/atomic_file.h"
#include "report/csv_table.h"
#include "report/run_directory.h"

namespace wafersim::apps {

using analysis::PlanPoint;
using analysis::PlanVerdict;

namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr const char* kPredict = "predict";
constexpr const char* kSimulate = "simulate";

// A verdict travels as a list of its fields, in the order in which these name them; its fault as the message.

template <class Visit, class Overflow>
void overflow_fields(Visit&& visit, Overflow& overflow) {
  visit(overflow.tile);
  visit(overflow.dram);
  visit(overflow.held);
  visit(overflow.capacity);
  visit(overflow.by_class);
  visit(overflow.step);
}

template <class Visit, class Verdict>
void fields(Visit&& visit, Verdict& verdict) {
  visit(verdict.outcome);
  visit(verdict.cycles);
  auto& memory = verdict.memory;
  visit(memory.by_class);
  visit(memory.sram_by_class);
  visit(memory.peak_bytes);
  visit(memory.peak_sram_bytes);
  visit(memory.peak_dram_bytes);
  visit(memory.peak_tile);
  visit(memory.sram_capacity);
  visit(memory.dram_capacity);
  visit(memory.fits);
}

/// null: there is none.
std::optional<double> joules_in(const json& value) {
  return value.is_null() ? std::nullopt : std::optional(value.get<double>());
}

std::string text_of(const PlanVerdict& verdict) {
  json list = json::array();
  const auto write = [&list](const auto& field) { list.push_back(field); };
  fields(write, verdict);
  list.push_back(verdict.joules ? json(*verdict.joules) : json(nullptr));
  if (verdict.memory.overflow) overflow_fields(write, *verdict.memory.overflow);
  return list.dump();
}

}  // namespace

PlanVerdict verdict_of(const report::PointOutcome& outcome) {
  const json list = json::parse(outcome.result);
  std::size_t next = 0;
  const auto read = [&](auto& field) { list.at(next++).get_to(field); };
  PlanVerdict verdict;
  fields(read, verdict);
  verdict.joules = joules_in(list.at(next++));
  if (next < list.size()) overflow_fields(read, verdict.memory.overflow.emplace());
  verdict.fault = outcome.message;
  return verdict;
}

std::optional<Cycle> cycles_of(const report::PointOutcome& outcome) {
  if (outcome.result.empty()) return std::nullopt;
  return json::parse(outcome.result).at("cycles").get<Cycle>();
}

std::optional<double> joules_of(const report::PointOutcome& outcome) {
  return outcome.result.empty() ? std::nullopt : joules_in(json::parse(outcome.result).at("joules"));
}

config::Scenario with_plan(config::Scenario scenario, const PlanPoint& point) {
  scenario.plan = point.plan;
  scenario.training = point.training;
  scenario.router.routing = point.routing;
  return scenario;
}

PlanWorker::PlanWorker(const config::Scenario& scenario, analysis::PlanPredictor& predictor, std::size_t threads,
                       const fs::path& directory, int rank)
    : scenario_(scenario), predictor_(predictor), threads_(threads), work_(directory, rank) {}

PlanWorker::~PlanWorker() = default;

fs::path PlanWorker::file_of(std::uint64_t number, const char* ending) const {
  return work_.path() / (std::to_string(number) + ending);
}

std::uint64_t PlanWorker::add(Kind kind, PlanPoint point) {
  pieces_.emplace(++last_, Piece{kind, std::move(point)});
  return last_;
}

PlanWorker::Piece PlanWorker::take(std::uint64_t number) {
  Piece piece = std::move(pieces_.at(number));
  pieces_.erase(number);
  return piece;
}

std::string PlanWorker::hand_over(std::uint64_t number) {
  const Piece piece = take(number);
  return std::string(piece.kind == Kind::predict ? kPredict : kSimulate) + "\n" +
         config::to_yaml(with_plan(scenario_, piece.point));
}

void PlanWorker::take_over(std::uint64_t number, const std::string& text) {
  const std::size_t line = text.find('\n');
  config::Scenario scenario = config::parse_scenario(text.substr(line + 1), "a plan of rank 0");
  const Kind kind = text.substr(0, line) == kPredict ? Kind::predict : Kind::simulate;
  pieces_.emplace(number, Piece{kind, {std::move(scenario.plan), std::move(scenario.training), scenario.router.routing}});
}

void PlanWorker::start(std::uint64_t number) {
  Piece piece = take(number);
  if (piece.kind == Kind::simulate) {
    const fs::path file = file_of(number, ".yaml");
    report::write_file(file, config::to_yaml(with_plan(scenario_, piece.point)));
    children_.start(number, {"run", file.string(), "-o", file_of(number, "").string(), "--quiet"}, file_of(number, ".log"));
    return;
  }
  ++predicting_;
  const std::lock_guard lock(mutex_);
  questions_.emplace_back(number, std::move(piece.point));
  if (predictors_.size() < std::min(threads_, predicting_)) {
    predictors_.emplace_back([this](const std::stop_token& stop) { predict(stop); });
  }
  asked_.notify_one();
}

void PlanWorker::predict(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  while (asked_.wait(lock, stop, [this] { return !questions_.empty(); }) && !stop.stop_requested()) {
    const auto [number, point] = std::move(questions_.front());
    questions_.pop_front();
    lock.unlock();
    Predicted answer{number, {}, nullptr};
    try {
      answer.verdict = predictor_.predict(point);
    } catch (...) {
      answer.failure = std::current_exception();
    }
    lock.lock();
    answers_.push_back(std::move(answer));
    answered_.notify_one();
  }
}

std::optional<Worker::Ended> PlanWorker::wait_for_simulation() {
  const auto child = children_.wait();
  if (!child || InterruptGuard::interrupted()) return std::nullopt;
  Ended ended{child->number, {}};
  ended.outcome.exit_status = child->status;
  if (child->status == 0) {
    const json summary = json::parse(report::read_file(file_of(child->number, "") / report::kSummaryFile));
    const json& energy = summary.at("energy");
    ended.outcome.result =
        json{{"cycles", summary.at("cycles")}, {"joules", energy.is_null() ? json(nullptr) : energy.at("total_joules")}}.dump();
  } else {
    ended.outcome.message = error_of(file_of(child->number, ".log"), child->status);
  }
  for (const char* ending : {"", ".yaml", ".log"}) fs::remove_all(file_of(child->number, ending));
  return ended;
}

std::optional<Worker::Ended> PlanWorker::wait() {
  constexpr std::chrono::microseconds kMoment(500);
  if (children_.running() != 0) return wait_for_simulation();
  std::unique_lock lock(mutex_);
  if (!answered_.wait_for(lock, kMoment, [this] { return !answers_.empty(); })) return std::nullopt;
  const Predicted answer = std::move(answers_.front());
  answers_.pop_front();
  lock.unlock();
  --predicting_;
  if (answer.failure) std::rethrow_exception(answer.failure);
  return Ended{answer.number, {text_of(answer.verdict), 0, answer.verdict.fault}};
}

void PlanWorker::interrupt() {
  children_.end_all();
  const std::lock_guard lock(mutex_);
  predicting_ -= questions_.size();
  questions_.clear();
}

}  // namespace wafersim::apps
