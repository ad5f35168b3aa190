#include "tests/workloads/numeric/kernel_call.h"

#include <algorithm>
#include <utility>

namespace wafersim::workloads::numeric {

KernelCall::KernelCall(const Problem& problem, const ParameterMap& map, const Meaning& meaning,
                       const StepValues& step, std::uint64_t replica, AttentionStatistics& statistics)
    : problem_(problem),
      map_(map),
      meaning_(meaning),
      step_(step),
      replica_(replica),
      statistics_(statistics) {
  for (const View& view : meaning.reads) {
    if (step.scope(view) != TensorScope::activation) continue;
    const bool same = !inputs_.empty() && step.key(inputs_.back().back()) == step.key(view);
    if (same) {
      inputs_.back().push_back(view);
    } else {
      inputs_.push_back({view});
    }
  }
}

std::uint64_t KernelCall::sequence(std::uint64_t row) const {
  const auto microbatch = static_cast<std::uint64_t>(step_.step().microbatch);
  return (replica_ * problem_.microbatches + microbatch) * problem_.sequences + row % problem_.sequences;
}

bool KernelCall::has_rows() const {
  const auto some = [&](const View& view) {
    return view.region.area() > 0 && step_.scope(view) == TensorScope::activation;
  };
  return std::any_of(meaning_.reads.begin(), meaning_.reads.end(), some) ||
         std::any_of(meaning_.writes.begin(), meaning_.writes.end(), some);
}

Panel KernelCall::input_columns(std::size_t which, const Range& columns) const {
  Views views;
  for (const View& view : inputs_.at(which)) {
    if (view.region.col >= columns.first && view.region.col_end() <= columns.end()) views.push_back(view);
  }
  return read_panel(step_, views);
}

std::vector<Parameter> KernelCall::parameters() const {
  std::vector<Parameter> result;
  for (const View& view : meaning_.reads) {
    if (step_.scope(view) != TensorScope::parameter) continue;
    const Matrix values = read_panel(step_, {view}).values;
    const int layer = step_.key(view).layer;
    for (std::size_t i = 0; i < values.rows; ++i) {
      result.push_back({map_.at(layer, view.region.row + i), values(i, 0)});
    }
  }
  return result;
}

Views KernelCall::output_views() const {
  Views views;  // a region comes once for each run of its addends
  for (const View& view : meaning_.writes) {
    const auto same = [&](const View& other) {
      return step_.key(other) == step_.key(view) && other.region == view.region;
    };
    if (step_.scope(view) != TensorScope::activation) continue;
    if (std::none_of(views.begin(), views.end(), same)) views.push_back(view);
  }
  return views;
}

Panel KernelCall::output() const { return make_panel(step_, output_views()); }

Panel KernelCall::output(std::size_t which) const {
  std::vector<Views> tensors;
  for (const View& view : output_views()) {
    const bool same = !tensors.empty() && step_.key(tensors.back().back()) == step_.key(view);
    if (!same) tensors.emplace_back();
    tensors.back().push_back(view);
  }
  return make_panel(step_, tensors.at(which));
}

Panel KernelCall::present() const {
  Panel panel = output();
  for (const View& view : panel.views) set_part(panel, view, step_.read(view));
  return panel;
}

RowStatistics& KernelCall::statistics(std::uint64_t row, std::uint64_t head) {
  const Step& step = step_.step();
  return statistics_[{step.layer, step.microbatch, step.iteration, row, head}];
}

void KernelCall::put(const Panel& panel) {
  for (const View& view : panel.views) put(view, part_of(panel, view));
}

void KernelCall::put_gradients(const std::function<double(const ParameterId&)>& gradient) {
  std::vector<std::pair<MatrixKey, Region>> done;  // a region comes once for each run of its addends
  for (const View& view : meaning_.writes) {
    if (!is_gradient(step_.scope(view))) continue;
    const std::pair where(step_.key(view), view.region);
    if (std::find(done.begin(), done.end(), where) != done.end()) continue;
    done.push_back(where);
    Matrix values(view.region.rows, 1);
    for (std::size_t i = 0; i < values.rows; ++i) {
      values(i, 0) = gradient(map_.at(where.first.layer, view.region.row + i));
    }
    put(view, std::move(values));
  }
}

}  // namespace wafersim::workloads::numeric
