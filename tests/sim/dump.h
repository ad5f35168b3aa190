#pragma once

#include <string>

#include "sim/measurements.h"

namespace wafersim::test {

/// Everything that a run measured except the engine block, as text: equal runs have equal dumps.
std::string dump(const sim::Measurements& measurements);

/// The first line in which two texts differ, of each; empty when they are equal.
std::string first_difference(const std::string& a, const std::string& b);

}  // namespace wafersim::test
