#pragma once

#include <optional>
#include <vector>

#include "tests/workloads/numeric/parameters.h"
#include "workloads/parameter_layout.h"

namespace wafersim::workloads::numeric {

/// Which parameter stands in which row of the buckets of a plan: ParameterLayout read backwards. Layer -1 is
/// the embedding, the number of layers the head.
class ParameterMap {
 public:
  /// Throws InternalError when two parameters stand in one row, or one of a layer nowhere.
  ParameterMap(const models::TransformerSpec& model, const TrainingSpec& training, const PlanSpec& plan);
  /// Throws InternalError for a row in which nothing stands.
  const ParameterId& at(int layer, std::uint64_t row) const;

 private:
  using Rows = std::vector<std::optional<ParameterId>>;
  static void set(Rows& rows, std::uint64_t row, const ParameterId& id);
  static void set_vector(Rows& rows, const Region& region, Part part);
  static void set_table(Rows& rows, const Region& region, Part part, std::uint64_t first_row,
                        std::uint64_t width);
  void set_norm(Rows& rows, const Region& region, Part gain, Part shift);
  void set_weight(const ParameterLayout& layout, Weight weight, int tp, int number, std::uint64_t expert);

  const models::TransformerSpec& model_;
  Rows layer_;
  Rows embedding_;
  Rows head_;
};

}  // namespace wafersim::workloads::numeric
