#pragma once

#include <array>
#include <cstddef>
#include <vector>

/// How far predictions are from simulations. Everything here is plain arithmetic on numbers of cycles; errors are
/// (predicted - simulated) / simulated.
namespace wafersim::analysis {

struct ErrorStatistics {
  std::size_t points = 0;
  double mape = 0;    ///< mean of |error|
  double median = 0;  ///< of |error|
  double p95 = 0;     ///< of |error|: the smallest that 95 % do not exceed
  double worst = 0;   ///< largest |error|
  double bias = 0;    ///< mean error
  double r2 = 0;      ///< 1 - squared residuals / squared distance from the mean of the simulations; 0 where that is 0
  double tau = 0;     ///< kendall_tau()
};

/// Of as many predictions as simulations, all above 0; nothing but zeros for none.
ErrorStatistics error_statistics(const std::vector<double>& predicted, const std::vector<double>& simulated);

/// Kendall's tau-b: pairs in the same order less pairs in the other, by the geometric mean of the pairs that are not tied in
/// one and in the other. 0 where all are tied. Time n log n.
double kendall_tau(const std::vector<double>& a, const std::vector<double>& b);

/// What a designer loses who takes the plan that a model likes best.
struct ChoiceStatistics {
  std::size_t groups = 0;  ///< of two points and more that compete with each other
  double best_picked = 0;  ///< share of groups whose fastest point the model likes best
  double regret = 0;       ///< mean over groups: simulated time of the model's favourite / the fastest - 1
  double worst_regret = 0;
  double top3_regret = 0;  ///< mean of the same for the fastest of the model's three favourites
};

/// `group`: points with equal numbers compete.
ChoiceStatistics choice_statistics(const std::vector<double>& predicted, const std::vector<double>& simulated,
                                   const std::vector<std::size_t>& group);

/// The cycles of a prediction or simulation by what they are spent on.
enum class CyclePart { compute, memory_stall, communication, bubble, idle };
inline constexpr std::size_t kCycleParts = 5;
const char* to_string(CyclePart part);
using CycleParts = std::array<double, kCycleParts>;

/// Factors of the parts with which the sum of the scaled parts comes nearest to the simulations: least squares of relative
/// errors, no factor below 0. What the points say nothing about stays at 1.
CycleParts fit_factors(const std::vector<CycleParts>& parts, const std::vector<double>& simulated);
double scaled(const CycleParts& parts, const CycleParts& factors);

}  // namespace wafersim::analysis
