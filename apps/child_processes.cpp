#include "apps/child_processes.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <fstream>
#include <string_view>
#include <thread>

#include "base/error.h"
#include "report/csv_table.h"

namespace wafersim::apps {
namespace {

constexpr int kCannotStart = 127;

/// In the new process; does not return.
[[noreturn]] void become(std::vector<char*>& arguments, const char* errors, pid_t parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(kCannotStart);  // it ended before that was known
  std::signal(SIGINT, SIG_DFL);
  std::signal(SIGTERM, SIG_DFL);
  const int nothing = ::open("/dev/null", O_RDWR);
  const int log = ::open(errors, O_WRONLY | O_CREAT | O_TRUNC, 0644);
  if (nothing < 0 || log < 0) ::_exit(kCannotStart);
  ::dup2(nothing, STDIN_FILENO);
  ::dup2(nothing, STDOUT_FILENO);
  ::dup2(log, STDERR_FILENO);
  ::execv("/proc/self/exe", arguments.data());
  ::_exit(kCannotStart);
}

}  // namespace

ChildProcesses::~ChildProcesses() {
  for (const auto& [id, number] : running_) ::kill(id, SIGKILL);
  for (const auto& [id, number] : running_) ::waitpid(id, nullptr, 0);
}

void ChildProcesses::start(std::uint64_t number, const std::vector<std::string>& arguments,
                           const std::filesystem::path& errors) {
  std::vector<std::string> words{"wafersim"};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  const pid_t parent = ::getpid();
  const pid_t id = ::fork();
  if (id < 0) throw IoError(fmt::format("cannot start a process: {}", std::strerror(errno)));
  if (id == 0) become(pointers, errors.c_str(), parent);
  running_[id] = number;
}

/// Looks now and then: a wait without end would not notice an interrupt of this process alone.
std::optional<ChildProcesses::Ended> ChildProcesses::wait() {
  constexpr std::chrono::milliseconds kMoment(5);
  int state = 0;
  const pid_t id = ::waitpid(-1, &state, WNOHANG);
  const auto found = running_.find(id);
  if (id <= 0 || found == running_.end()) {
    std::this_thread::sleep_for(kMoment);
    return std::nullopt;
  }
  const Ended ended{found->second, WIFEXITED(state) ? WEXITSTATUS(state) : 128 + WTERMSIG(state)};
  running_.erase(found);
  return ended;
}

void ChildProcesses::end_all() {
  for (const auto& [id, number] : running_) ::kill(id, SIGTERM);
  while (running() != 0) wait();
}

std::string error_of(const std::filesystem::path& log, int status) {
  constexpr std::size_t kMaxMessage = 4000;
  constexpr std::string_view kPrefix = "wafersim: error: ";
  std::ifstream lines(log);
  std::string message;
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with(kPrefix)) continue;
    if (!message.empty()) message += '\n';
    message += line.substr(kPrefix.size());
  }
  if (message.empty()) {
    message = status > 128 ? fmt::format("ended by signal {}", status - 128) : fmt::format("exit status {}", status);
  }
  if (message.size() > kMaxMessage) message = message.substr(0, kMaxMessage) + "...";
  return message;
}

}  // namespace wafersim::apps
