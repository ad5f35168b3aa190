#include "apps/commands.h"
#include "apps/console.h"
#include "report/page.h"

namespace wafersim::apps {

ExitStatus report_command(const ReportArguments& arguments) {
  print(report::write_page(arguments.directory).string() + "\n");
  return ExitStatus::done;
}

}  // namespace wafersim::apps
