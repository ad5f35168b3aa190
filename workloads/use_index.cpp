#include "workloads/use_index.h"

#include <algorithm>

namespace wafersim::workloads {

void UseIndex::add(std::uint32_t op, const View& view) {
  std::vector<Matrix>& matrices = tensors_[view.tensor];
  auto matrix = std::find_if(matrices.begin(), matrices.end(), [&view](const Matrix& each) {
    return each.layer == view.layer && each.absolute == view.absolute;
  });
  if (matrix == matrices.end()) matrix = matrices.insert(matrix, Matrix{view.layer, view.absolute, 0, {}});
  matrix->most_rows = std::max(matrix->most_rows, view.region.rows);
  matrix->by_row[view.region.row].push_back({op, view.region});
}

std::vector<std::uint32_t> UseIndex::users(const Views& views) const {
  std::vector<std::uint32_t> result;
  for (const View& view : views) {
    const auto known = tensors_.find(view.tensor);
    if (known == tensors_.end()) continue;
    for (const Matrix& matrix : known->second) {
      if (matrix.layer != view.layer || matrix.absolute != view.absolute) continue;
      const std::uint64_t row = view.region.row;
      const std::uint64_t earliest = row < matrix.most_rows ? 0 : row - matrix.most_rows + 1;
      const auto end = matrix.by_row.lower_bound(view.region.row_end());
      for (auto each = matrix.by_row.lower_bound(std::min(earliest, view.region.row_end())); each != end; ++each) {
        for (const Use& use : each->second) {
          if (overlap(use.region, view.region)) result.push_back(use.op);
        }
      }
    }
  }
  std::sort(result.begin(), result.end());
  result.erase(std::unique(result.begin(), result.end()), result.end());
  return result;
}

}  // namespace wafersim::workloads
