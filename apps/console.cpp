#include "apps/console.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "base/error.h"

namespace wafersim::apps {
namespace {

void print_lines(const char* prefix, std::string_view text) {
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    const std::string line(text.substr(0, end));
    std::fprintf(stderr, "%s%s\n", prefix, line.c_str());
    text = end == std::string_view::npos ? std::string_view{} : text.substr(end + 1);
  }
}

/// The first of the variables that decide the character set which is set.
std::string locale_name() {
  for (const char* variable : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const char* value = std::getenv(variable);
    if (value != nullptr && *value != '\0') return value;
  }
  return {};
}

bool locale_is_utf8() {
  const std::string name = locale_name();
  return name.find("UTF-8") != std::string::npos || name.find("utf8") != std::string::npos ||
         name.find("utf-8") != std::string::npos;
}

}  // namespace

void print_error(std::string_view text) { print_lines("wafersim: error: ", text); }

void print_warning(std::string_view text) { print_lines("wafersim: warning: ", text); }

void print(std::string_view text) {
  const bool written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size();
  if (!written || std::fflush(stdout) != 0) {
    throw IoError(std::string("cannot write to standard output: ") + std::strerror(errno));
  }
}

report::TerminalStyle terminal_style() {
  report::TerminalStyle style;
  style.unicode = locale_is_utf8();
  if (isatty(STDOUT_FILENO) == 0) return style;
  style.colour = std::getenv("NO_COLOR") == nullptr;
  winsize size{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) style.width = size.ws_col;
  return style;
}

}  // namespace wafersim::apps
