#include "apps/commands.h"
#include "apps/console.h"
#include "apps/planless_run.h"
#include "report/kernel_report.h"
#include "workloads/mesh_kernel.h"

namespace wafersim::apps {

ExitStatus kernel_command(const KernelArguments& arguments) {
  const PlanlessRun run(arguments.scenario, "kernel");
  const config::Scenario& scenario = run.scenario();
  const auto kernel = workloads::make_mesh_kernel(*scenario.kernel, run.hardware(), run.mesh());
  const sim::Measurements measurements = run.simulate([&] { return kernel->trace(); });

  const workloads::KernelWork work = kernel->work();
  const report::KernelReport report{
      .name = scenario.name,
      .scenario_json = config::kernel_json(scenario),
      .kind = kernel->name(),
      .shape = kernel->shape(),
      .work = work,
      .group = kernel->group(),
      .model_cycles = kernel->model_cycles(),
      .peak_flops_per_cycle = work.on_matrix ? run.hardware().matrix_flops_per_cycle : run.hardware().vector_flops_per_cycle,
      .sram_capacity = run.hardware().sram_capacity,
      .seconds = run.hardware().seconds(measurements.cycles),
      .fidelity = config::word(scenario.network.fidelity),
      .mesh = run.mesh(),
      .measurements = measurements};
  print(arguments.json ? report::kernel_json(report) : report::kernel_text(report));
  return measurements.partial ? ExitStatus::interrupted : ExitStatus::done;
}

}  // namespace wafersim::apps
