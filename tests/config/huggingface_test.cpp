#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "config/scenario.h"
#include "models/transformer.h"

namespace wafersim::config {
namespace {

namespace fs = std::filesystem;

const std::string kConfigs = WAFERSIM_SOURCE_DIR "/tests/reference/huggingface/";

class HuggingFace : public testing::Test {
 protected:
  HuggingFace()
      : directory_(fs::temp_directory_path() / ("wafersim_huggingface_" + std::to_string(getpid()))) {
    fs::create_directories(directory_);
  }
  ~HuggingFace() override { fs::remove_all(directory_); }

  models::TransformerSpec load_file(const std::string& config) const {
    const std::string path = (directory_ / "scenario.yaml").string();
    std::ofstream(path) << "wafer: {mesh: 4x4}\nmodel: {huggingface: " << config << ", sequence: 512}\n";
    return load_scenario(path).model;
  }
  models::TransformerSpec load_json(const std::string& text) const {
    std::ofstream(directory_ / "config.json") << text;
    return load_file("config.json");
  }

  fs::path directory_;
};

std::uint64_t parameters(const models::TransformerSpec& model) {
  return models::count_parameters(model).total(model.layers);
}

struct Published {
  const char* name;
  std::uint64_t parameters;
};

TEST_F(HuggingFace, ParameterCountsAreThePublishedOnes) {
  constexpr Published models[] = {
      {"llama2-7b", 6'738'415'616},  {"llama2-13b", 13'015'864'320}, {"llama2-70b", 68'976'648'192},
      {"llama3-8b", 8'030'261'248},  {"llama3-70b", 70'553'706'496}, {"llama3.1-405b", 405'853'388'800},
      {"mistral-7b", 7'241'732'096}, {"mixtral-8x7b", 46'702'792'704}, {"gpt2", 124'439'808},          {"gpt-neox-20b", 20'554'567'680},
      {"qwen2-7b", 7'615'616'512},   {"opt-6.7b", 6'658'473'984}};
  for (const Published& model : models) {
    EXPECT_EQ(parameters(load_file(kConfigs + model.name + ".json")), model.parameters) << model.name;
  }
}

TEST_F(HuggingFace, ReadsTheShapeOfALlama) {
  const models::TransformerSpec model = load_file(kConfigs + "llama3.1-405b.json");
  EXPECT_EQ(model.name, "llama");
  EXPECT_EQ(model.layers, 126);
  EXPECT_EQ(model.hidden, 16384);
  EXPECT_EQ(model.heads, 128);
  EXPECT_EQ(model.kv_heads, 8);
  EXPECT_EQ(model.head_dim, 128);
  EXPECT_EQ(model.ffn, 53248);
  EXPECT_EQ(model.vocab, 128256);
  EXPECT_EQ(model.context, 131072);
  EXPECT_EQ(model.sequence, 512);
  EXPECT_EQ(model.mlp, models::Mlp::swiglu);
  EXPECT_EQ(model.norm, models::Norm::rmsnorm);
  EXPECT_EQ(model.positions, models::Positions::rotary);
  EXPECT_FALSE(model.linear_bias);
  EXPECT_FALSE(model.tied_embeddings);
}

TEST_F(HuggingFace, ArchitecturesDifferWhereTheyShould) {
  const models::TransformerSpec neox = load_file(kConfigs + "gpt-neox-20b.json");
  EXPECT_TRUE(neox.parallel_residual);
  EXPECT_TRUE(neox.linear_bias);
  EXPECT_EQ(neox.positions, models::Positions::rotary);
  const models::TransformerSpec qwen = load_file(kConfigs + "qwen2-7b.json");
  EXPECT_FALSE(qwen.linear_bias);
  EXPECT_TRUE(qwen.has_qkv_bias());
  const models::TransformerSpec mixtral = load_file(kConfigs + "mixtral-8x7b.json");
  EXPECT_EQ(mixtral.experts, 8);
  EXPECT_EQ(mixtral.top_k, 2);
  EXPECT_EQ(mixtral.capacity_factor, Rational(1));
  EXPECT_EQ(mixtral.context, 32768);
  const models::TransformerSpec opt = load_file(kConfigs + "opt-6.7b.json");
  EXPECT_EQ(opt.context, 2050);
  EXPECT_TRUE(opt.tied_embeddings);
  const models::TransformerSpec gpt2 = load_file(kConfigs + "gpt2.json");
  EXPECT_EQ(gpt2.ffn, 3072);
  EXPECT_TRUE(gpt2.tied_embeddings);
  EXPECT_EQ(gpt2.positions, models::Positions::learned);
}

TEST_F(HuggingFace, AbsentKeysTakeTheDefaultsOfTheConfigurationClass) {
  const models::TransformerSpec llama = load_json(R"({"model_type": "llama"})");
  EXPECT_EQ(parameters(llama), 6'738'415'616U);
  EXPECT_EQ(llama.context, 2048);
  const models::TransformerSpec mistral = load_json(R"({"model_type": "mistral"})");
  EXPECT_EQ(parameters(mistral), 7'241'732'096U);
  EXPECT_EQ(mistral.context, 131072);
  EXPECT_EQ(parameters(load_json(R"({"model_type": "mixtral"})")), 46'702'792'704U);
  EXPECT_EQ(parameters(load_json(R"({"model_type": "gpt2"})")), 124'439'808U);
  EXPECT_EQ(parameters(load_json(R"({"model_type": "gpt_neox"})")), 20'554'567'680U);
  // OPT-125M is the class's default.
  EXPECT_EQ(parameters(load_json(R"({"model_type": "opt"})")), 125'239'296U);
  const models::TransformerSpec qwen = load_json(R"({"model_type": "qwen2"})");
  EXPECT_EQ(qwen.vocab, 151936);
  EXPECT_EQ(qwen.ffn, 22016);
  EXPECT_EQ(qwen.kv_heads, 32);
}

TEST_F(HuggingFace, NullKeyValueHeadsAreTheHeads) {
  EXPECT_EQ(load_json(R"({"model_type": "mistral", "num_key_value_heads": null})").kv_heads, 32);
  EXPECT_EQ(load_json(R"({"model_type": "llama", "num_attention_heads": 16})").kv_heads, 16);
}

TEST_F(HuggingFace, OptionalPartsAreRead) {
  EXPECT_EQ(load_json(R"({"model_type": "mistral", "hidden_size": 5120, "head_dim": 128})").head_dim, 128);
  EXPECT_TRUE(load_json(R"({"model_type": "llama", "attention_bias": true, "mlp_bias": true})").linear_bias);
  EXPECT_TRUE(load_json(R"({"model_type": "qwen2", "tie_word_embeddings": true})").tied_embeddings);
  EXPECT_FALSE(load_json(R"({"model_type": "opt", "enable_bias": false})").linear_bias);
  EXPECT_FALSE(load_json(R"({"model_type": "opt", "do_layer_norm_before": false})").final_norm);
  EXPECT_EQ(load_json(R"({"model_type": "gpt2", "n_inner": 100})").ffn, 100);
}

TEST_F(HuggingFace, KeysOfTheScenarioWin) {
  std::ofstream(directory_ / "config.json") << R"({"model_type": "gpt2"})";
  const std::string path = (directory_ / "scenario.yaml").string();
  std::ofstream(path)
      << "wafer: {mesh: 4x4}\nmodel: {huggingface: config.json, sequence: 512, layers: 3, name: tiny}\n";
  const Scenario scenario = load_scenario(path);
  EXPECT_EQ(scenario.model.layers, 3);
  EXPECT_EQ(scenario.model.name, "tiny");
  const std::string resolved = to_yaml(scenario);
  std::ofstream(path) << resolved;
  EXPECT_EQ(to_yaml(load_scenario(path)), resolved);
}

}  // namespace
}  // namespace wafersim::config
