#pragma once

#include "models/transformer.h"

namespace wafersim::workloads::numeric {

/// Two layers of width 16, sequences of 8 tokens of a vocabulary of 23: a GPT with biases and learned
/// positions.
models::TransformerSpec tiny_model();
/// Grouped-query attention, SwiGLU, RMSNorm, rotary positions, no biases.
void make_tiny_llama(models::TransformerSpec& model);
/// The same with four experts, of which a token passes two.
void make_tiny_mixtral(models::TransformerSpec& model);

}  // namespace wafersim::workloads::numeric
