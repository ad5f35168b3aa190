#pragma once

#include "models/transformer.h"
#include "workloads/plan.h"

/// The words of a scenario for what a plan says in few words.
namespace wafersim::workloads {

const char* to_string(SequenceParallel sp);
const char* to_string(models::Recompute recompute);

}  // namespace wafersim::workloads
