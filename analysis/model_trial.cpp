#include "analysis/model_trial.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <numeric>
#include <utility>

#include "base/error.h"

namespace wafersim::analysis {
namespace {

double pairs(std::uint64_t n) { return static_cast<double>(n) * (static_cast<double>(n) - 1) / 2; }

/// Pairs of equal neighbours in a sorted list.
template <class Values, class Equal>
double tied_pairs(const Values& sorted, const Equal& equal) {
  double tied = 0;
  for (std::size_t i = 0; i < sorted.size();) {
    std::size_t end = i + 1;
    while (end < sorted.size() && equal(sorted[i], sorted[end])) ++end;
    tied += pairs(end - i);
    i = end;
  }
  return tied;
}

/// Sorts and counts the pairs that change places.
std::uint64_t exchanges(std::vector<double>& values, std::vector<double>& scratch, std::size_t first, std::size_t last) {
  if (last - first < 2) return 0;
  const std::size_t middle = first + (last - first) / 2;
  std::uint64_t count = exchanges(values, scratch, first, middle) + exchanges(values, scratch, middle, last);
  std::size_t left = first, right = middle;
  for (std::size_t i = first; i < last; ++i) {
    if (right == last || (left < middle && values[left] <= values[right])) {
      scratch[i] = values[left++];
    } else {
      count += middle - left;
      scratch[i] = values[right++];
    }
  }
  std::copy(scratch.begin() + static_cast<std::ptrdiff_t>(first), scratch.begin() + static_cast<std::ptrdiff_t>(last),
            values.begin() + static_cast<std::ptrdiff_t>(first));
  return count;
}

}  // namespace

double kendall_tau(const std::vector<double>& a, const std::vector<double>& b) {
  require_invariant(a.size() == b.size(), "rank correlation of lists of different length");
  std::vector<std::pair<double, double>> points;
  for (std::size_t i = 0; i < a.size(); ++i) points.emplace_back(a[i], b[i]);
  std::sort(points.begin(), points.end());
  const double tied_a = tied_pairs(points, [](const auto& x, const auto& y) { return x.first == y.first; });
  const double tied_both = tied_pairs(points, [](const auto& x, const auto& y) { return x == y; });
  std::vector<double> second, scratch(points.size());
  for (const auto& point : points) second.push_back(point.second);
  const auto discordant = static_cast<double>(exchanges(second, scratch, 0, second.size()));
  const double tied_b = tied_pairs(second, [](double x, double y) { return x == y; });
  const double all = pairs(points.size());
  const double scale = std::sqrt((all - tied_a) * (all - tied_b));
  return scale == 0 ? 0 : (all - tied_a - tied_b + tied_both - 2 * discordant) / scale;
}

ErrorStatistics error_statistics(const std::vector<double>& predicted, const std::vector<double>& simulated) {
  require_invariant(predicted.size() == simulated.size(), "predictions and simulations differ in number");
  ErrorStatistics result;
  result.points = predicted.size();
  if (predicted.empty()) return result;
  const auto count = static_cast<double>(predicted.size());
  std::vector<double> sizes;
  double residual = 0, spread = 0;
  const double mean = std::accumulate(simulated.begin(), simulated.end(), 0.0) / count;
  for (std::size_t i = 0; i < predicted.size(); ++i) {
    const double error = predicted[i] / simulated[i] - 1;
    result.bias += error / count;
    result.mape += std::abs(error) / count;
    sizes.push_back(std::abs(error));
    residual += (predicted[i] - simulated[i]) * (predicted[i] - simulated[i]);
    spread += (simulated[i] - mean) * (simulated[i] - mean);
  }
  std::sort(sizes.begin(), sizes.end());
  const std::size_t half = sizes.size() / 2;
  result.median = sizes.size() % 2 == 1 ? sizes[half] : (sizes[half - 1] + sizes[half]) / 2;
  result.p95 = sizes[(sizes.size() * 95 + 99) / 100 - 1];
  result.worst = sizes.back();
  result.r2 = spread == 0 ? 0 : 1 - residual / spread;
  result.tau = kendall_tau(predicted, simulated);
  return result;
}

ChoiceStatistics choice_statistics(const std::vector<double>& predicted, const std::vector<double>& simulated,
                                   const std::vector<std::size_t>& group) {
  std::map<std::size_t, std::vector<std::size_t>> members;
  for (std::size_t i = 0; i < group.size(); ++i) members[group[i]].push_back(i);
  ChoiceStatistics result;
  for (auto& [number, points] : members) {
    if (points.size() < 2) continue;
    ++result.groups;
    std::stable_sort(points.begin(), points.end(), [&](std::size_t a, std::size_t b) { return predicted[a] < predicted[b]; });
    double fastest = std::numeric_limits<double>::infinity(), among3 = fastest;
    for (std::size_t rank = 0; rank < points.size(); ++rank) {
      fastest = std::min(fastest, simulated[points[rank]]);
      if (rank < 3) among3 = std::min(among3, simulated[points[rank]]);
    }
    const double regret = simulated[points.front()] / fastest - 1;
    result.best_picked += regret == 0 ? 1 : 0;
    result.regret += regret;
    result.worst_regret = std::max(result.worst_regret, regret);
    result.top3_regret += among3 / fastest - 1;
  }
  if (result.groups == 0) return result;
  const auto groups = static_cast<double>(result.groups);
  result.best_picked /= groups;
  result.regret /= groups;
  result.top3_regret /= groups;
  return result;
}

const char* to_string(CyclePart part) {
  switch (part) {
    case CyclePart::compute:
      return "compute";
    case CyclePart::memory_stall:
      return "memory_stall";
    case CyclePart::communication:
      return "communication";
    case CyclePart::bubble:
      return "bubble";
    case CyclePart::idle:
      return "idle";
  }
  return "?";
}

double scaled(const CycleParts& parts, const CycleParts& factors) {
  return std::inner_product(parts.begin(), parts.end(), factors.begin(), 0.0);
}

/// Minimizes sum over points of (sum_k f_k part_k / simulated - 1)^2 + r sum_k (f_k - 1)^2 by coordinate descent, which
/// converges for a convex sum with bounds. The small r decides what the points leave open.
CycleParts fit_factors(const std::vector<CycleParts>& parts, const std::vector<double>& simulated) {
  constexpr double kPull = 1e-6;
  constexpr int kRounds = 2000;
  std::array<std::array<double, kCycleParts>, kCycleParts> squares{};
  CycleParts sums{};
  for (std::size_t i = 0; i < parts.size(); ++i) {
    for (std::size_t k = 0; k < kCycleParts; ++k) {
      const double own = parts[i][k] / simulated[i];
      sums[k] += own;
      for (std::size_t other = 0; other < kCycleParts; ++other) squares[k][other] += own * parts[i][other] / simulated[i];
    }
  }
  const double pull = kPull * static_cast<double>(std::max<std::size_t>(parts.size(), 1));
  CycleParts factors;
  factors.fill(1);
  for (int round = 0; round < kRounds; ++round) {
    for (std::size_t k = 0; k < kCycleParts; ++k) {
      double rest = sums[k] + pull;
      for (std::size_t other = 0; other < kCycleParts; ++other) {
        if (other != k) rest -= squares[k][other] * factors[other];
      }
      factors[k] = std::max(0.0, rest / (squares[k][k] + pull));
    }
  }
  return factors;
}

}  // namespace wafersim::analysis
