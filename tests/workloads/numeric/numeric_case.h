#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tests/workloads/lowering_fixture.h"
#include "tests/workloads/numeric/numeric_executor.h"
#include "tests/workloads/numeric/reference.h"
#include "tests/workloads/numeric/tiny_model.h"

namespace wafersim::workloads::numeric {

/// A tiny model under a plan, both to be changed before run(): four microbatches of two sequences in all,
/// plain gradient descent.
struct NumericCase : LoweringFixture {
  NumericCase();
  void make_llama() { make_tiny_llama(model); }
  /// 0: gradients are not clipped.
  double largest_norm = 0;
};

/// A plan's trace on numbers, next to the unpartitioned model on the same ones.
class NumericRun {
 public:
  explicit NumericRun(const NumericCase& setup) : NumericRun(setup, setup.lower().trace) {}
  NumericRun(const NumericCase& setup, const Trace& trace);

  /// What differs from the reference: loss, gradients on every tile that updates with them, the gradient
  /// norm, and the weights at the end on every tile that holds them. Empty when nothing does.
  std::string differences() const;

 private:
  void compare(std::vector<std::string>& wrong, const std::string& what,
               const std::vector<BucketValue>& values, const std::vector<double>& expected,
               std::int32_t iteration) const;

  NumericCase setup_;
  Trace trace_;
  Problem problem_;
  Parameters parameters_;
  ParameterMap map_;
  std::vector<std::string> faults_;
  std::vector<Evaluation> reference_;  ///< by iteration
  std::vector<double> final_weights_;  ///< of the reference
  std::vector<double> losses_;
  std::vector<BucketValue> gradients_;
  std::vector<BucketValue> weights_;
  std::vector<double> square_sums_;
};

/// Of one run.
std::string differences(const NumericCase& setup);
/// The same, and which uses of the trace's numbers are in no order.
std::string faults(const NumericCase& setup);
/// What differs when the first operation of a template with that kernel has another meaning, in every tile
/// that runs it. Empty when there is none.
std::string differences_with(const NumericCase& setup, const std::string& name, Kernel kernel,
                             const std::function<void(Meaning&)>& change);

}  // namespace wafersim::workloads::numeric
