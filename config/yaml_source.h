#pragma once

#include <optional>
#include <string>

#include "config/node.h"
#include "config/problems.h"

namespace wafersim::config {

/// The text of a file. Throws IoError when it cannot be read.
std::string read_file(const std::string& path);

/// Parses one YAML document. `origin` names the source in every location; with line 0 it has no lines of its
/// own (an override). Reports syntax errors (then the result is empty), repeated keys and keys that are not
/// plain words. `path` is the dotted key under which the document stands.
std::optional<ConfigNode> parse_yaml(const std::string& text, const Location& origin, Problems& problems,
                                     const std::string& path = "");

/// Parses the value of an override "a.b.c=value" into a tree that holds just that value; empty when it is
/// malformed.
std::optional<ConfigNode> parse_override(const std::string& text, Problems& problems);

}  // namespace wafersim::config
