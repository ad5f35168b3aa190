#include "report/packed.h"

#include <algorithm>
#include <cmath>

namespace wafersim::report {

std::string base64(std::span<const std::uint8_t> bytes) {
  constexpr char kDigits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text((bytes.size() + 2) / 3 * 4, '=');
  char* out = text.data();
  for (std::size_t i = 0; i < bytes.size(); i += 3, out += 4) {
    const std::size_t count = std::min<std::size_t>(3, bytes.size() - i);
    std::uint32_t group = std::uint32_t{bytes[i]} << 16;
    if (count > 1) group |= std::uint32_t{bytes[i + 1]} << 8;
    if (count > 2) group |= bytes[i + 2];
    for (unsigned digit = 0; digit <= count; ++digit) out[digit] = kDigits[group >> (18 - 6 * digit) & 63U];
  }
  return text;
}

std::uint8_t in_255ths(double part, double whole) {
  if (whole <= 0 || part <= 0) return 0;
  return static_cast<std::uint8_t>(std::clamp(std::lround(255 * part / whole), 1L, 255L));
}

}  // namespace wafersim::report
