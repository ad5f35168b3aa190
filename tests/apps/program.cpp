#include "tests/apps/program.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <fstream>
#include <sstream>

namespace wafersim::testing {

const char* const kSmallScenario = R"(name: small
wafer:
  mesh: 2x2
  clock: 1 GHz
  sram: {capacity: 64 MiB}
  link: {bandwidth: 64 B/cycle, latency: 1 cycles}
network: {packet_bytes: 4 KiB}
model: {layers: 2, hidden: 64, heads: 4, ffn: 256, vocab: 128, context: 32, sequence: 32}
training: {global_batch: 2, microbatch: 1}
plan: {tp: 2, pp: 2}
)";

Workplace::Workplace() {
  const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
  path_ =
      std::filesystem::path(::testing::TempDir()) / ("wafersim_" + std::string(test->test_suite_name()) +
                                                     "_" + test->name() + "_" + std::to_string(::getpid()));
  std::filesystem::remove_all(path_);
  std::filesystem::create_directories(path_);
}

Workplace::~Workplace() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

void Workplace::write(const std::string& name, const std::string& text) const {
  std::ofstream(path_ / name, std::ios::binary) << text;
}

std::string Workplace::read(const std::string& name) const {
  const std::ifstream file(path_ / name, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

Outcome Workplace::wafersim(const std::string& arguments) const {
  return shell("\"$WAFERSIM\" " + arguments);
}

Outcome Workplace::shell(const std::string& command) const {
  const std::string line = "cd '" + path_.string() + "' && WAFERSIM='" WAFERSIM_PROGRAM "' && { " + command +
                           "; } 2>.standard_error";
  Outcome outcome;
  std::FILE* pipe = ::popen(line.c_str(), "r");
  if (pipe == nullptr) return outcome;
  std::array<char, 4096> buffer{};
  for (std::size_t count = 0; (count = std::fread(buffer.data(), 1, buffer.size(), pipe)) > 0;) {
    outcome.out.append(buffer.data(), count);
  }
  const int status = ::pclose(pipe);
  outcome.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  outcome.err = read(".standard_error");
  return outcome;
}

}  // namespace wafersim::testing
