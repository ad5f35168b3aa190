#pragma once

#include "config/key.h"
#include "models/transformer.h"

namespace wafersim::config {

template <class Visitor>
void fields(Visitor& visit, models::TransformerSpec& spec) {
  visit.source(
      Key{.name = "preset", .doc = "A file of `scenarios/models/`, by name or path; keys beside it win."});
  visit.source(
      Key{.name = "huggingface", .doc = "A HuggingFace config.json, instead of `preset`.", .is_path = true});
  visit(Key{.name = "name", .doc = "Name of the model in reports.", .default_text = "model"}, spec.name);
  visit(Key{.name = "layers", .doc = "Transformer layers.", .required = true, .min = 1}, spec.layers);
  visit(Key{.name = "hidden", .doc = "Width of the residual stream.", .required = true, .min = 1},
        spec.hidden);
  visit(Key{.name = "heads", .doc = "Query heads.", .required = true, .min = 1}, spec.heads);
  visit(Key{.name = "kv_heads",
            .doc = "Key and value heads; divides `heads`.",
            .min = 1,
            .default_text = "`heads`"},
        spec.kv_heads);
  visit(Key{.name = "head_dim", .doc = "Width of a head.", .min = 1, .default_text = "`hidden` / `heads`"},
        spec.head_dim);
  visit(Key{.name = "ffn", .doc = "Width of the MLP.", .required = true, .min = 1}, spec.ffn);
  visit(Key{.name = "vocab",
            .doc = "Vocabulary as counted in the parameters; needed with an embedding or a head.",
            .min = 0,
            .default_text = "required with `embedding` or `head`"},
        spec.vocab);
  visit(Key{.name = "context",
            .doc = "Positions of a learned position embedding; the longest sequence otherwise.",
            .min = 1,
            .default_text = "`sequence`; required with learned positions"},
        spec.context);
  visit(Key{.name = "sequence", .doc = "Tokens of a training sequence.", .required = true, .min = 1},
        spec.sequence);
  visit(Key{.name = "mlp", .doc = "Two matrices (gelu) or three (swiglu)."}, spec.mlp);
  visit(Key{.name = "norm", .doc = "layernorm has weight and bias, rmsnorm weight only."}, spec.norm);
  visit(Key{.name = "positions", .doc = "Only learned positions have parameters."}, spec.positions);
  visit(Key{.name = "linear_bias", .doc = "MLP and output projections have a bias."}, spec.linear_bias);
  visit(Key{.name = "qkv_bias",
            .doc = "Query, key and value projections have a bias; auto is `linear_bias`.",
            .absent = "auto"},
        spec.qkv_bias);
  visit(Key{.name = "parallel_residual", .doc = "Attention and MLP read the same input."},
        spec.parallel_residual);
  visit(Key{.name = "final_norm", .doc = "A norm between the last layer and the head."}, spec.final_norm);
  visit(Key{.name = "tied_embeddings", .doc = "The head reuses the token embedding."}, spec.tied_embeddings);
  visit(
      Key{.name = "embedding", .doc = "false: no token and position embedding, for studies of layers alone."},
      spec.embedding);
  visit(Key{.name = "head", .doc = "false: no final norm, head and loss."}, spec.head);
  visit(Key{.name = "attention", .doc = "Which scores are computed."}, spec.attention);
  visit(Key{.name = "attention_kernel", .doc = "fused keeps no sequence x sequence tensor."},
        spec.attention_kernel);
  visit(Key{.name = "experts",
            .doc = "Mixture of experts: MLPs of each layer, to which a router sends the tokens; 0: one MLP for all.",
            .min = 0,
            .max = 1024},
        spec.experts);
  visit(Key{.name = "top_k",
            .doc = "Experts that a token passes; 0 without experts.",
            .min = 0,
            .default_text = "0; required with `experts`"},
        spec.top_k);
  visit(Key{.name = "capacity_factor",
            .doc = "Slots of an expert for the tokens of a rank, in terms of an even share of their choices: more than 1 "
                   "pads, less than 1 drops tokens.",
            .positive = true},
        spec.capacity_factor);
}

}  // namespace wafersim::config
