#pragma once

#include <string>

namespace wafersim::workloads {

/// What is wrong with a spec.
struct SpecFault {
  std::string key;      ///< of the spec, "stencil.radius"
  std::string message;  ///< the value and what would be valid
};

}  // namespace wafersim::workloads
