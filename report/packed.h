#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace wafersim::report {

/// RFC 4648, with padding.
std::string base64(std::span<const std::uint8_t> bytes);

/// `part` / `whole` in 255ths, rounded; 0 when `whole` is 0. What is above 1 counts as 1, and what is not
/// nothing is never 0.
std::uint8_t in_255ths(double part, double whole);

}  // namespace wafersim::report
