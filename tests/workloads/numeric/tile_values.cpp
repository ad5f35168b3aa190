#include "tests/workloads/numeric/tile_values.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace wafersim::workloads::numeric {

namespace {

constexpr double kNothing = std::numeric_limits<double>::quiet_NaN();

bool makes_scores(Kernel kernel) {
  return kernel == Kernel::scores || kernel == Kernel::softmax || kernel == Kernel::softmax_gradient ||
         kernel == Kernel::score_gradient;
}

}  // namespace

std::vector<TensorShape> tensor_shapes(const Trace& trace, std::uint64_t sequence) {
  std::vector<TensorShape> shapes(trace.tensors.size());
  const auto include = [&](const Views& views) {
    for (const View& view : views) {
      TensorShape& shape = shapes[view.tensor];
      shape.rows = std::max(shape.rows, view.region.row_end());
      shape.cols = std::max(shape.cols, view.region.col_end());
    }
  };
  for (const StaticMemory& each : trace.statics) include(each.holds);
  for (const Meaning& meaning : trace.meanings) {
    for (const Views* views : {&meaning.reads, &meaning.writes, &meaning.discards}) include(*views);
    if (!makes_scores(meaning.kernel)) continue;
    for (const View& view : meaning.writes) shapes[view.tensor].depth = sequence;
  }
  return shapes;
}

/// Calls `change` with each number of the region and its place in it.
template <class Change>
void TileValues::change(const MatrixKey& key, const Region& region, const Change& change) {
  const TensorShape& shape = shapes_[key.tensor];
  Matrix& matrix = matrices_.try_emplace(key, shape.rows, shape.cols * shape.depth, kNothing).first->second;
  for (std::uint64_t i = 0; i < region.rows; ++i) {
    for (std::uint64_t j = 0; j < region.cols * shape.depth; ++j) {
      change(matrix(region.row + i, region.col * shape.depth + j), i, j);
    }
  }
}

Matrix TileValues::read(const MatrixKey& key, const Region& region) const {
  const std::uint64_t depth = shapes_[key.tensor].depth;
  Matrix result(region.rows, region.cols * depth, kNothing);
  const auto found = matrices_.find(key);
  if (found == matrices_.end()) return result;
  for (std::size_t i = 0; i < result.rows; ++i) {
    for (std::size_t j = 0; j < result.cols; ++j) {
      result(i, j) = found->second(region.row + i, region.col * depth + j);
    }
  }
  return result;
}

void TileValues::write(const MatrixKey& key, const Region& region, const Matrix& values) {
  change(key, region, [&](double& value, std::size_t i, std::size_t j) { value = values(i, j); });
}

void TileValues::add(const MatrixKey& key, const Region& region, const Matrix& values) {
  change(key, region, [&](double& value, std::size_t i, std::size_t j) {
    value = std::isnan(value) ? values(i, j) : value + values(i, j);
  });
}

void TileValues::erase(const MatrixKey& key, const Region& region) {
  if (!matrices_.contains(key)) return;
  change(key, region, [](double& value, std::size_t, std::size_t) { value = kNothing; });
}

void StepValues::write(const View& view, const Matrix& what, bool adds) {
  if (adds || is_gradient(scope(view))) {
    values_.add(key(view), view.region, what);
  } else {
    values_.write(key(view), view.region, what);
  }
}

}  // namespace wafersim::workloads::numeric
