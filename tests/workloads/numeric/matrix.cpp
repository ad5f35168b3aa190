#include "tests/workloads/numeric/matrix.h"

namespace wafersim::workloads::numeric {

Matrix product(const Matrix& a, const Matrix& b) {
  Matrix result(a.rows, b.cols);
  for (std::size_t i = 0; i < a.rows; ++i) {
    for (std::size_t k = 0; k < a.cols; ++k) {
      for (std::size_t j = 0; j < b.cols; ++j) result(i, j) += a(i, k) * b(k, j);
    }
  }
  return result;
}

Matrix product_of_transposed(const Matrix& a, const Matrix& b) {
  Matrix result(a.cols, b.cols);
  for (std::size_t k = 0; k < a.rows; ++k) {
    for (std::size_t i = 0; i < a.cols; ++i) {
      for (std::size_t j = 0; j < b.cols; ++j) result(i, j) += a(k, i) * b(k, j);
    }
  }
  return result;
}

Matrix product_with_transposed(const Matrix& a, const Matrix& b) {
  Matrix result(a.rows, b.rows);
  for (std::size_t i = 0; i < a.rows; ++i) {
    for (std::size_t j = 0; j < b.rows; ++j) {
      double sum = 0;
      for (std::size_t k = 0; k < a.cols; ++k) sum += a(i, k) * b(j, k);
      result(i, j) = sum;
    }
  }
  return result;
}

void add(Matrix& to, const Matrix& what) {
  for (std::size_t i = 0; i < to.data.size(); ++i) to.data[i] += what.data[i];
}

void add_to_rows(Matrix& to, const Matrix& row) {
  if (row.empty()) return;
  for (std::size_t i = 0; i < to.rows; ++i) {
    for (std::size_t j = 0; j < to.cols; ++j) to(i, j) += row(0, j);
  }
}

Matrix column_sums(const Matrix& of) {
  Matrix result(1, of.cols);
  for (std::size_t i = 0; i < of.rows; ++i) {
    for (std::size_t j = 0; j < of.cols; ++j) result(0, j) += of(i, j);
  }
  return result;
}

}  // namespace wafersim::workloads::numeric
