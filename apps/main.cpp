#include <cstdlib>
#include <exception>
#include <new>
#include <string>
#include <systemc>
#include <variant>

#include "apps/command_line.h"
#include "apps/commands.h"
#include "apps/console.h"
#include "base/error.h"

namespace {

using namespace wafersim;

ExitStatus execute(const apps::RunArguments& arguments) { return apps::run_command(arguments); }
ExitStatus execute(const apps::ReportArguments& arguments) { return apps::report_command(arguments); }
ExitStatus execute(const apps::PlotArguments& arguments) { return apps::plot_command(arguments); }
ExitStatus execute(const apps::CheckArguments& arguments) { return apps::check_command(arguments); }
ExitStatus execute(const apps::TopologyArguments& arguments) { return apps::topology_command(arguments); }
ExitStatus execute(const apps::TrafficArguments& arguments) { return apps::traffic_command(arguments); }
ExitStatus execute(const apps::SweepArguments& arguments) { return apps::sweep_command(arguments); }
ExitStatus execute(const apps::ValidateArguments& arguments) { return apps::validate_command(arguments); }
ExitStatus execute(const apps::SearchArguments& arguments) { return apps::search_command(arguments); }
ExitStatus execute(const apps::AdviseArguments& arguments) { return apps::advise_command(arguments); }
ExitStatus execute(const apps::CompareArguments& arguments) { return apps::compare_command(arguments); }
ExitStatus execute(const apps::WhatIfArguments& arguments) { return apps::whatif_command(arguments); }
ExitStatus execute(const apps::CollectiveArguments& arguments) { return apps::collective_command(arguments); }
ExitStatus execute(const apps::KernelArguments& arguments) { return apps::kernel_command(arguments); }
ExitStatus execute(const apps::PresetsArguments&) { return apps::presets_command(); }
ExitStatus execute(const apps::Answered&) { return ExitStatus::done; }

ExitStatus guarded(const apps::Command& command) {
  try {
    return std::visit([](const auto& arguments) { return execute(arguments); }, command);
  } catch (const Error& error) {
    apps::print_error(error.what());
    return error.status();
  } catch (const std::bad_alloc&) {
    apps::print_error("this machine has not enough memory for the run");
    return ExitStatus::plan;
  } catch (const std::exception& error) {
    apps::print_error(std::string(error.what()) +
                      "\nThis is a bug in wafersim; please report it with the scenario.");
    return ExitStatus::internal;
  }
}

}  // namespace

/// Called by SystemC's elaboration.
int sc_main(int argc, char* argv[]) {
  sc_core::sc_report_handler::set_actions(sc_core::SC_INFO, sc_core::SC_DO_NOTHING);
  sc_core::sc_report_handler::set_actions(sc_core::SC_WARNING, sc_core::SC_THROW);
  const apps::Command command = apps::parse_command_line(argc, argv);
  if (const auto* answered = std::get_if<apps::Answered>(&command)) return answered->status;
  return static_cast<int>(guarded(command));
}

/// Takes the place of the library's main(), which prints a banner before sc_main can ask it not to.
int main(int argc, char* argv[]) {
  setenv("SYSTEMC_DISABLE_COPYRIGHT_MESSAGE", "1", 1);
  return sc_core::sc_elab_and_sim(argc, argv);
}
