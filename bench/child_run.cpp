#include "bench/child_run.h"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <exception>
#include <stdexcept>

namespace wafersim::bench {
namespace {

ChildResult measure(const std::function<sim::Measurements()>& simulate) {
  const sim::Measurements m = simulate();
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& t) { return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec); };
  return {seconds(usage.ru_utime) + seconds(usage.ru_stime),
          m.engine.events,
          m.packet_hops,
          m.messages,
          m.cycles,
          static_cast<std::uint64_t>(usage.ru_maxrss) * 1024};
}

}  // namespace

ChildResult run_in_child(const std::function<sim::Measurements()>& simulate) {
  int channel[2];
  if (pipe(channel) != 0) throw std::runtime_error("pipe failed");
  const pid_t child = fork();
  if (child < 0) throw std::runtime_error("fork failed");
  if (child == 0) {
    int status = 1;
    try {
      const ChildResult result = measure(simulate);
      if (write(channel[1], &result, sizeof result) == sizeof result) status = 0;
    } catch (const std::exception& error) {
      std::fprintf(stderr, "%s\n", error.what());
    }
    _exit(status);
  }
  close(channel[1]);
  ChildResult result;
  const ssize_t got = read(channel[0], &result, sizeof result);
  close(channel[0]);
  int status = 0;
  waitpid(child, &status, 0);
  if (got != sizeof result || status != 0) throw std::runtime_error("the simulation failed");
  return result;
}

}  // namespace wafersim::bench
