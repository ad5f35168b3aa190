#include "tests/workloads/numeric/parameters.h"

#include <algorithm>

#include "base/error.h"
#include "tests/workloads/numeric/batch.h"

namespace wafersim::workloads::numeric {

Parameters::Parameters(const models::TransformerSpec& model) {
  const bool shifts = model.norm == models::Norm::layernorm;
  const std::int64_t h = model.hidden, qkv = model.q_width() + 2 * model.kv_width();
  const std::int64_t up = model.ffn * (model.mlp == models::Mlp::swiglu ? 2 : 1);
  if (model.embedding) {
    if (model.positions == models::Positions::learned) place(-1, Part::positions, model.context, h);
    place(-1, Part::table, model.vocab, h);
  }
  for (int layer = 0; layer < model.layers; ++layer) {
    for (const Part gain : {Part::gain1, Part::gain2}) place(layer, gain, 1, h);
    if (shifts) {
      for (const Part shift : {Part::shift1, Part::shift2}) place(layer, shift, 1, h);
    }
    place(layer, Part::qkv, h, qkv);
    place(layer, Part::attention_output, model.q_width(), h);
    for (std::uint64_t expert = 0; expert < static_cast<std::uint64_t>(std::max<std::int64_t>(model.experts, 1)); ++expert) {
      place(layer, Part::mlp_up, h, up, expert);
      place(layer, Part::mlp_down, model.ffn, h, expert);
    }
    if (model.routes()) place(layer, Part::router, h, model.experts);
    if (model.has_qkv_bias()) place(layer, Part::qkv_bias, 1, qkv);
    if (!model.linear_bias) continue;
    place(layer, Part::attention_output_bias, 1, h);
    place(layer, Part::mlp_up_bias, 1, up);
    place(layer, Part::mlp_down_bias, 1, h);
  }
  if (!model.head) return;
  if (model.final_norm) {
    place(model.layers, Part::final_gain, 1, h);
    if (shifts) place(model.layers, Part::final_shift, 1, h);
  }
  if (!model.tied_embeddings || !model.embedding) place(model.layers, Part::head_table, model.vocab, h);
}

void Parameters::place(int layer, Part part, std::int64_t rows, std::int64_t cols, std::uint64_t expert) {
  const Place made{count_, static_cast<std::uint64_t>(rows), static_cast<std::uint64_t>(cols)};
  places_[{layer, part, expert}] = made;
  count_ += made.rows * made.cols;
}

std::optional<std::size_t> Parameters::index(int layer, const ParameterId& id) const {
  const auto found = places_.find({layer, id.part, id.expert});
  if (found == places_.end()) throw InternalError("a parameter that the model has not");
  const Place& place = found->second;
  if (id.col >= place.cols) throw InternalError("a parameter outside its matrix");
  if (id.row >= place.rows) return std::nullopt;
  return place.first + id.row * place.cols + id.col;
}

std::vector<double> Parameters::initial() const {
  std::vector<double> values(count_);
  for (const auto& [key, place] : places_) {
    const Part part = std::get<Part>(key);
    const bool gain = part == Part::gain1 || part == Part::gain2 || part == Part::final_gain;
    for (std::size_t i = place.first; i < place.first + place.rows * place.cols; ++i) {
      values[i] = (gain ? 1 : 0) + 0.8 * random_value(Stream::parameters, {i}) - 0.4;
    }
  }
  return values;
}

Matrix Parameters::get(const std::vector<double>& values, int layer, Part part, std::uint64_t expert) const {
  const auto found = places_.find({layer, part, expert});
  if (found == places_.end()) return {};
  const Place& place = found->second;
  Matrix result(place.rows, place.cols);
  for (std::size_t i = 0; i < result.data.size(); ++i) result.data[i] = values[place.first + i];
  return result;
}

void Parameters::add(std::vector<double>& values, int layer, Part part, const Matrix& what,
                     std::uint64_t expert) const {
  const auto found = places_.find({layer, part, expert});
  if (found == places_.end()) return;
  for (std::size_t i = 0; i < what.data.size(); ++i) values[found->second.first + i] += what.data[i];
}

}  // namespace wafersim::workloads::numeric
