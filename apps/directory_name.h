#pragma once

#include <string>

namespace wafersim::apps {

/// A scenario's or study's name as the name of a directory.
std::string directory_name(const std::string& name);

}  // namespace wafersim::apps
