#include <limits>

#include "tests/workloads/numeric/attention_heads.h"
#include "tests/workloads/numeric/kernels.h"
#include "tests/workloads/numeric/row_math.h"

namespace wafersim::workloads::numeric::kernels {

namespace {

/// Calls visit(row, head's place, key's position, row of the key in `keyed`) for each score that exists. Keys
/// whose row is not in `keyed` are left out, and so are masked ones.
template <class Visit>
void for_each_score(const KernelCall& call, const Panel& scores, const Panel& keyed, const Visit& visit) {
  const Heads heads(call.model());
  const bool causal = call.model().attention == models::AttentionMask::causal;
  for (std::size_t i = 0; i < scores.rows.size(); ++i) {
    const std::uint64_t last = causal ? call.position(scores.rows[i]) : heads.keys - 1;
    for (std::uint64_t key = 0; key <= last; ++key) {
      const auto row = keyed.rows.find(call.row_at(scores.rows[i], key));
      if (!row) throw MeaningFault("a key is not there");
      for (std::size_t head = 0; head < scores.cols.size(); ++head) visit(i, head, key, *row);
    }
  }
}

/// cell(i, head)[key] = factor x <a's row i at a_column(head), b's row of the key at b_column(head)>, or the
/// value of masked ones.
template <class Column, class KeyColumn>
void score_product(const KernelCall& call, Panel& scores, const Panel& a, const Column& a_column,
                   const Panel& b, const KeyColumn& b_column, double factor) {
  const Heads heads(call.model());
  for_each_score(call, scores, b, [&](std::size_t i, std::size_t head, std::uint64_t key, std::size_t row) {
    const std::size_t own = a.rows.at(scores.rows[i]);
    const auto x = places(a, a_column(scores.cols[head]), heads.d);
    const auto y = places(b, b_column(scores.cols[head]), heads.d);
    double sum = 0;
    for (std::size_t e = 0; e < heads.d; ++e) sum += a(own, x[e]) * b(row, y[e]);
    scores.cell(i, head)[key] = factor * sum;
  });
}

}  // namespace

void rotary(KernelCall& call, int direction) {
  const Heads heads(call.model());
  const Panel x = call.input(0);
  Panel y = call.output();
  if (!(x.cols == y.cols)) throw MeaningFault("heads are turned in place");
  for (std::size_t i = 0; i < y.rows.size(); ++i) {
    const std::size_t row = x.rows.at(y.rows[i]);
    for (const std::uint64_t first : y.cols.numbers()) {
      if (first % heads.d != 0) continue;
      const auto at = places(y, first, heads.d);
      std::vector<double> head;
      for (const std::size_t col : at) head.push_back(x(row, col));
      rotate_head(head, call.position(y.rows[i]), direction);
      for (std::size_t e = 0; e < heads.d; ++e) y(i, at[e]) = head[e];
    }
  }
  call.put(y);
}

/// S = q k^T / sqrt(d); minus infinity where the mask hides a key.
void scores(KernelCall& call) {
  const Heads heads(call.model());
  Panel s = call.output();
  for (double& value : s.values.data) value = -std::numeric_limits<double>::infinity();
  score_product(
      call, s, call.input_columns(0, heads.q), [&](std::uint64_t head) { return head * heads.d; },
      call.input_columns(0, heads.k), [&](std::uint64_t head) { return heads.key_column(head); },
      heads.scale());
  call.put(s);
}

void softmax(KernelCall& call) {
  const Panel s = call.input(0);
  Panel p = call.output();
  p.values = s.values;
  for (std::size_t i = 0; i < p.rows.size(); ++i) {
    for (std::size_t head = 0; head < p.cols.size(); ++head) softmax_row(p.cell(i, head));
  }
  call.put(p);
}

/// O = P v; inputs: P and v.
void values(KernelCall& call) {
  const Heads heads(call.model());
  const Panel p = call.input(0), v = call.input(1);
  Panel o = call.output();
  for_each_score(call, p, v, [&](std::size_t i, std::size_t head, std::uint64_t key, std::size_t row) {
    const std::size_t own = o.rows.at(p.rows[i]);
    const auto to = places(o, p.cols[head] * heads.d, heads.d);
    const auto from = places(v, heads.value_column(p.cols[head]), heads.d);
    for (std::size_t e = 0; e < heads.d; ++e) o(own, to[e]) += p.cell(i, head)[key] * v(row, from[e]);
  });
  call.put(o);
}

/// dv = P^T dO, summed over the query heads that share a value; inputs: P and dO.
void value_gradient(KernelCall& call) {
  const Heads heads(call.model());
  const Panel p = call.input(0), d_output = call.input(1);
  Panel dv = call.output();
  for_each_score(call, p, dv, [&](std::size_t i, std::size_t head, std::uint64_t key, std::size_t row) {
    const std::size_t own = d_output.rows.at(p.rows[i]);
    const auto from = places(d_output, p.cols[head] * heads.d, heads.d);
    const auto to = places(dv, heads.value_column(p.cols[head]), heads.d);
    for (std::size_t e = 0; e < heads.d; ++e) dv(row, to[e]) += p.cell(i, head)[key] * d_output(own, from[e]);
  });
  call.put(dv);
}

/// dP = dO v^T; inputs: dO and v.
void softmax_gradient(KernelCall& call) {
  const Heads heads(call.model());
  Panel dp = call.output();
  score_product(
      call, dp, call.input(0), [&](std::uint64_t head) { return head * heads.d; }, call.input(1),
      [&](std::uint64_t head) { return heads.value_column(head); }, 1);
  call.put(dp);
}

/// dS of the softmax; inputs: P and dP.
void score_gradient(KernelCall& call) {
  const Panel p = call.input(0), dp = call.input(1);
  Panel ds = call.output();
  if (!(p.rows == dp.rows) || !(p.cols == dp.cols)) throw MeaningFault("P and dP are not the same scores");
  for (std::size_t i = 0; i < ds.rows.size(); ++i) {
    for (std::size_t head = 0; head < ds.cols.size(); ++head) {
      softmax_row_backward(p.cell(i, head), dp.cell(i, head), ds.cell(i, head));
    }
  }
  call.put(ds);
}

/// dq = dS k / sqrt(d); inputs: dS and k.
void query_gradient(KernelCall& call) {
  const Heads heads(call.model());
  const Panel ds = call.input(0), k = call.input(1);
  Panel dq = call.output();
  for_each_score(call, ds, k, [&](std::size_t i, std::size_t head, std::uint64_t key, std::size_t row) {
    const std::size_t own = dq.rows.at(ds.rows[i]);
    const auto to = places(dq, ds.cols[head] * heads.d, heads.d);
    const auto from = places(k, heads.key_column(ds.cols[head]), heads.d);
    for (std::size_t e = 0; e < heads.d; ++e) {
      dq(own, to[e]) += heads.scale() * ds.cell(i, head)[key] * k(row, from[e]);
    }
  });
  call.put(dq);
}

/// dk = dS^T q / sqrt(d), summed over the query heads that share a key; inputs: dS and q.
void key_gradient(KernelCall& call) {
  const Heads heads(call.model());
  const Panel ds = call.input(0), q = call.input(1);
  Panel dk = call.output();
  for_each_score(call, ds, dk, [&](std::size_t i, std::size_t head, std::uint64_t key, std::size_t row) {
    const std::size_t own = q.rows.at(ds.rows[i]);
    const auto from = places(q, ds.cols[head] * heads.d, heads.d);
    const auto to = places(dk, heads.key_column(ds.cols[head]), heads.d);
    for (std::size_t e = 0; e < heads.d; ++e) {
      dk(row, to[e]) += heads.scale() * ds.cell(i, head)[key] * q(own, from[e]);
    }
  });
  call.put(dk);
}

}  // namespace wafersim::workloads::numeric::kernels
