#include <filesystem>
#include <vector>

#include "apps/commands.h"
#include "apps/console.h"
#include "report/page.h"
#include "report/run_comparison.h"

namespace wafersim::apps {

ExitStatus compare_command(const CompareArguments& arguments) {
  const std::vector<std::filesystem::path> directories(arguments.runs.begin(), arguments.runs.end());
  const std::vector<report::FinishedRun> runs = report::load_runs(directories);
  if (!arguments.html.empty()) report::write_comparison_page(arguments.html, directories);
  print(arguments.json ? report::comparison_json(runs) : report::comparison_text(runs, terminal_style()));
  return ExitStatus::done;
}

}  // namespace wafersim::apps
