#include "tests/workloads/numeric/parameter_map.h"

#include <array>

#include "base/error.h"

namespace wafersim::workloads::numeric {

namespace {

constexpr std::array kParts = {Part::qkv, Part::attention_output, Part::mlp_up, Part::mlp_down};
constexpr std::array kBiases = {Part::qkv_bias, Part::attention_output_bias, Part::mlp_up_bias,
                                Part::mlp_down_bias};

}  // namespace

ParameterMap::ParameterMap(const models::TransformerSpec& model, const TrainingSpec& training, const PlanSpec& plan)
    : model_(model) {
  const ParameterLayout layout(model, training, plan);
  const auto hidden = static_cast<std::uint64_t>(model.hidden);
  set_norm(layer_, layout.norm(0), Part::gain1, Part::shift1);
  set_norm(layer_, layout.norm(1), Part::gain2, Part::shift2);
  set_vector(layer_, layout.output_bias(0), Part::attention_output_bias);
  set_vector(layer_, layout.output_bias(1), Part::mlp_down_bias);
  if (model.routes()) set_table(layer_, layout.router(), Part::router, 0, static_cast<std::uint64_t>(model.experts));
  set_table(embedding_, layout.positions(), Part::positions, 0, hidden);
  set_norm(head_, layout.final_norm(), Part::final_gain, Part::final_shift);
  for (std::size_t weight = 0; weight < kWeights; ++weight) {
    const Cut cut = weight < static_cast<std::size_t>(Weight::mlp_up) ? Cut::attention : Cut::mlp;
    const PlanSpec own = cut_plan(plan, cut);
    const ParameterLayout placed = plan.splits_operators() ? operator_parameters(model, training, plan, cut) : layout;
    const bool of_expert = model.routes() && weight >= static_cast<std::size_t>(Weight::mlp_up);
    const std::uint64_t experts = of_expert ? static_cast<std::uint64_t>(model.experts) : 1;
    for (int tp = 0; tp < own.tp; ++tp) {
      for (int slice = 0; slice < own.tatp * placed.chunks(); ++slice) {
        for (std::uint64_t expert = 0; expert < experts; ++expert) {
          set_weight(placed, static_cast<Weight>(weight), tp, slice, expert);
        }
      }
    }
  }
  for (int tp = 0; tp < plan.tp; ++tp) {
    for (int tatp = 0; tatp < plan.tatp; ++tatp) {
      const std::uint64_t token = layout.vocabulary(tp, tatp).first;
      set_table(embedding_, layout.table(false, tp, tatp), Part::table, token, hidden);
      set_table(head_, layout.table(true, tp, tatp), Part::head_table, token, hidden);
    }
  }
  for (const auto& id : layer_)
    require_invariant(id.has_value(), "each row of a layer's bucket is a parameter");
}

const ParameterId& ParameterMap::at(int layer, std::uint64_t row) const {
  const Rows& rows = layer < 0 ? embedding_ : layer >= model_.layers ? head_ : layer_;
  require_invariant(row < rows.size() && rows[row].has_value(), "a parameter stands in each row of a bucket");
  return *rows[row];
}

void ParameterMap::set(Rows& rows, std::uint64_t row, const ParameterId& id) {
  if (rows.size() <= row) rows.resize(row + 1);
  require_invariant(!rows[row] || *rows[row] == id, "one parameter stands in a row of a bucket");
  rows[row] = id;
}

void ParameterMap::set_vector(Rows& rows, const Region& region, Part part) {
  for (std::uint64_t i = 0; i < region.rows; ++i) set(rows, region.row + i, {part, 0, i});
}

void ParameterMap::set_table(Rows& rows, const Region& region, Part part, std::uint64_t first_row,
                             std::uint64_t width) {
  for (std::uint64_t i = 0; i < region.rows; ++i) {
    set(rows, region.row + i, {part, first_row + i / width, i % width});
  }
}

/// The gain, then for layer norms the shift.
void ParameterMap::set_norm(Rows& rows, const Region& region, Part gain, Part shift) {
  const auto hidden = static_cast<std::uint64_t>(model_.hidden);
  for (std::uint64_t i = 0; i < region.rows; ++i) {
    set(rows, region.row + i, {i < hidden ? gain : shift, 0, i % hidden});
  }
}

/// Region i holds the columns of run i: a row for each input column, then one for the bias.
void ParameterMap::set_weight(const ParameterLayout& layout, Weight weight, int tp, int number, std::uint64_t expert) {
  const auto kind = static_cast<std::size_t>(weight);
  const WeightSlice slice = layout.weight(weight, tp, number, expert);
  const Range inputs = layout.input_columns(weight, tp, number / layout.chunks());
  require_invariant(slice.regions.size() == slice.columns.size(), "a region for each run of columns");
  for (std::size_t run = 0; run < slice.regions.size(); ++run) {
    const Region& region = slice.regions[run];
    const Range& columns = slice.columns[run];
    for (std::uint64_t i = 0; i < region.rows; ++i) {
      const std::uint64_t row = i / columns.count, col = columns.first + i % columns.count;
      const bool is_bias = row == inputs.count;
      set(layer_, region.row + i,
          is_bias ? ParameterId{kBiases[kind], 0, col}
                  : ParameterId{kParts[kind], inputs.first + row, col, expert});
    }
  }
}

}  // namespace wafersim::workloads::numeric
