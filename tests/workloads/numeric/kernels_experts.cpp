#include "tests/workloads/numeric/kernels.h"
#include "tests/workloads/numeric/row_math.h"

namespace wafersim::workloads::numeric::kernels {

namespace {

/// Where a choice of a token stands among the slots of all experts for one rank's tokens.
std::size_t place(const Routing& routing, std::uint64_t token, const Choice& choice) {
  return choice.expert * routing.slots(token) + choice.slot;
}

/// The experts' rows for the tokens that are the rows of another matrix.
void require_slots(const KernelCall& call, const Panel& slots, const Panel& tokens) {
  const auto experts = static_cast<std::uint64_t>(call.model().experts);
  for (const std::uint64_t token : tokens.rows.numbers()) {
    if (slots.rows.size() == experts * call.problem().routing.slots(token)) continue;
    throw MeaningFault("the experts have another number of slots");
  }
}

void require_choices(const KernelCall& call, const Panel& gates) {
  if (gates.cols.size() != static_cast<std::size_t>(call.model().top_k))
    throw MeaningFault("a gate for each choice");
}

}  // namespace

/// The softmax over those logits that a token's choices name.
void route(KernelCall& call) {
  const Panel logits = call.input(0);
  Panel gates = call.output();
  require_choices(call, gates);
  for (std::size_t i = 0; i < gates.rows.size(); ++i) {
    const std::uint64_t token = gates.rows[i];
    const std::vector<Choice>& choices = call.problem().routing.of(token);
    for (std::size_t j = 0; j < choices.size(); ++j) {
      gates(i, j) = logits(logits.rows.at(token), logits.cols.at(choices[j].expert));
    }
    softmax_row(gates.values.row(i));
  }
  call.put(gates);
}

/// Inputs: dG and G.
void route_backward(KernelCall& call) {
  const Panel d_gates = call.input(0), gates = call.input(1);
  Panel d_logits = call.output();
  require_choices(call, gates);
  for (std::size_t i = 0; i < d_logits.rows.size(); ++i) {
    const std::uint64_t token = d_logits.rows[i];
    const std::vector<Choice>& choices = call.problem().routing.of(token);
    std::vector<double> d_chosen(choices.size());
    softmax_row_backward(gates.values.row(gates.rows.at(token)), d_gates.values.row(d_gates.rows.at(token)),
                         d_chosen);
    for (std::size_t j = 0; j < choices.size(); ++j)
      d_logits(i, d_logits.cols.at(choices[j].expert)) = d_chosen[j];
  }
  call.put(d_logits);
}

void dispatch(KernelCall& call) {
  const Panel x = call.input(0);
  Panel z = call.output();
  require_slots(call, z, x);
  for (std::size_t i = 0; i < x.rows.size(); ++i) {
    for (const Choice& choice : call.problem().routing.of(x.rows[i])) {
      if (choice.dropped) continue;
      const std::size_t row = place(call.problem().routing, x.rows[i], choice);
      for (std::size_t j = 0; j < x.cols.size(); ++j) z(row, z.cols.at(x.cols[j])) = x(i, j);
    }
  }
  call.put(z);
}

void dispatch_backward(KernelCall& call) {
  const Panel dz = call.input(0);
  Panel dx = call.output();
  require_slots(call, dz, dx);
  for (std::size_t i = 0; i < dx.rows.size(); ++i) {
    for (const Choice& choice : call.problem().routing.of(dx.rows[i])) {
      if (choice.dropped) continue;
      const std::size_t row = place(call.problem().routing, dx.rows[i], choice);
      for (std::size_t j = 0; j < dx.cols.size(); ++j) dx(i, j) += dz(row, dz.cols.at(dx.cols[j]));
    }
  }
  call.put(dx);
}

/// Inputs: Z and G.
void combine(KernelCall& call) {
  const Panel z = call.input(0), gates = call.input(1);
  Panel y = call.output();
  require_slots(call, z, y);
  require_choices(call, gates);
  for (std::size_t i = 0; i < y.rows.size(); ++i) {
    const std::vector<Choice>& choices = call.problem().routing.of(y.rows[i]);
    for (std::size_t c = 0; c < choices.size(); ++c) {
      if (choices[c].dropped) continue;
      const std::size_t row = place(call.problem().routing, y.rows[i], choices[c]);
      const double gate = gates(gates.rows.at(y.rows[i]), c);
      for (std::size_t j = 0; j < y.cols.size(); ++j) y(i, j) += gate * z(row, z.cols.at(y.cols[j]));
    }
  }
  call.put(y);
}

/// Inputs: dY, Z and G.
void combine_backward(KernelCall& call) {
  const Panel dy = call.input(0), z = call.input(1), gates = call.input(2);
  Panel dz = call.output(0), d_gates = call.output(1);
  require_slots(call, dz, dy);
  require_choices(call, d_gates);
  for (std::size_t i = 0; i < dy.rows.size(); ++i) {
    const std::uint64_t token = dy.rows[i];
    const std::vector<Choice>& choices = call.problem().routing.of(token);
    for (std::size_t c = 0; c < choices.size(); ++c) {
      if (choices[c].dropped) continue;
      const std::size_t row = place(call.problem().routing, token, choices[c]);
      const double gate = gates(gates.rows.at(token), c);
      double& d_gate = d_gates(d_gates.rows.at(token), c);
      for (std::size_t j = 0; j < dy.cols.size(); ++j) {
        dz(row, dz.cols.at(dy.cols[j])) = gate * dy(i, j);
        d_gate += dy(i, j) * z(row, z.cols.at(dy.cols[j]));
      }
    }
  }
  call.put(dz);
  call.put(d_gates);
}

}  // namespace wafersim::workloads::numeric::kernels
