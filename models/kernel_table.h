#pragma once

#include <map>
#include <string>

#include "models/cost.h"

namespace wafersim::models {

/// Measured cycles of GEMM kernels by their exact shape.
using KernelTable = std::map<GemmShape, Cycle>;

/// Reads a CSV file with the header `batch,m,n,k,cycles` and one row of positive whole numbers per kernel;
/// blank lines are skipped. Throws IoError when the file cannot be read, ScenarioError with every bad line
/// ("file:line:column: ...").
KernelTable read_kernel_table(const std::string& path);

}  // namespace wafersim::models
