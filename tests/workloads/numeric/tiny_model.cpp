#include "tests/workloads/numeric/tiny_model.h"

namespace wafersim::workloads::numeric {

models::TransformerSpec tiny_model() {
  models::TransformerSpec model;
  model.name = "tiny";
  model.layers = 2;
  model.hidden = 16;
  model.heads = model.kv_heads = 4;
  model.head_dim = 4;
  model.ffn = 20;
  model.vocab = 23;
  model.context = 10;
  model.sequence = 8;
  return model;
}

void make_tiny_llama(models::TransformerSpec& model) {
  model.kv_heads = 2;
  model.mlp = models::Mlp::swiglu;
  model.norm = models::Norm::rmsnorm;
  model.positions = models::Positions::rotary;
  model.linear_bias = false;
}

void make_tiny_mixtral(models::TransformerSpec& model) {
  make_tiny_llama(model);
  model.experts = 4;
  model.top_k = 2;
}

}  // namespace wafersim::workloads::numeric
