#pragma once

#include "workloads/layer.h"

namespace wafersim::workloads {

/// Scores, softmax and the weighted sum of values after q, k and v are there. Allocates scores
/// (materialized), statistics (fused) and the output; `recompute` allocates the scores only, because the rest
/// was saved.
Deps emit_attention_core(StepEmitter& step, const Deps& qkv, const Retention& keep, bool recompute);

/// dP, dV, dS, dQ, dK: four products, and with a fused kernel the scores once more (Dao et al. 2022,
/// algorithm 4), because it saved their row statistics only. Returns when q, k and v have their gradients,
/// newly allocated; `keep`: they stay for a later step.
Deps emit_attention_core_gradient(StepEmitter& step, const Deps& d_output, bool keep);

/// Position encodings of q and k, in place, where the model has rotary ones.
Deps emit_rotary(StepEmitter& step, const Deps& qkv, const Retention& keep);

}  // namespace wafersim::workloads
