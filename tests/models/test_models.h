#pragma once

#include "models/hardware.h"
#include "models/transformer.h"

namespace wafersim::test {

/// A GPT of the original shape: MHA, 4h GELU MLP, biases, layernorm, learned positions, tied embeddings.
inline models::TransformerSpec gpt(int layers, std::int64_t hidden, std::int64_t heads, std::int64_t vocab,
                                   std::int64_t context) {
  models::TransformerSpec model;
  model.name = "gpt";
  model.layers = layers;
  model.hidden = hidden;
  model.heads = heads;
  model.kv_heads = heads;
  model.head_dim = hidden / heads;
  model.ffn = 4 * hidden;
  model.vocab = vocab;
  model.context = context;
  model.sequence = context;
  model.tied_embeddings = true;
  model.attention_kernel = models::AttentionKernel::materialized;
  return model;
}

/// A Llama: GQA, SwiGLU, no biases, rmsnorm, rotary positions, untied head.
inline models::TransformerSpec llama(int layers, std::int64_t hidden, std::int64_t heads,
                                     std::int64_t kv_heads, std::int64_t ffn, std::int64_t vocab) {
  models::TransformerSpec model = gpt(layers, hidden, heads, vocab, 4096);
  model.name = "llama";
  model.kv_heads = kv_heads;
  model.ffn = ffn;
  model.mlp = models::Mlp::swiglu;
  model.norm = models::Norm::rmsnorm;
  model.positions = models::Positions::rotary;
  model.linear_bias = false;
  model.tied_embeddings = false;
  return model;
}

/// A machine at 1 GHz with whole rates: 256 B/cycle links, L = 4, R = 2, packets of 64 KiB, a 128x128 array.
inline models::HardwareModel plain_hardware() {
  models::WaferSpec wafer;
  wafer.mesh.shape = {8, 8};
  wafer.link.latency = Duration::of_cycles(4);
  models::RouterSpec router;
  router.pipeline = Duration::of_cycles(2);
  return models::resolve_hardware(wafer, router, models::NetworkSpec{});
}

}  // namespace wafersim::test
