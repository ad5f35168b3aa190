#pragma once

#include "tests/workloads/numeric/kernel_call.h"

/// The mathematics of each Kernel, on whatever rows and columns the operation names.
namespace wafersim::workloads::numeric {

/// Does an operation; throws MeaningFault for kernels that move data only.
void run_kernel(KernelCall& call);

namespace kernels {

void linear(KernelCall& call);
void linear_input(KernelCall& call);
void linear_weight(KernelCall& call);
void bias_gradient(KernelCall& call);

void norm(KernelCall& call);
void norm_backward(KernelCall& call);
void activation(KernelCall& call);
void activation_backward(KernelCall& call);
void residual(KernelCall& call);
void copy(KernelCall& call);
void external(KernelCall& call);  ///< Kernel::memory: what comes from outside of the model

void route(KernelCall& call);
void route_backward(KernelCall& call);
void dispatch(KernelCall& call);
void dispatch_backward(KernelCall& call);
void combine(KernelCall& call);
void combine_backward(KernelCall& call);

void rotary(KernelCall& call, int direction);
void scores(KernelCall& call);
void softmax(KernelCall& call);
void values(KernelCall& call);
void value_gradient(KernelCall& call);
void softmax_gradient(KernelCall& call);
void score_gradient(KernelCall& call);
void query_gradient(KernelCall& call);
void key_gradient(KernelCall& call);

void attend(KernelCall& call);
void row_products(KernelCall& call);
void attend_backward(KernelCall& call);

void embed(KernelCall& call, bool with_positions);
void embed_backward(KernelCall& call);
void logits(KernelCall& call);
void logits_input(KernelCall& call);
void logits_weight(KernelCall& call);
void row_maximum(KernelCall& call);
void row_sum(KernelCall& call);
void probabilities(KernelCall& call);
void loss_gradient(KernelCall& call);

}  // namespace kernels
}  // namespace wafersim::workloads::numeric
