#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace wafersim::config {

/// What a scenario may write under one key; the single description from which it is read, written and
/// documented.
struct Key {
  std::string name;
  std::string doc;  ///< one line for the reference
  bool required = false;
  std::optional<std::int64_t> min = {};  ///< of a whole number
  std::optional<std::int64_t> max = {};
  bool positive = false;                  ///< of a quantity: zero is refused (negative ones always are)
  std::string absent = {};                ///< word that stands for "no value" ("none", "unlimited", "auto")
  std::string default_text = {};          ///< for the reference, where the default depends on other keys
  std::string shorthand = {};             ///< of a section: the member that a bare value stands for
  bool square = false;                    ///< of a shape: a bare number is the side of a square
  bool is_path = false;                   ///< a file, relative to the file that names it
  std::vector<std::string> words = {};    ///< of a text: the words it may be
};

}  // namespace wafersim::config
