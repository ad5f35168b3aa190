#include "apps/picture_converter.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <sstream>
#include <vector>

#include "base/error.h"
#include "report/atomic_file.h"
#include "report/csv_table.h"

namespace wafersim::apps {
namespace {

namespace fs = std::filesystem;

constexpr const char* kProgram = "rsvg-convert";

/// A directory of this process alone, removed with what is in it.
class ScratchDirectory {
 public:
  ScratchDirectory() {
    // What mkdtemp replaces: six times the letter X.
    std::string name = (fs::temp_directory_path() / "wafersim-").string() + std::string(6, 'X');
    if (::mkdtemp(name.data()) == nullptr) throw IoError(fmt::format("cannot create {}: {}", name, std::strerror(errno)));
    path_ = name;
  }
  ~ScratchDirectory() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  ScratchDirectory(const ScratchDirectory&) = delete;
  ScratchDirectory& operator=(const ScratchDirectory&) = delete;
  fs::path file(const std::string& name) const { return path_ / name; }

 private:
  fs::path path_;
};

bool in_path(const char* program) {
  const char* const path = std::getenv("PATH");
  std::istringstream folders(path == nullptr ? "" : path);
  for (std::string folder; std::getline(folders, folder, ':');) {
    if (::access((fs::path(folder) / program).c_str(), X_OK) == 0) return true;
  }
  return false;
}

/// Runs the program with its messages in `errors`; its wait status, or -1 when it cannot be started.
int run(std::vector<std::string> words, const fs::path& errors) {
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, errors.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  pid_t id = 0;
  const bool started = ::posix_spawnp(&id, words.front().c_str(), &actions, nullptr, pointers.data(), environ) == 0;
  ::posix_spawn_file_actions_destroy(&actions);
  if (!started) return -1;
  int state = 0;
  while (::waitpid(id, &state, 0) < 0) {
    if (errno != EINTR) return -1;
  }
  return state;
}

}  // namespace

bool can_convert_into(const std::string& format) { return format == "pdf" || format == "png"; }

void require_converter(const std::string& format) {
  if (in_path(kProgram)) return;
  throw IoError(fmt::format("cannot write .{}: {} is not in PATH; install it (Debian and Ubuntu: librsvg2-bin), or write .svg",
                            format, kProgram));
}

void convert_picture(const std::string& svg, const std::string& format, const fs::path& path) {
  const ScratchDirectory scratch;
  const fs::path from = scratch.file("picture.svg");
  const fs::path into = scratch.file("picture." + format);
  const fs::path errors = scratch.file("errors");
  report::write_file(from, svg);
  std::vector<std::string> words{kProgram, "--format", format, "--output", into.string()};
  // A picture's points are 96 dots per inch without this.
  if (format == "png") words.insert(words.end(), {"--zoom", "3.125"});
  words.push_back(from.string());
  if (run(words, errors) != 0 || !fs::exists(into)) {
    const std::string reason = fs::exists(errors) ? report::read_file(errors) : "";
    throw IoError(fmt::format("cannot write {}: {} failed{}{}", path.string(), kProgram, reason.empty() ? "" : ": ", reason));
  }
  report::write_file(path, report::read_file(into));
}

}  // namespace wafersim::apps
