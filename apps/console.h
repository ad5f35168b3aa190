#pragma once

#include <string_view>

#include "report/terminal.h"

namespace wafersim::apps {

/// "wafersim: error: ..." to standard error, each line of `text` with the prefix.
void print_error(std::string_view text);
/// "wafersim: warning: ..." to standard error.
void print_warning(std::string_view text);
/// Prints to standard output; throws IoError when it cannot be written.
void print(std::string_view text);

/// How to draw on standard output: colours on a terminal unless NO_COLOR is set, Unicode when the locale is
/// UTF-8, and the terminal's width.
report::TerminalStyle terminal_style();

}  // namespace wafersim::apps
