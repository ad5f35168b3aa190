#pragma once

#include "workloads/linear.h"

namespace wafersim::workloads {

/// What the products of a layer with blocks of their operands have in common, whichever operand travels.

/// A slice of a weight that the rank's tp rank holds. `expert`: of the weights of an MLP, whose.
WeightSlice weight_slice(const StepEmitter& step, Weight weight, int owner, int chunk, std::uint64_t expert = 0);

/// Columns of a weight that all slices of a tp rank have together.
std::uint64_t output_width(const StepEmitter& step, Weight weight, int tp);

/// Columns `slice` of the output tensor, of some tokens.
Views output_views(StepEmitter& step, const WeightSlice& slice, const TensorName& tensor, const TokenSet& tokens);

/// Which addends of the input's gradient a slice makes: its columns of the output.
Terms input_terms(const StepEmitter& step, Weight weight, int owner, int chunk);

/// The gradient of a slice of a product's weight that some tokens make, without that of an output bias.
Views gradient_writes(StepEmitter& step, const Product& product, const WeightSlice& slice, const TokenSet& tokens);

/// The part of some traffic that `part` of `whole` columns or rows cause.
Traffic scaled(const Traffic& traffic, std::uint64_t part, std::uint64_t whole);
/// What is read for every block of a stream stays in SRAM between them: after the first one it causes no other traffic.
Traffic repeated(const Traffic& all, bool first);

/// The three products where inputs travel (StepEmitter's tatp ranks form a line of more than one): as linear() and the
/// functions after it.
Deps linear_of_inputs(StepEmitter& step, const Product& product, const Deps& after);
Deps input_gradient_of_inputs(StepEmitter& step, const Product& product, const Deps& after);
Deps weight_gradient_of_inputs(StepEmitter& step, const Product& product, const Deps& after);

}  // namespace wafersim::workloads
