#include <cmath>
#include <limits>

#include "tests/workloads/numeric/reference.h"
#include "tests/workloads/numeric/row_math.h"

namespace wafersim::workloads::numeric {

namespace {

std::size_t count(std::int64_t value) { return static_cast<std::size_t>(value); }

Matrix columns(const Matrix& of, std::size_t first, std::size_t width) {
  Matrix result(of.rows, width);
  for (std::size_t i = 0; i < of.rows; ++i) {
    for (std::size_t j = 0; j < width; ++j) result(i, j) = of(i, first + j);
  }
  return result;
}

void add_to_columns(Matrix& to, std::size_t first, const Matrix& what, double factor = 1) {
  for (std::size_t i = 0; i < what.rows; ++i) {
    for (std::size_t j = 0; j < what.cols; ++j) to(i, first + j) += factor * what(i, j);
  }
}

}  // namespace

/// Scaled dot-product attention (Vaswani et al. 2017) with grouped queries (Ainslie et al. 2023): query head
/// i attends to kv head i / (heads / kv heads).
void Reference::attend(LayerState& state) const {
  const std::size_t d = count(model_.head_dim), q = count(model_.q_width()), kv = count(model_.kv_width());
  const std::size_t group = count(model_.heads / model_.kv_heads);
  const double scale = 1 / std::sqrt(static_cast<double>(d));
  state.heads = Matrix(state.qkv.rows, q);
  for (std::size_t head = 0; head < count(model_.heads); ++head) {
    const Matrix query = columns(state.qkv, head * d, d);
    const Matrix key = columns(state.qkv, q + head / group * d, d);
    const Matrix value = columns(state.qkv, q + kv + head / group * d, d);
    Matrix p = product_with_transposed(query, key);
    for (std::size_t i = 0; i < p.rows; ++i) {
      for (std::size_t j = 0; j < p.cols; ++j) {
        const bool masked = model_.attention == models::AttentionMask::causal && j > i;
        p(i, j) = masked ? -std::numeric_limits<double>::infinity() : scale * p(i, j);
      }
      softmax_row(p.row(i));
    }
    add_to_columns(state.heads, head * d, product(p, value));
    state.probabilities.push_back(std::move(p));
  }
}

Matrix Reference::attend_backward(const LayerState& state, const Matrix& d_heads) const {
  const std::size_t d = count(model_.head_dim), q = count(model_.q_width()), kv = count(model_.kv_width());
  const std::size_t group = count(model_.heads / model_.kv_heads);
  const double scale = 1 / std::sqrt(static_cast<double>(d));
  Matrix result(state.qkv.rows, state.qkv.cols);
  for (std::size_t head = 0; head < count(model_.heads); ++head) {
    const std::size_t key_at = q + head / group * d, value_at = q + kv + head / group * d;
    const Matrix& p = state.probabilities[head];
    const Matrix d_output = columns(d_heads, head * d, d);
    add_to_columns(result, value_at, product_of_transposed(p, d_output));
    const Matrix dp = product_with_transposed(d_output, columns(state.qkv, value_at, d));
    Matrix ds(p.rows, p.cols);
    for (std::size_t i = 0; i < p.rows; ++i) softmax_row_backward(p.row(i), dp.row(i), ds.row(i));
    add_to_columns(result, head * d, product(ds, columns(state.qkv, key_at, d)), scale);
    add_to_columns(result, key_at, product_of_transposed(ds, columns(state.qkv, head * d, d)), scale);
  }
  return result;
}

void Reference::rotate(Matrix& qkv, int direction) const {
  if (model_.positions != models::Positions::rotary) return;
  const std::size_t d = count(model_.head_dim);
  for (std::size_t i = 0; i < qkv.rows; ++i) {
    for (std::size_t head = 0; head < count(model_.heads + model_.kv_heads); ++head) {
      rotate_head(qkv.row(i).subspan(head * d, d), i, direction);
    }
  }
}

Matrix Reference::activate(const Matrix& up) const {
  const std::size_t ffn = count(model_.ffn);
  Matrix result(up.rows, ffn);
  for (std::size_t i = 0; i < up.rows; ++i) {
    for (std::size_t j = 0; j < ffn; ++j) {
      result(i, j) = model_.mlp == models::Mlp::swiglu ? up(i, j) * silu(up(i, ffn + j)) : gelu(up(i, j));
    }
  }
  return result;
}

Matrix Reference::activate_backward(const Matrix& up, const Matrix& da) const {
  const std::size_t ffn = count(model_.ffn);
  Matrix result(up.rows, up.cols);
  for (std::size_t i = 0; i < up.rows; ++i) {
    for (std::size_t j = 0; j < ffn; ++j) {
      if (model_.mlp == models::Mlp::gelu) {
        result(i, j) = da(i, j) * gelu_derivative(up(i, j));
        continue;
      }
      const double gate = up(i, ffn + j);
      result(i, j) = da(i, j) * silu(gate);
      result(i, ffn + j) = da(i, j) * up(i, j) * silu_derivative(gate);
    }
  }
  return result;
}

}  // namespace wafersim::workloads::numeric
