#include "tests/sim/isolated.h"

#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <exception>
#include <sstream>
#include <stdexcept>

namespace wafersim::test {
namespace {

// The first byte that a child sends.
constexpr char kValue = 'V';
constexpr char kFailure = 'E';

void write_all(int file, const std::string& text) {
  std::size_t done = 0;
  while (done < text.size()) {
    const ssize_t written = write(file, text.data() + done, text.size() - done);
    if (written <= 0) return;
    done += static_cast<std::size_t>(written);
  }
}

std::string read_all(int file) {
  std::string text;
  std::array<char, 4096> part{};
  while (true) {
    const ssize_t count = read(file, part.data(), part.size());
    if (count <= 0) return text;
    text.append(part.data(), static_cast<std::size_t>(count));
  }
}

[[noreturn]] void run_child(int file, const std::function<std::string()>& work) {
  std::string answer;
  try {
    answer = kValue + work();
  } catch (const std::exception& error) {
    answer = kFailure + std::string(error.what());
  }
  write_all(file, answer);
  _exit(0);  // nothing of the parent's is torn down twice
}

}  // namespace

std::string isolated_text(const std::function<std::string()>& work) {
  std::array<int, 2> ends{};
  if (pipe(ends.data()) != 0) throw std::runtime_error("cannot make a pipe");
  const pid_t child = fork();
  if (child < 0) throw std::runtime_error("cannot start a process");
  if (child == 0) {
    close(ends[0]);
    run_child(ends[1], work);
  }
  close(ends[1]);
  const std::string answer = read_all(ends[0]);
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  if (answer.empty() || !WIFEXITED(status) || WEXITSTATUS(status) != 0)
    throw std::runtime_error("the child process died");
  if (answer.front() == kFailure) throw std::runtime_error(answer.substr(1));
  return answer.substr(1);
}

std::vector<std::uint64_t> isolated_numbers(const std::function<std::vector<std::uint64_t>()>& work) {
  std::istringstream text(isolated_text([&] {
    std::ostringstream out;
    for (const std::uint64_t number : work()) out << number << ' ';
    return out.str();
  }));
  std::vector<std::uint64_t> numbers;
  for (std::uint64_t number = 0; text >> number;) numbers.push_back(number);
  return numbers;
}

std::uint64_t isolated_number(const std::function<std::uint64_t()>& work) {
  return isolated_numbers([&] { return std::vector<std::uint64_t>{work()}; }).at(0);
}

}  // namespace wafersim::test
