#include "config/huggingface.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "config/yaml_source.h"

namespace wafersim::config {
namespace {

/// Turns the keys of one config.json into members of a `model` section.
class Translator {
 public:
  Translator(const nlohmann::json& config, std::string file, Problems& problems)
      : config_(config), where_{std::move(file), 0, 0}, problems_(problems) {
    section_.where = where_;
  }

  /// A positive whole number; `fallback` when absent or null.
  std::int64_t number(const char* key, std::int64_t fallback) {
    const auto found = config_.find(key);
    if (found == config_.end() || found->is_null()) return fallback;
    const bool whole = found->is_number_integer() && found->get<double>() < 9e18;
    if (whole && found->get<std::int64_t>() > 0) return found->get<std::int64_t>();
    fail(key, fmt::format("{} is not a positive whole number", found->dump()));
    return fallback;
  }

  bool flag(const char* key, bool fallback) {
    const auto found = config_.find(key);
    if (found == config_.end() || found->is_null()) return fallback;
    if (found->is_boolean()) return found->get<bool>();
    fail(key, fmt::format("{} is neither true nor false", found->dump()));
    return fallback;
  }

  void fail(const std::string& key, const std::string& message) { problems_.add(where_, key, message); }

  void set(const char* key, std::int64_t value) { add(key, ConfigNode::make_literal(std::to_string(value))); }
  void set_flag(const char* key, bool value) { add(key, ConfigNode::make_literal(value ? "true" : "false")); }
  void set_word(const char* key, const std::string& word) { add(key, ConfigNode::make_text(word)); }

  ConfigNode take() { return std::move(section_); }

 private:
  void add(const char* key, ConfigNode node) {
    node.where = where_;
    node.key_where = where_;
    section_.add_member(key, std::move(node));
  }

  const nlohmann::json& config_;
  Location where_;
  Problems& problems_;
  ConfigNode section_ = ConfigNode::make_map();
};

/// What the configuration classes of the llama family have when a file says nothing.
struct LlamaDefaults {
  std::int64_t vocab;
  std::int64_t ffn;
  std::int64_t kv_heads;  ///< 0 = as many as heads
  std::int64_t context;
};
constexpr LlamaDefaults kLlama{32'000, 11'008, 0, 2'048};
constexpr LlamaDefaults kMistral{32'000, 14'336, 8, 131'072};
constexpr LlamaDefaults kMixtral{32'000, 14'336, 8, 131'072};
constexpr LlamaDefaults kQwen2{151'936, 22'016, 32, 32'768};

/// Pre-norm RMSNorm, rotary positions, SwiGLU. A null kv_heads means heads, an absent one the class's
/// default.
void translate_llama_family(Translator& in, const nlohmann::json& config, const LlamaDefaults& defaults) {
  const std::int64_t heads = in.number("num_attention_heads", 32);
  const bool null_kv = config.contains("num_key_value_heads") && config.at("num_key_value_heads").is_null();
  const std::int64_t kv_default = null_kv || defaults.kv_heads == 0 ? heads : defaults.kv_heads;
  in.set("layers", in.number("num_hidden_layers", 32));
  in.set("hidden", in.number("hidden_size", 4'096));
  in.set("heads", heads);
  in.set("kv_heads", in.number("num_key_value_heads", kv_default));
  if (const std::int64_t head_dim = in.number("head_dim", 0); head_dim != 0) in.set("head_dim", head_dim);
  in.set("ffn", in.number("intermediate_size", defaults.ffn));
  in.set("vocab", in.number("vocab_size", defaults.vocab));
  in.set("context", in.number("max_position_embeddings", defaults.context));
  in.set_word("mlp", "swiglu");
  in.set_word("norm", "rmsnorm");
  in.set_word("positions", "rotary");
  in.set_flag("tied_embeddings", in.flag("tie_word_embeddings", false));
}

void translate_llama(Translator& in, const nlohmann::json& config) {
  translate_llama_family(in, config, kLlama);
  const bool attention_bias = in.flag("attention_bias", false);
  if (attention_bias != in.flag("mlp_bias", false)) {
    in.fail("attention_bias", "differs from mlp_bias; a bias on only one of the two is not supported");
  }
  in.set_flag("linear_bias", attention_bias);
}

void translate_mistral(Translator& in, const nlohmann::json& config) {
  translate_llama_family(in, config, kMistral);
  in.set_flag("linear_bias", false);
}

void translate_mixtral(Translator& in, const nlohmann::json& config) {
  translate_llama_family(in, config, kMixtral);
  in.set_flag("linear_bias", false);
  in.set("experts", in.number("num_local_experts", 8));
  in.set("top_k", in.number("num_experts_per_tok", 2));
}

void translate_qwen2(Translator& in, const nlohmann::json& config) {
  translate_llama_family(in, config, kQwen2);
  in.set_flag("linear_bias", false);
  in.set_flag("qkv_bias", true);
}

void translate_gpt2(Translator& in, const nlohmann::json&) {
  const std::int64_t hidden = in.number("n_embd", 768);
  in.set("layers", in.number("n_layer", 12));
  in.set("hidden", hidden);
  in.set("heads", in.number("n_head", 12));
  in.set("ffn", in.number("n_inner", 4 * hidden));
  in.set("vocab", in.number("vocab_size", 50'257));
  in.set("context", in.number("n_positions", 1'024));
  in.set_word("mlp", "gelu");
  in.set_word("norm", "layernorm");
  in.set_word("positions", "learned");
  in.set_flag("linear_bias", true);
  in.set_flag("tied_embeddings", in.flag("tie_word_embeddings", true));
}

void translate_gpt_neox(Translator& in, const nlohmann::json&) {
  in.set("layers", in.number("num_hidden_layers", 44));
  in.set("hidden", in.number("hidden_size", 6'144));
  in.set("heads", in.number("num_attention_heads", 64));
  in.set("ffn", in.number("intermediate_size", 24'576));
  in.set("vocab", in.number("vocab_size", 50'432));
  in.set("context", in.number("max_position_embeddings", 2'048));
  in.set_word("mlp", "gelu");
  in.set_word("norm", "layernorm");
  in.set_word("positions", "rotary");
  if (!in.flag("attention_bias", true)) {
    in.fail("attention_bias", "false is not supported; the MLP of gpt_neox always has biases");
  }
  in.set_flag("linear_bias", true);
  in.set_flag("parallel_residual", in.flag("use_parallel_residual", true));
  in.set_flag("tied_embeddings", in.flag("tie_word_embeddings", false));
}

/// OPT looks its learned positions up with an offset of two (OPTLearnedPositionalEmbedding).
constexpr std::int64_t kOptPositionOffset = 2;

void translate_opt(Translator& in, const nlohmann::json&) {
  const std::int64_t hidden = in.number("hidden_size", 768);
  if (const std::int64_t projected = in.number("word_embed_proj_dim", hidden); projected != hidden) {
    in.fail("word_embed_proj_dim",
            fmt::format("{} differs from hidden_size {}; projected embeddings are not supported", projected,
                        hidden));
  }
  if (!in.flag("layer_norm_elementwise_affine", true)) {
    in.fail("layer_norm_elementwise_affine", "norms without weights are not supported");
  }
  in.set("layers", in.number("num_hidden_layers", 12));
  in.set("hidden", hidden);
  in.set("heads", in.number("num_attention_heads", 12));
  in.set("ffn", in.number("ffn_dim", 3'072));
  in.set("vocab", in.number("vocab_size", 50'272));
  in.set("context", in.number("max_position_embeddings", 2'048) + kOptPositionOffset);
  in.set_word("mlp", "gelu");
  in.set_word("norm", "layernorm");
  in.set_word("positions", "learned");
  in.set_flag("linear_bias", in.flag("enable_bias", true));
  in.set_flag("final_norm",
              in.flag("do_layer_norm_before", true) && !in.flag("_remove_final_layer_norm", false));
  in.set_flag("tied_embeddings", in.flag("tie_word_embeddings", true));
}

struct ModelType {
  const char* name;
  void (*translate)(Translator&, const nlohmann::json&);
};
constexpr ModelType kModelTypes[] = {{"gpt2", translate_gpt2},   {"gpt_neox", translate_gpt_neox},
                                     {"llama", translate_llama}, {"mistral", translate_mistral},
                                     {"mixtral", translate_mixtral}, {"opt", translate_opt},
                                     {"qwen2", translate_qwen2}};

/// Line and column, from 1, of a byte of a text.
Location location_of_byte(const std::string& file, const std::string& text, std::size_t byte) {
  const auto end = text.begin() + static_cast<std::ptrdiff_t>(std::min(byte, text.size()));
  const auto lines = std::count(text.begin(), end, '\n');
  const auto line_begin = std::find(std::make_reverse_iterator(end), text.rend(), '\n').base();
  return {file, static_cast<int>(lines) + 1, static_cast<int>(end - line_begin) + 1};
}

const ModelType* find_model_type(const nlohmann::json& config, const std::string& file, Problems& problems) {
  std::vector<std::string> names;
  for (const ModelType& type : kModelTypes) names.emplace_back(type.name);
  const auto found = config.find("model_type");
  const std::string name = found != config.end() && found->is_string() ? found->get<std::string>() : "";
  for (const ModelType& type : kModelTypes) {
    if (name == type.name) return &type;
  }
  const std::string what = name.empty() ? "missing" : fmt::format("'{}' is not supported", name);
  problems.add({file, 0, 0}, "model_type", fmt::format("{}; supported: {}", what, join(names)));
  return nullptr;
}

}  // namespace

std::optional<ConfigNode> read_huggingface(const std::string& file, Problems& problems) {
  problems.register_source(file);
  const std::string text = read_file(file);
  nlohmann::json config;
  try {
    config = nlohmann::json::parse(text);
  } catch (const nlohmann::json::parse_error& error) {
    // error.byte counts from 1 and points at the last byte read.
    problems.add(location_of_byte(file, text, error.byte == 0 ? 0 : error.byte - 1), "", "JSON syntax error");
    return std::nullopt;
  }
  if (!config.is_object()) {
    problems.add({file, 1, 1}, "", "must be a JSON object");
    return std::nullopt;
  }
  const ModelType* type = find_model_type(config, file, problems);
  if (type == nullptr) return std::nullopt;
  Translator translator(config, file, problems);
  translator.set_word("name", type->name);
  type->translate(translator, config);
  return translator.take();
}

}  // namespace wafersim::config
