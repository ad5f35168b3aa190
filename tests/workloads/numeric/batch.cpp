#include "tests/workloads/numeric/batch.h"

#include "base/random.h"

namespace wafersim::workloads::numeric {

namespace {

std::uint64_t random_below(std::int64_t limit, double value) {
  return static_cast<std::uint64_t>(value * static_cast<double>(limit));
}

}  // namespace

double random_value(Stream stream, std::initializer_list<std::uint64_t> place) {
  std::uint64_t state = mix_bits(static_cast<std::uint64_t>(stream));
  for (const std::uint64_t each : place) state = mix_bits(31 * state + each + 1);
  return static_cast<double>(state >> 11) * 0x1p-53;
}

std::uint64_t Batch::token(std::uint64_t sequence, std::uint64_t position) const {
  return random_below(model.vocab, random_value(Stream::tokens, {iteration, sequence, position}));
}

std::uint64_t Batch::label(std::uint64_t sequence, std::uint64_t position) const {
  return random_below(model.vocab, random_value(Stream::labels, {iteration, sequence, position}));
}

double Batch::input(std::uint64_t sequence, std::uint64_t position, std::uint64_t column) const {
  return 2 * random_value(Stream::inputs, {iteration, sequence, position, column}) - 1;
}

double Batch::output_gradient(std::uint64_t sequence, std::uint64_t position, std::uint64_t column) const {
  return 2 * random_value(Stream::output_gradients, {iteration, sequence, position, column}) - 1;
}

}  // namespace wafersim::workloads::numeric
