#pragma once

#include <filesystem>
#include <string>

namespace wafersim::testing {

/// What a finished program left.
struct Outcome {
  int status = -1;  ///< exit status; 128 + signal when one ended it
  std::string out;  ///< standard output
  std::string err;  ///< standard error
};

/// A directory of the test that runs, removed at the end; the program runs in it.
class Workplace {
 public:
  Workplace();
  ~Workplace();
  Workplace(const Workplace&) = delete;
  Workplace& operator=(const Workplace&) = delete;

  const std::filesystem::path& path() const { return path_; }
  void write(const std::string& name, const std::string& text) const;
  std::string read(const std::string& name) const;
  bool has(const std::string& name) const { return std::filesystem::exists(path_ / name); }
  /// Runs the built wafersim by the shell with these arguments.
  Outcome wafersim(const std::string& arguments) const;
  /// A shell command in which $WAFERSIM is the program.
  Outcome shell(const std::string& command) const;

 private:
  std::filesystem::path path_;
};

/// A scenario of four tiles that is simulated in no time: tp 2, pp 2.
extern const char* const kSmallScenario;

}  // namespace wafersim::testing
