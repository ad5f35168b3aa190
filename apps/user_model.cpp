#include "apps/user_model.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <nlohmann/json.hpp>
#include <vector>

#include "apps/interrupt.h"
#include "base/error.h"
#include "report/csv_table.h"
#include "report/trial_report.h"

namespace wafersim::apps {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kMostOutput = std::size_t{1} << 20;
constexpr std::size_t kShown = 200;
constexpr int kCannotStart = 127;

ModelAnswer failed(std::string fault) { return {std::nullopt, std::nullopt, std::move(fault)}; }

/// Without white space at either end, line breaks included.
std::string_view bare(std::string_view text) {
  constexpr const char* kSpace = " \t\r\n";
  const std::size_t first = text.find_first_not_of(kSpace);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kSpace) - first + 1);
}

/// A number above 0 that the text is all of.
std::optional<double> positive_number(std::string_view text) {
  const std::string copy(bare(text));
  if (copy.empty()) return std::nullopt;
  char* end = nullptr;
  const double value = std::strtod(copy.c_str(), &end);
  if (*end != '\0' || !std::isfinite(value) || value <= 0) return std::nullopt;
  return value;
}

/// One line, shortened.
std::string shown(std::string_view text) {
  std::string line(bare(text).substr(0, kShown));
  for (char& c : line) {
    if (static_cast<unsigned char>(c) < 0x20) c = ' ';
  }
  return line;
}

/// The two ends of a pipe; the child keeps one of them.
struct Pipe {
  Pipe() {
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) throw IoError(fmt::format("cannot make a pipe: {}", std::strerror(errno)));
  }
  ~Pipe() {
    close(0);
    close(1);
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  void close(std::size_t end) {
    if (ends[end] >= 0) ::close(ends[end]);
    ends[end] = -1;
  }
  std::array<int, 2> ends{-1, -1};
};

/// A running program, killed with all that it has started when this goes.
struct Program {
  pid_t id = -1;
  int state = 0;
  ~Program() { end(); }
  void end() {
    if (id < 0) return;
    ::kill(-id, SIGKILL);
    ::waitpid(id, &state, 0);
    id = -1;
  }
  /// Waits until `deadline`; false when it still runs then.
  bool wait(Clock::time_point deadline) {
    while (::waitpid(id, &state, WNOHANG) == 0) {
      if (Clock::now() >= deadline || InterruptGuard::interrupted()) return false;
      ::usleep(1000);
    }
    ::kill(-id, SIGKILL);  // what it has left behind
    id = -1;
    return true;
  }
};

void append(int file, std::string& text, bool& open) {
  std::array<char, 65536> buffer{};
  const ssize_t count = ::read(file, buffer.data(), buffer.size());
  if (count > 0) {
    text.append(buffer.data(), static_cast<std::size_t>(count));
  } else if (count == 0 || errno != EAGAIN) {
    open = false;
  }
}

/// Feeds `input` and reads both outputs until the program closes them; false at the deadline or an interrupt.
bool exchange(Pipe& in, Pipe& out, Pipe& err, std::string_view input, Clock::time_point deadline, std::string& printed,
              std::string& complaints) {
  bool out_open = true, err_open = true;
  while (out_open || err_open) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
    if (left <= 0 || InterruptGuard::interrupted() || printed.size() > kMostOutput || complaints.size() > kMostOutput)
      return false;
    std::array<pollfd, 3> files{{{out_open ? out.ends[0] : -1, POLLIN, 0},
                                 {err_open ? err.ends[0] : -1, POLLIN, 0},
                                 {input.empty() ? -1 : in.ends[1], POLLOUT, 0}}};
    constexpr long kLook = 100;  // milliseconds between looks for an interrupt
    ::poll(files.data(), files.size(), static_cast<int>(std::min(static_cast<long>(left), kLook)));
    if (files[0].revents != 0) append(out.ends[0], printed, out_open);
    if (files[1].revents != 0) append(err.ends[0], complaints, err_open);
    if (files[2].revents != 0) {
      const ssize_t count = ::write(in.ends[1], input.data(), input.size());
      if (count > 0) input.remove_prefix(static_cast<std::size_t>(count));
      // A model need not read its scenario to the end.
      if (count < 0 && errno != EAGAIN) input = {};
      if (input.empty()) in.close(1);
    }
  }
  return true;
}

[[noreturn]] void become(const std::vector<char*>& words, const char* directory, Pipe& in, Pipe& out, Pipe& err) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  ::setpgid(0, 0);
  ::signal(SIGPIPE, SIG_DFL);
  ::dup2(in.ends[0], STDIN_FILENO);
  ::dup2(out.ends[1], STDOUT_FILENO);
  ::dup2(err.ends[1], STDERR_FILENO);
  if (::chdir(directory) == 0) ::execvp(words.front(), words.data());
  const char* const reason = std::strerror(errno);
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, reason, std::strlen(reason));
  ::_exit(kCannotStart);
}

std::string end_text(int state) {
  if (WIFSIGNALED(state)) return fmt::format("ended by signal {}", WTERMSIG(state));
  return fmt::format("exit status {}", WEXITSTATUS(state));
}

}  // namespace

PredictionTable::PredictionTable(const std::filesystem::path& path) : path_(path) {
  const report::CsvTable table(path);
  const std::size_t point = table.column("point"), cycles = table.column("cycles");
  for (std::size_t row = 0; row < table.rows(); ++row) {
    const auto value = positive_number(table.text(row, cycles));
    answers_[table.whole(row, point)] =
        value
            ? ModelAnswer{value, std::nullopt, {}}
            : failed(fmt::format("{}: '{}' is no number of cycles above 0", path.filename().string(), table.text(row, cycles)));
  }
}

ModelAnswer PredictionTable::answer(std::uint64_t point) const {
  const auto found = answers_.find(point);
  return found != answers_.end() ? found->second : failed(fmt::format("{} has no point {}", path_.filename().string(), point));
}

ModelAnswer parse_answer(const std::string& text) {
  if (const auto value = positive_number(text)) return {value, std::nullopt, {}};
  const auto json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || !json.contains("cycles") || !json["cycles"].is_number() || json["cycles"].get<double>() <= 0) {
    return failed(
        fmt::format("printed '{}'; a number of cycles above 0 or a JSON object with 'cycles' is wanted", shown(text)));
  }
  ModelAnswer answer{json["cycles"].get<double>(), std::nullopt, {}};
  try {
    if (json.contains("breakdown")) answer.parts = report::cycle_parts(text);
  } catch (const IoError& error) {
    return failed(error.what());
  }
  return answer;
}

ModelAnswer ask_program(const config::StudyModel& model, const std::filesystem::path& directory, std::uint64_t point,
                        const std::string& scenario) {
  std::vector<std::string> words = model.command;
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  ::setenv("WAFERSIM_POINT", std::to_string(point).c_str(), 1);
  ::signal(SIGPIPE, SIG_IGN);
  Pipe in, out, err;
  Program program;
  program.id = ::fork();
  if (program.id < 0) throw IoError(fmt::format("cannot start a process: {}", std::strerror(errno)));
  if (program.id == 0) become(pointers, directory.c_str(), in, out, err);
  ::setpgid(program.id, program.id);
  in.close(0);
  out.close(1);
  err.close(1);
  ::fcntl(in.ends[1], F_SETFL, O_NONBLOCK);
  const auto deadline =
      Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(model.timeout_seconds));
  std::string printed, complaints;
  const bool over = exchange(in, out, err, scenario, deadline, printed, complaints) && program.wait(deadline);
  if (!over) {
    program.end();
    if (printed.size() > kMostOutput || complaints.size() > kMostOutput) return failed("printed more than 1 MiB");
    return failed(fmt::format("no answer within {:g} s", model.timeout_seconds));
  }
  if (!WIFEXITED(program.state) || WEXITSTATUS(program.state) != 0) {
    const std::string why = shown(complaints);
    return failed(end_text(program.state) + (why.empty() ? "" : ": " + why));
  }
  return parse_answer(printed);
}

}  // namespace wafersim::apps
