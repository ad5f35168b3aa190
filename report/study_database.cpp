#include "report/study_database.h"

#include <SQLiteCpp/SQLiteCpp.h>
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/text.h"

namespace wafersim::report {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr int kSchemaVersion = 1;
constexpr int kBusyMilliseconds = 10'000;

constexpr const char* kTables = R"(
CREATE TABLE IF NOT EXISTS study(key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS points(
  point INTEGER PRIMARY KEY,
  status TEXT NOT NULL CHECK(status IN ('pending', 'done', 'failed')),
  exit_status INTEGER,
  message TEXT,
  scenario TEXT,
  result TEXT);
CREATE TABLE IF NOT EXISTS settings(
  point INTEGER NOT NULL REFERENCES points, key TEXT NOT NULL, value TEXT NOT NULL,
  PRIMARY KEY(point, key)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS measures(
  point INTEGER NOT NULL REFERENCES points, name TEXT NOT NULL, value REAL NOT NULL,
  PRIMARY KEY(point, name)) WITHOUT ROWID;
)";

/// Calls `action`; what SQLite says of the file becomes an IoError.
template <class Action>
auto guarded(const fs::path& file, Action&& action) {
  try {
    return action();
  } catch (const SQLite::Exception& error) {
    throw IoError(fmt::format("{}: {}", file.string(), error.what()));
  }
}

/// What makes two runs of the same point differ.
bool is_of_the_run(const std::string& key) {
  return key == "engine" || key.find("cpu_second") != std::string::npos;
}

Json lasting(Json result) {
  for (auto item = result.begin(); item != result.end();) {
    item = is_of_the_run(item.key()) ? result.erase(item) : std::next(item);
  }
  return result;
}

void collect(const Json& block, const std::string& prefix, std::vector<std::pair<std::string, double>>& out) {
  for (const auto& [key, value] : block.items()) {
    const bool apart = prefix.empty() && (key == "scenario" || key == "plan" || key == "schema_version");
    if (apart || is_of_the_run(key)) continue;
    if (value.is_object()) {
      collect(value, prefix + key + ".", out);
    } else if (value.is_number()) {
      out.emplace_back(prefix + key, value.get<double>());
    } else if (value.is_boolean()) {
      out.emplace_back(prefix + key, value.get<bool>() ? 1.0 : 0.0);
    }
  }
}

std::string settings_text(const std::vector<StudySetting>& settings) {
  Json json = Json::array();
  for (const auto& [key, value] : settings) json.push_back({key, value});
  return json.dump();
}

std::vector<StudySetting> settings_from(const std::string& text) {
  std::vector<StudySetting> settings;
  for (const Json& pair : Json::parse(text)) settings.emplace_back(pair.at(0), pair.at(1));
  return settings;
}

struct StoredOutcome {
  std::string status;
  int exit_status = 0;
  std::string message;
  std::string result;
};

/// By what identifies a point: its settings and its scenario.
using Outcomes = std::map<std::pair<std::string, std::string>, StoredOutcome>;

std::map<std::int64_t, std::vector<StudySetting>> all_settings(SQLite::Database& database) {
  std::map<std::int64_t, std::vector<StudySetting>> settings;
  SQLite::Statement query(database, "SELECT point, key, value FROM settings ORDER BY point, key");
  while (query.executeStep()) {
    settings[query.getColumn(0).getInt64()].emplace_back(query.getColumn(1).getString(), query.getColumn(2).getString());
  }
  return settings;
}

std::vector<StudySetting> sorted(std::vector<StudySetting> settings) {
  std::sort(settings.begin(), settings.end());
  return settings;
}

Outcomes outcomes_in(SQLite::Database& database) {
  Outcomes outcomes;
  const auto settings = all_settings(database);
  SQLite::Statement query(
      database, "SELECT point, scenario, status, exit_status, message, result FROM points WHERE status <> 'pending'");
  while (query.executeStep()) {
    const auto found = settings.find(query.getColumn(0).getInt64());
    const std::string key = settings_text(found == settings.end() ? std::vector<StudySetting>{} : found->second);
    outcomes[{key, query.getColumn(1).getString()}] = {query.getColumn(2).getString(), query.getColumn(3).getInt(),
                                                       query.getColumn(4).getString(), query.getColumn(5).getString()};
  }
  return outcomes;
}

std::optional<std::string> study_value(SQLite::Database& database, const std::string& key) {
  SQLite::Statement query(database, "SELECT value FROM study WHERE key = ?");
  query.bind(1, key);
  if (!query.executeStep()) return std::nullopt;
  return query.getColumn(0).getString();
}

void set_study_value(SQLite::Database& database, const std::string& key, const std::string& value) {
  SQLite::Statement insert(database, "INSERT OR REPLACE INTO study(key, value) VALUES(?, ?)");
  insert.bind(1, key);
  insert.bind(2, value);
  insert.exec();
}

void write_outcome(SQLite::Database& database, std::int64_t point, const StoredOutcome& outcome) {
  SQLite::Statement update(database,
                           "UPDATE points SET status = ?, exit_status = ?, message = ?, result = ? WHERE point = ?");
  update.bind(1, outcome.status);
  update.bind(2, outcome.exit_status);
  outcome.message.empty() ? update.bind(3) : update.bind(3, outcome.message);
  outcome.result.empty() ? update.bind(4) : update.bind(4, outcome.result);
  update.bind(5, point);
  update.exec();
  if (outcome.result.empty()) return;
  SQLite::Statement insert(database, "INSERT INTO measures(point, name, value) VALUES(?, ?, ?)");
  for (const auto& [name, value] : measures_of(outcome.result)) {
    insert.bind(1, point);
    insert.bind(2, name);
    insert.bind(3, value);
    insert.exec();
    insert.reset();
  }
}

}  // namespace

std::vector<std::pair<std::string, double>> measures_of(const std::string& result) {
  std::vector<std::pair<std::string, double>> measures;
  collect(Json::parse(result), "", measures);
  return measures;
}

StudyDatabase::StudyDatabase(const fs::path& file) : file_(file) {
  guarded(file_, [&] {
    database_ = std::make_unique<SQLite::Database>(file_.string(), SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE,
                                                   kBusyMilliseconds);
    create_tables();
  });
}

StudyDatabase::~StudyDatabase() = default;

void StudyDatabase::create_tables() {
  SQLite::Transaction change(*database_);
  database_->exec(kTables);
  const std::optional<std::string> version = study_value(*database_, "schema_version");
  if (version && *version != std::to_string(kSchemaVersion)) {
    throw Error(ExitStatus::scenario, fmt::format("{}: its tables are of version {}, this wafersim knows version {}",
                                                  file_.string(), *version, kSchemaVersion));
  }
  set_study_value(*database_, "schema_version", std::to_string(kSchemaVersion));
  change.commit();
}

void StudyDatabase::plan(const StudyHeader& header, const std::vector<PlannedPoint>& points) {
  guarded(file_, [&] {
    SQLite::Transaction change(*database_);
    for (const auto& [key, value] : {StudySetting{"wafersim_version", WAFERSIM_VERSION}, {"command", header.command}}) {
      const std::optional<std::string> before = study_value(*database_, key);
      if (before && *before != value) {
        throw Error(ExitStatus::scenario,
                    fmt::format("{} has results of {} '{}', this is '{}'; choose another directory with -o", file_.string(),
                                key, *before, value));
      }
      set_study_value(*database_, key, value);
    }
    set_study_value(*database_, "name", header.name);
    set_study_value(*database_, "set", settings_text(header.fixed));
    const Outcomes known = outcomes_in(*database_);
    for (const char* table : {"measures", "settings", "points"}) database_->exec(fmt::format("DELETE FROM {}", table));
    SQLite::Statement insert(*database_, "INSERT INTO points(point, status, scenario) VALUES(?, 'pending', ?)");
    SQLite::Statement setting(*database_, "INSERT INTO settings(point, key, value) VALUES(?, ?, ?)");
    for (std::size_t i = 0; i < points.size(); ++i) {
      const auto number = static_cast<std::int64_t>(i + 1);
      insert.bind(1, number);
      points[i].scenario.empty() ? insert.bind(2) : insert.bind(2, points[i].scenario);
      insert.exec();
      insert.reset();
      for (const auto& [key, value] : points[i].settings) {
        setting.bind(1, number);
        setting.bind(2, key);
        setting.bind(3, value);
        setting.exec();
        setting.reset();
      }
      const auto found = known.find({settings_text(sorted(points[i].settings)), points[i].scenario});
      if (found != known.end()) write_outcome(*database_, number, found->second);
    }
    lay_view();
    change.commit();
  });
}

std::vector<std::uint64_t> StudyDatabase::pending() const {
  return guarded(file_, [&] {
    std::vector<std::uint64_t> numbers;
    SQLite::Statement query(*database_, "SELECT point FROM points WHERE status = 'pending' ORDER BY point");
    while (query.executeStep()) numbers.push_back(static_cast<std::uint64_t>(query.getColumn(0).getInt64()));
    return numbers;
  });
}

std::uint64_t StudyDatabase::take_from(const fs::path& other) {
  const Outcomes known = guarded(other, [&] {
    SQLite::Database database(other.string(), SQLite::OPEN_READONLY, kBusyMilliseconds);
    return outcomes_in(database);
  });
  return guarded(file_, [&] {
    SQLite::Transaction change(*database_);
    const auto settings = all_settings(*database_);
    std::vector<std::pair<std::int64_t, const StoredOutcome*>> taken;
    SQLite::Statement query(*database_, "SELECT point, scenario FROM points WHERE status = 'pending'");
    while (query.executeStep()) {
      const std::int64_t number = query.getColumn(0).getInt64();
      const auto own = settings.find(number);
      const std::string key = settings_text(own == settings.end() ? std::vector<StudySetting>{} : own->second);
      const auto found = known.find({key, query.getColumn(1).getString()});
      if (found != known.end()) taken.emplace_back(number, &found->second);
    }
    for (const auto& [number, outcome] : taken) write_outcome(*database_, number, *outcome);
    lay_view();
    change.commit();
    return std::uint64_t{taken.size()};
  });
}

void StudyDatabase::record(std::uint64_t number, const PointOutcome& outcome) {
  guarded(file_, [&] {
    SQLite::Transaction change(*database_);
    const bool done = !outcome.result.empty();
    write_outcome(*database_, static_cast<std::int64_t>(number),
                  {done ? "done" : "failed", outcome.exit_status, outcome.message,
                   done ? lasting(Json::parse(outcome.result)).dump() : std::string()});
    lay_view();
    change.commit();
  });
}

void StudyDatabase::retry_failed() {
  guarded(file_, [&] {
    database_->exec("UPDATE points SET status = 'pending', exit_status = NULL, message = NULL WHERE status = 'failed'");
  });
}

/// `results`: a row for each point, a column for each key and each measure, in alphabetical order.
void StudyDatabase::lay_view() {
  const auto names = [&](const char* text) {
    std::vector<std::string> found;
    SQLite::Statement query(*database_, text);
    while (query.executeStep()) found.push_back(query.getColumn(0).getString());
    return found;
  };
  const std::vector<std::string> keys = names("SELECT DISTINCT key FROM settings ORDER BY key");
  const std::vector<std::string> measures = names("SELECT DISTINCT name FROM measures ORDER BY name");
  std::string columns = "point, status";
  const auto add = [&](const char* table, const char* column, const std::string& name) {
    columns += fmt::format(",\n  (SELECT value FROM {0} WHERE {0}.point = points.point AND {1} = {2}) AS {3}", table, column,
                           quoted(name, '\''), quoted(name));
  };
  for (const std::string& key : keys) add("settings", "key", key);
  for (const std::string& name : measures) add("measures", "name", name);
  const std::string view = fmt::format("CREATE VIEW results AS SELECT {}\nFROM points ORDER BY point", columns);
  SQLite::Statement current(*database_, "SELECT sql FROM sqlite_master WHERE type = 'view' AND name = 'results'");
  if (current.executeStep() && current.getColumn(0).getString() == view) return;
  current.reset();
  database_->exec("DROP VIEW IF EXISTS results");
  database_->exec(view);
}

std::vector<PointRow> StudyDatabase::rows() const {
  return guarded(file_, [&] {
    const auto settings = all_settings(*database_);
    std::vector<PointRow> rows;
    SQLite::Statement query(*database_, "SELECT point, status, message, result FROM points ORDER BY point");
    while (query.executeStep()) {
      const std::int64_t number = query.getColumn(0).getInt64();
      const auto own = settings.find(number);
      rows.push_back({static_cast<std::uint64_t>(number), own == settings.end() ? std::vector<StudySetting>{} : own->second,
                      query.getColumn(1).getString(), query.getColumn(2).getString(), query.getColumn(3).getString()});
    }
    return rows;
  });
}

StudyHeader StudyDatabase::header() const {
  return guarded(file_, [&] {
    StudyHeader header;
    header.name = study_value(*database_, "name").value_or("");
    header.command = study_value(*database_, "command").value_or("");
    header.fixed = settings_from(study_value(*database_, "set").value_or("[]"));
    return header;
  });
}

}  // namespace wafersim::report
