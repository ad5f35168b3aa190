#include "apps/progress_bar.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "base/text.h"

namespace wafersim::apps {
namespace {

constexpr int kBarColumns = 24;
/// Less than this is too little to extrapolate from.
constexpr double kSmallestFraction = 0.01;
constexpr const char* kClearLine = "\r\033[K";

/// "1:02:03", "2:03" or "3.4 s".
std::string clock_text(double seconds) {
  if (seconds < 60) return fmt::format("{:.1f} s", seconds);
  const auto whole = static_cast<std::int64_t>(std::llround(seconds));
  if (whole < 3600) return fmt::format("{}:{:02}", whole / 60, whole % 60);
  return fmt::format("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60);
}

}  // namespace

std::string progress_line(const sim::Progress& progress, double elapsed) {
  const double fraction = std::clamp(progress.fraction, 0.0, 1.0);
  const auto filled = static_cast<std::size_t>(fraction * kBarColumns);
  const std::string bar = std::string(filled, '#') + std::string(kBarColumns - filled, '-');
  const std::string left = fraction < kSmallestFraction
                               ? std::string("...")
                               : "about " + clock_text(elapsed * (1 - fraction) / fraction) + " left";
  return fmt::format("[{}] {:3.0f} %  cycle {}  {}, {}", bar, 100 * fraction, human_count(progress.cycle),
                     clock_text(elapsed), left);
}

ProgressBar::ProgressBar(bool wanted)
    : shown_(wanted && isatty(STDERR_FILENO) != 0), start_(std::chrono::steady_clock::now()) {}

ProgressBar::~ProgressBar() {
  if (shown_) std::fputs(kClearLine, stderr);
}

void ProgressBar::update(const sim::Progress& progress) {
  if (!shown_) return;
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start_;
  std::fprintf(stderr, "%s%s", kClearLine, progress_line(progress, elapsed.count()).c_str());
  std::fflush(stderr);
}

}  // namespace wafersim::apps
