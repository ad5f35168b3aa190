#pragma once

#include <cstdint>
#include <initializer_list>

#include "models/transformer.h"

namespace wafersim::workloads::numeric {

/// Independent seeded streams of numbers.
enum class Stream : std::uint64_t { parameters = 1, tokens, labels, inputs, output_gradients };
/// In [0, 1), a hash of the stream and the place in it.
double random_value(Stream stream, std::initializer_list<std::uint64_t> place);

/// What a model is trained on in one iteration, by sequence of the global batch and position.
struct Batch {
  const models::TransformerSpec& model;
  std::uint64_t iteration = 0;

  std::uint64_t token(std::uint64_t sequence, std::uint64_t position) const;
  std::uint64_t label(std::uint64_t sequence, std::uint64_t position) const;
  /// Of models without embedding: the input of the first layer.
  double input(std::uint64_t sequence, std::uint64_t position, std::uint64_t column) const;
  /// Of models without head: the gradient of the last layer's output.
  double output_gradient(std::uint64_t sequence, std::uint64_t position, std::uint64_t column) const;
};

}  // namespace wafersim::workloads::numeric
