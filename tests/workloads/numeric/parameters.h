#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "models/transformer.h"
#include "tests/workloads/numeric/matrix.h"

namespace wafersim::workloads::numeric {

/// The matrices of a model. Weights are input x output width; vectors have one row.
enum class Part : std::uint8_t {
  gain1,  ///< of the norm before attention, 1 x hidden
  shift1,
  gain2,  ///< before the MLP
  shift2,
  qkv,  ///< hidden x (q, then k, then v)
  attention_output,
  mlp_up,  ///< hidden x (up, then gate); of each expert
  mlp_down,
  router,  ///< hidden x experts
  qkv_bias,
  attention_output_bias,
  mlp_up_bias,
  mlp_down_bias,
  positions,  ///< context x hidden
  table,      ///< vocabulary x hidden
  final_gain,
  final_shift,
  head_table  ///< unless tied
};

/// One parameter of a layer.
struct ParameterId {
  Part part = Part::gain1;
  std::uint64_t row = 0;
  std::uint64_t col = 0;
  std::uint64_t expert = 0;  ///< of mlp_up and mlp_down: whose
  bool operator==(const ParameterId&) const = default;
};

/// All parameters of an unpartitioned model as one vector. Layer -1 is the embedding, the number of layers
/// the head.
class Parameters {
 public:
  explicit Parameters(const models::TransformerSpec& model);
  std::size_t count() const { return count_; }
  /// Nothing for padding of the vocabulary.
  std::optional<std::size_t> index(int layer, const ParameterId& id) const;
  /// Seeded values: gains around 1, all others around 0.
  std::vector<double> initial() const;

  /// A matrix out of a vector of all parameters; empty when the model has none of that name.
  Matrix get(const std::vector<double>& values, int layer, Part part, std::uint64_t expert = 0) const;
  void add(std::vector<double>& values, int layer, Part part, const Matrix& what, std::uint64_t expert = 0) const;

 private:
  struct Place {
    std::size_t first = 0;
    std::uint64_t rows = 0;
    std::uint64_t cols = 0;
  };
  void place(int layer, Part part, std::int64_t rows, std::int64_t cols, std::uint64_t expert = 0);

  std::map<std::tuple<int, Part, std::uint64_t>, Place> places_;
  std::size_t count_ = 0;
};

}  // namespace wafersim::workloads::numeric
