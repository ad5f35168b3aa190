#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace wafersim::apps {

/// Programs that run beside this one, each known by a number. They are killed when this process ends, however it ends.
class ChildProcesses {
 public:
  struct Ended {
    std::uint64_t number = 0;
    int status = 0;  ///< exit status; 128 + signal when one ended it
  };

  ChildProcesses() = default;
  ~ChildProcesses();
  ChildProcesses(const ChildProcesses&) = delete;
  ChildProcesses& operator=(const ChildProcesses&) = delete;

  /// Starts this program with these arguments. Its standard output is dropped, its standard error goes into `errors`.
  /// Throws IoError when it cannot be started.
  void start(std::uint64_t number, const std::vector<std::string>& arguments, const std::filesystem::path& errors);
  /// Waits for one to end; nothing when none did within a moment.
  std::optional<Ended> wait();
  std::size_t running() const { return running_.size(); }
  /// Ends all, as by an interrupt, and waits until they have.
  void end_all();

 private:
  std::map<int, std::uint64_t> running_;  ///< by process id
};

/// The error that a program of ours wrote into its log before it ended with that status, without the prefix; at most 4000
/// characters.
std::string error_of(const std::filesystem::path& log, int status);

}  // namespace wafersim::apps
