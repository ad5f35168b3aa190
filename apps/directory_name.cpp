#include "apps/directory_name.h"

#include <cctype>

namespace wafersim::apps {

std::string directory_name(const std::string& name) {
  std::string result;
  for (const char c : name) {
    const bool plain = std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_' || c == '.';
    result += plain ? c : '_';
  }
  const bool special = result.empty() || result == "." || result == "..";
  return special ? "scenario" : result;
}

}  // namespace wafersim::apps
