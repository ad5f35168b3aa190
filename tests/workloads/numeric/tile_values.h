#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "tests/workloads/numeric/matrix.h"
#include "workloads/trace.h"

namespace wafersim::workloads::numeric {

/// Extents of a tensor. The cells of attention scores are rows over all keys: `depth` numbers each.
struct TensorShape {
  std::uint64_t rows = 0;
  std::uint64_t cols = 0;
  std::uint64_t depth = 1;
};
/// By tensor, from all that a trace names. Scores are known by the kernels that make them.
std::vector<TensorShape> tensor_shapes(const Trace& trace, std::uint64_t sequence);

/// The numbers that one tile holds. Not a number stands where nothing is.
class TileValues {
 public:
  explicit TileValues(const std::vector<TensorShape>& shapes) : shapes_(shapes) {}
  /// rows x (cols depth).
  Matrix read(const MatrixKey& key, const Region& region) const;
  void write(const MatrixKey& key, const Region& region, const Matrix& values);
  /// To what is there; where nothing is, to zero.
  void add(const MatrixKey& key, const Region& region, const Matrix& values);
  void erase(const MatrixKey& key, const Region& region);
  std::uint64_t depth(std::uint32_t tensor) const { return shapes_[tensor].depth; }

 private:
  template <class Change>
  void change(const MatrixKey& key, const Region& region, const Change& change);

  const std::vector<TensorShape>& shapes_;
  std::map<MatrixKey, Matrix> matrices_;
};

/// The numbers of a tile as the views of one of its steps name them.
class StepValues {
 public:
  StepValues(const Trace& trace, TileValues& values, const Step& step)
      : trace_(trace), values_(values), step_(step) {}
  MatrixKey key(const View& view) const { return matrix_key(trace_, step_, view); }
  TensorScope scope(const View& view) const { return trace_.tensors[view.tensor].scope; }
  const std::string& name(const View& view) const { return trace_.tensors[view.tensor].name; }
  std::uint64_t depth(const View& view) const { return values_.depth(view.tensor); }
  const Step& step() const { return step_; }

  Matrix read(const View& view) const { return values_.read(key(view), view.region); }
  /// Gradients always add, activations when `adds`.
  void write(const View& view, const Matrix& what, bool adds);
  void erase(const View& view) { values_.erase(key(view), view.region); }

 private:
  const Trace& trace_;
  TileValues& values_;
  const Step& step_;
};

}  // namespace wafersim::workloads::numeric
