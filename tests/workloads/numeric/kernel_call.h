#pragma once

#include <functional>
#include <map>
#include <tuple>
#include <vector>

#include "tests/workloads/numeric/batch.h"
#include "tests/workloads/numeric/panel.h"
#include "tests/workloads/numeric/parameter_map.h"
#include "tests/workloads/numeric/routing.h"
#include "tests/workloads/numeric/row_statistics.h"

namespace wafersim::workloads::numeric {

/// The model and how its batch is dealt; nothing of how its layers are cut, but for the experts that tokens go to.
struct Problem {
  models::TransformerSpec model;
  std::uint64_t sequences = 1;     ///< of a microbatch
  std::uint64_t microbatches = 1;  ///< of a replica
  std::uint64_t replicas = 1;
  double learning_rate = 0.1;
  double largest_norm = 0;  ///< to which gradients are clipped; 0: they are not
  Routing routing{};        ///< of a microbatch, with experts

  std::uint64_t global_batch() const { return sequences * microbatches * replicas; }
  std::uint64_t tokens() const { return global_batch() * static_cast<std::uint64_t>(model.sequence); }
};

struct Parameter {
  ParameterId id;
  double value = 0;
};

/// -log of the probability of a label, by iteration, sequence of the global batch and position.
using TokenLosses = std::map<std::tuple<std::uint64_t, std::uint64_t, std::uint64_t>, double>;

/// An operation's reads as matrices, and the matrices that it makes. Throws MeaningFault.
class KernelCall {
 public:
  KernelCall(const Problem& problem, const ParameterMap& map, const Meaning& meaning, const StepValues& step,
             std::uint64_t replica, AttentionStatistics& statistics);

  const models::TransformerSpec& model() const { return problem_.model; }
  const Problem& problem() const { return problem_; }
  const Meaning& meaning() const { return meaning_; }
  const StepValues& step() const { return step_; }

  /// Whether there is anything to work on: some ranks have no tokens, and add nothing to gradients.
  bool has_rows() const;
  /// The activations that the operation reads, by tensor in order.
  std::size_t inputs() const { return inputs_.size(); }
  Panel input(std::size_t which) const { return read_panel(step_, inputs_.at(which)); }
  /// Those of them that lie in a range of columns.
  Panel input_columns(std::size_t which, const Range& columns) const;
  std::vector<Parameter> parameters() const;
  /// Zeros in the shape of the activations that the operation writes; put() writes them.
  Panel output() const;
  /// The same of one of several tensors.
  Panel output(std::size_t which) const;
  /// What is there of them now; not a number where nothing is.
  Panel present() const;
  void put(const Panel& panel);
  void put(const View& view, Matrix values) { results_.push_back({view, std::move(values)}); }
  /// Writes the gradients that the operation makes, each from which parameter it belongs to.
  void put_gradients(const std::function<double(const ParameterId&)>& gradient);

  /// Of a row of activations.
  std::uint64_t position(std::uint64_t row) const { return row / problem_.sequences; }
  std::uint64_t sequence(std::uint64_t row) const;
  /// The row of another position of the same sequence.
  std::uint64_t row_at(std::uint64_t row, std::uint64_t position) const {
    return position * problem_.sequences + row % problem_.sequences;
  }
  Batch batch() const { return {problem_.model, iteration()}; }
  std::uint64_t token(std::uint64_t row) const { return batch().token(sequence(row), position(row)); }
  std::uint64_t label(std::uint64_t row) const { return batch().label(sequence(row), position(row)); }
  std::uint64_t iteration() const { return static_cast<std::uint64_t>(step_.step().iteration); }

  /// Of the scores of a row and a query head.
  RowStatistics& statistics(std::uint64_t row, std::uint64_t head);

  /// Of a token whose label is among the columns of the operation.
  void put_loss(std::uint64_t row, double loss) {
    losses_[{iteration(), sequence(row), position(row)}] = loss;
  }

  struct Result {
    View view;
    Matrix values;
  };
  const std::vector<Result>& results() const { return results_; }
  const TokenLosses& losses() const { return losses_; }

 private:
  Views output_views() const;

  const Problem& problem_;
  const ParameterMap& map_;
  const Meaning& meaning_;
  const StepValues& step_;
  std::uint64_t replica_;
  AttentionStatistics& statistics_;
  std::vector<Views> inputs_;
  std::vector<Result> results_;
  TokenLosses losses_;
};

}  // namespace wafersim::workloads::numeric
