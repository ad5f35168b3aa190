#pragma once

#include <cstdint>

namespace wafersim::workloads {

/// What a key says of the microbatch and iteration of its step, and the rest of it.
struct KeyParts {
  std::uint64_t rest = 0;
  std::int32_t microbatch = -1;
  std::uint32_t iteration = 0;          ///< modulo the next
  std::uint32_t iteration_modulus = 0;  ///< 16 (scope `step`) or 65536
};
KeyParts key_parts(std::uint64_t key);
/// The key of the same message so many microbatches and iterations later; a step without a microbatch keeps none.
std::uint64_t shifted_key(std::uint64_t key, std::int32_t microbatches, std::int32_t iterations);

}  // namespace wafersim::workloads
