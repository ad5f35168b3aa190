#pragma once

#include <bit>
#include <cstdint>
#include <string_view>

namespace wafersim {

/// A deterministic stream of random numbers: the same on every machine and compiler. Every component draws from a
/// stream of its own, made from the scenario's seed and the component's name.
class RandomStream {
 public:
  RandomStream(std::uint64_t seed, std::string_view name);

  std::uint64_t next() {
    const std::uint64_t result = std::rotl(state_[1] * 5, 7) * 9;
    const std::uint64_t shifted = state_[1] << 17;
    state_[2] ^= state_[0];
    state_[3] ^= state_[1];
    state_[1] ^= state_[2];
    state_[0] ^= state_[3];
    state_[2] ^= shifted;
    state_[3] = std::rotl(state_[3], 45);
    return result;
  }
  /// Uniform in [0, bound); bound > 0. Unbiased by rejection.
  std::uint64_t below(std::uint64_t bound);
  /// Uniform in [0, 1) with 53 bits.
  double unit() { return static_cast<double>(next() >> 11) * 0x1.0p-53; }

 private:
  std::uint64_t state_[4];  // xoshiro256**, Blackman & Vigna 2018
};

/// Mixes the bits of a 64-bit value (the finalizer of splitmix64).
std::uint64_t mix_bits(std::uint64_t value);

}  // namespace wafersim
