#include "base/random.h"

namespace wafersim {

std::uint64_t mix_bits(std::uint64_t value) {
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9ULL;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebULL;
  return value ^ (value >> 31);
}

RandomStream::RandomStream(std::uint64_t seed, std::string_view name) {
  std::uint64_t hash = 0xcbf29ce484222325ULL;  // FNV-1a
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
  std::uint64_t state = mix_bits(seed) ^ hash;
  for (std::uint64_t& word : state_) {
    state += 0x9e3779b97f4a7c15ULL;
    word = mix_bits(state);
  }
}

std::uint64_t RandomStream::below(std::uint64_t bound) {
  const std::uint64_t limit = ~std::uint64_t{0} - (~std::uint64_t{0} % bound + 1) % bound;
  std::uint64_t value = next();
  while (value > limit) value = next();
  return value % bound;
}

}  // namespace wafersim
