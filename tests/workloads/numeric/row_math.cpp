#include "tests/workloads/numeric/row_math.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace wafersim::workloads::numeric {

namespace {

constexpr double kEpsilon = 1e-5;

struct Normed {
  std::vector<double> values;
  double scale = 1;  ///< 1 / deviation
};

Normed normalise(models::Norm norm, std::span<const double> x) {
  const auto n = static_cast<double>(x.size());
  double mean = 0, square = 0;
  if (norm == models::Norm::layernorm) {
    for (const double value : x) mean += value / n;
  }
  for (const double value : x) square += (value - mean) * (value - mean) / n;
  Normed result{{}, 1 / std::sqrt(square + kEpsilon)};
  for (const double value : x) result.values.push_back((value - mean) * result.scale);
  return result;
}

double tanh_argument(double x) { return 0.7978845608028654 * (x + 0.044715 * x * x * x); }  // sqrt(2 / pi)

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

}  // namespace

void norm_row(models::Norm norm, std::span<const double> x, std::span<const double> gain,
              std::span<const double> shift, std::span<double> y) {
  const Normed normed = normalise(norm, x);
  for (std::size_t i = 0; i < x.size(); ++i) {
    y[i] = normed.values[i] * gain[i] + (shift.empty() ? 0 : shift[i]);
  }
}

void norm_row_backward(models::Norm norm, std::span<const double> x, std::span<const double> gain,
                       std::span<const double> dy, std::span<double> dx, std::span<double> d_gain,
                       std::span<double> d_shift) {
  const Normed normed = normalise(norm, x);
  const auto n = static_cast<double>(x.size());
  double mean = 0, along = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (norm == models::Norm::layernorm) mean += dy[i] * gain[i] / n;
    along += dy[i] * gain[i] * normed.values[i] / n;
  }
  for (std::size_t i = 0; i < x.size(); ++i) {
    dx[i] = normed.scale * (dy[i] * gain[i] - mean - normed.values[i] * along);
    d_gain[i] += dy[i] * normed.values[i];
    if (!d_shift.empty()) d_shift[i] += dy[i];
  }
}

double gelu(double x) { return 0.5 * x * (1 + std::tanh(tanh_argument(x))); }

double gelu_derivative(double x) {
  const double t = std::tanh(tanh_argument(x));
  const double slope = 0.7978845608028654 * (1 + 3 * 0.044715 * x * x);
  return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * slope;
}

double silu(double x) { return x * sigmoid(x); }

double silu_derivative(double x) { return sigmoid(x) * (1 + x * (1 - sigmoid(x))); }

void softmax_row(std::span<double> row) {
  const double top = *std::max_element(row.begin(), row.end());
  double sum = 0;
  for (double& value : row) sum += value = std::exp(value - top);
  for (double& value : row) value /= sum;
}

void softmax_row_backward(std::span<const double> p, std::span<const double> dp, std::span<double> ds) {
  double along = 0;
  for (std::size_t i = 0; i < p.size(); ++i) along += p[i] * dp[i];
  for (std::size_t i = 0; i < p.size(); ++i) ds[i] = p[i] * (dp[i] - along);
}

void rotate_head(std::span<double> head, std::uint64_t position, int direction) {
  for (std::size_t i = 0; i + 1 < head.size(); i += 2) {
    const double frequency = std::pow(10000.0, -static_cast<double>(i) / static_cast<double>(head.size()));
    const double angle = direction * static_cast<double>(position) * frequency;
    const double a = head[i], b = head[i + 1];
    head[i] = a * std::cos(angle) - b * std::sin(angle);
    head[i + 1] = a * std::sin(angle) + b * std::cos(angle);
  }
}

}  // namespace wafersim::workloads::numeric
