#pragma once

#include "apps/command_line.h"
#include "base/error.h"

namespace wafersim::apps {

/// Each command prints its result and returns the exit status; what goes wrong is thrown as in base/error.h.
ExitStatus run_command(const RunArguments& arguments);
ExitStatus report_command(const ReportArguments& arguments);
ExitStatus plot_command(const PlotArguments& arguments);
ExitStatus check_command(const CheckArguments& arguments);
ExitStatus topology_command(const TopologyArguments& arguments);
ExitStatus traffic_command(const TrafficArguments& arguments);
ExitStatus sweep_command(const SweepArguments& arguments);
ExitStatus validate_command(const ValidateArguments& arguments);
ExitStatus search_command(const SearchArguments& arguments);
ExitStatus advise_command(const AdviseArguments& arguments);
ExitStatus compare_command(const CompareArguments& arguments);
ExitStatus whatif_command(const WhatIfArguments& arguments);
ExitStatus collective_command(const CollectiveArguments& arguments);
ExitStatus kernel_command(const KernelArguments& arguments);
ExitStatus presets_command();

}  // namespace wafersim::apps
