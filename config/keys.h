#pragma once

#include <string>
#include <vector>

namespace wafersim::config {

/// One row of the key reference.
struct KeyInfo {
  std::string path;           ///< dotted
  std::string type;           ///< what may stand there; "section" for a map of keys
  std::string default_value;  ///< as a scenario would write it; "required" where there is none
  std::string doc;
  bool section = false;
  std::string shorthand;  ///< of a section: the member that a bare value stands for
};

/// Every key that a scenario may write, in the order of to_yaml, sections before their keys.
std::vector<KeyInfo> key_reference();

/// The row of a key in the table of docs/scenario.md.
std::string reference_row(const KeyInfo& key);

}  // namespace wafersim::config
