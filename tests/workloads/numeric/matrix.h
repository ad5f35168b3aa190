#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace wafersim::workloads::numeric {

/// Dense, row-major, float64.
struct Matrix {
  std::size_t rows = 0;
  std::size_t cols = 0;
  std::vector<double> data;

  Matrix() = default;
  Matrix(std::size_t row_count, std::size_t col_count, double fill = 0)
      : rows(row_count), cols(col_count), data(row_count * col_count, fill) {}
  double& operator()(std::size_t row, std::size_t col) { return data[row * cols + col]; }
  double operator()(std::size_t row, std::size_t col) const { return data[row * cols + col]; }
  std::span<double> row(std::size_t row) { return {data.data() + row * cols, cols}; }
  std::span<const double> row(std::size_t row) const { return {data.data() + row * cols, cols}; }
  bool empty() const { return data.empty(); }
};

/// a b, of (m x k) and (k x n).
Matrix product(const Matrix& a, const Matrix& b);
/// a^T b, of (k x m) and (k x n).
Matrix product_of_transposed(const Matrix& a, const Matrix& b);
/// a b^T, of (m x k) and (n x k).
Matrix product_with_transposed(const Matrix& a, const Matrix& b);

void add(Matrix& to, const Matrix& what);
/// Adds a 1 x n row to each row; nothing when `row` is empty.
void add_to_rows(Matrix& to, const Matrix& row);
/// 1 x n.
Matrix column_sums(const Matrix& of);

}  // namespace wafersim::workloads::numeric
