#include <algorithm>
#include <cmath>

#include "tests/workloads/numeric/attention_heads.h"
#include "tests/workloads/numeric/kernels.h"

/// Attention whose keys and values come by block by block.
namespace wafersim::workloads::numeric::kernels {

namespace {

/// The columns of one head in a row of another panel.
struct HeadRow {
  HeadRow(const Panel& panel, std::size_t row, std::uint64_t first, std::uint64_t count) {
    for (const std::size_t col : places(panel, first, count)) values.push_back(panel(row, col));
  }
  double times(const HeadRow& other) const {
    double sum = 0;
    for (std::size_t i = 0; i < values.size(); ++i) sum += values[i] * other.values[i];
    return sum;
  }
  std::vector<double> values;
};

void add_to_head(Panel& panel, std::size_t row, std::uint64_t first, double factor, const HeadRow& what) {
  const auto at = places(panel, first, what.values.size());
  for (std::size_t i = 0; i < at.size(); ++i) panel(row, at[i]) += factor * what.values[i];
}

/// The keys of a block that a query attends to: their places in the block.
std::vector<std::size_t> visible_keys(const KernelCall& call, std::uint64_t query, const Panel& keys) {
  std::vector<std::size_t> result;
  for (std::size_t key = 0; key < keys.rows.size(); ++key) {
    const std::uint64_t row = keys.rows[key];
    const bool hidden =
        call.model().attention == models::AttentionMask::causal && call.position(row) > call.position(query);
    if (call.sequence(row) == call.sequence(query) && !hidden) result.push_back(key);
  }
  return result;
}

/// The query heads among the columns of a panel.
std::vector<std::uint64_t> query_heads(const Heads& heads, const Panel& queries) {
  std::vector<std::uint64_t> result;
  for (const std::uint64_t col : queries.cols.numbers()) {
    if (col < heads.q.end() && col % heads.d == 0) result.push_back(col / heads.d);
  }
  return result;
}

}  // namespace

/// The output is at any time the attention to the keys so far; input: q, and k and v of a block. A query
/// whose output is not there yet starts anew.
void attend(KernelCall& call) {
  const Heads heads(call.model());
  const Panel q = call.input_columns(0, heads.q), k = call.input_columns(0, heads.k),
              v = call.input_columns(0, heads.v);
  Panel o = call.present();
  for (std::size_t i = 0; i < o.rows.size(); ++i) {
    const std::size_t own = q.rows.at(o.rows[i]);
    const std::vector<std::size_t> visible = visible_keys(call, o.rows[i], k);
    for (const std::uint64_t head : query_heads(heads, o)) {
      RowStatistics& statistics = call.statistics(o.rows[i], head);
      const auto at = places(o, head * heads.d, heads.d);
      if (std::isnan(o(i, at.front()))) {
        statistics = {};
        for (const std::size_t col : at) o(i, col) = 0;
      }
      if (visible.empty()) continue;
      const HeadRow query(q, own, head * heads.d, heads.d);
      std::vector<double> scores;
      for (const std::size_t key : visible) {
        scores.push_back(heads.scale() * query.times({k, key, heads.key_column(head), heads.d}));
      }
      const double maximum = std::max(statistics.maximum, *std::max_element(scores.begin(), scores.end()));
      const double before = statistics.sum * std::exp(statistics.maximum - maximum);
      statistics = {maximum, before};
      for (double& score : scores) statistics.sum += score = std::exp(score - maximum);
      for (const std::size_t col : at) o(i, col) *= before / statistics.sum;
      for (std::size_t j = 0; j < visible.size(); ++j) {
        add_to_head(o, i, head * heads.d, scores[j] / statistics.sum,
                    {v, visible[j], heads.value_column(head), heads.d});
      }
    }
  }
  call.put(o);
}

/// Inputs: O and dO.
void row_products(KernelCall& call) {
  const Heads heads(call.model());
  const Panel o = call.input(0), d_output = call.input(1);
  Panel products = call.output();
  for (std::size_t i = 0; i < products.rows.size(); ++i) {
    const std::uint64_t row = products.rows[i];
    for (std::size_t j = 0; j < products.cols.size(); ++j) {
      const std::uint64_t first = products.cols[j] * heads.d;
      products(i, j) =
          HeadRow(o, o.rows.at(row), first, heads.d).times({d_output, d_output.rows.at(row), first, heads.d});
    }
  }
  call.put(products);
}

/// With P from the final row statistics: dv = P^T dO, dS = P (dO v^T - row products), dq = dS k / sqrt(d),
/// dk = dS^T q / sqrt(d). Inputs: q, and k and v of a block; dO; row products.
void attend_backward(KernelCall& call) {
  const Heads heads(call.model());
  const Panel q = call.input_columns(0, heads.q), k = call.input_columns(0, heads.k),
              v = call.input_columns(0, heads.v);
  const Panel d_output = call.input(1), products = call.input(2);
  Panel gradients = call.output();  // the rows of queries and keys, the columns of q, k and v
  for (std::size_t i = 0; i < q.rows.size(); ++i) {
    const std::uint64_t row = q.rows[i];
    const std::vector<std::size_t> visible = visible_keys(call, row, k);
    for (const std::uint64_t head : query_heads(heads, q)) {
      const RowStatistics& statistics = call.statistics(row, head);
      const HeadRow query(q, i, head * heads.d, heads.d);
      const HeadRow gradient(d_output, d_output.rows.at(row), head * heads.d, heads.d);
      const double product = products(products.rows.at(row), products.cols.at(head));
      for (const std::size_t key : visible) {
        const HeadRow keyed(k, key, heads.key_column(head), heads.d);
        const HeadRow value(v, key, heads.value_column(head), heads.d);
        const double p = std::exp(heads.scale() * query.times(keyed) - statistics.maximum) / statistics.sum;
        const double ds = heads.scale() * p * (gradient.times(value) - product);
        const std::size_t own = gradients.rows.at(row), other = gradients.rows.at(k.rows[key]);
        add_to_head(gradients, own, head * heads.d, ds, keyed);
        add_to_head(gradients, other, heads.key_column(head), ds, query);
        add_to_head(gradients, other, heads.value_column(head), p, gradient);
      }
    }
  }
  call.put(gradients);
}

}  // namespace wafersim::workloads::numeric::kernels
