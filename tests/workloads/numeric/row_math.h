#pragma once

#include <cstdint>
#include <span>

#include "models/transformer.h"

/// The functions of a transformer that work on one row or one number.
namespace wafersim::workloads::numeric {

/// layernorm: (x - mean) / deviation x gain + shift; rmsnorm: x / root mean square x gain. `shift` may be
/// empty.
void norm_row(models::Norm norm, std::span<const double> x, std::span<const double> gain,
              std::span<const double> shift, std::span<double> y);
/// Sets dx, adds to d_gain and, unless it is empty, d_shift.
void norm_row_backward(models::Norm norm, std::span<const double> x, std::span<const double> gain,
                       std::span<const double> dy, std::span<double> dx, std::span<double> d_gain,
                       std::span<double> d_shift);

/// The approximation by tanh (Hendrycks and Gimpel 2016).
double gelu(double x);
double gelu_derivative(double x);
/// x sigmoid(x); SwiGLU is up x silu(gate) (Shazeer 2020).
double silu(double x);
double silu_derivative(double x);

/// In place; minus infinity has no part in it.
void softmax_row(std::span<double> row);
/// dS of S from P = softmax(S) and dP.
void softmax_row_backward(std::span<const double> p, std::span<const double> dp, std::span<double> ds);

/// Turns the pairs (0, 1), (2, 3), .. of one head by position x 10000^(-pair's first / d) (Su et al. 2021);
/// backwards when `direction` is -1.
void rotate_head(std::span<double> head, std::uint64_t position, int direction);

}  // namespace wafersim::workloads::numeric
