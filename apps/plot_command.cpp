#include <filesystem>

#include <fmt/format.h>

#include "apps/commands.h"
#include "apps/console.h"
#include "apps/picture_converter.h"
#include "report/atomic_file.h"
#include "report/picture.h"

namespace wafersim::apps {

ExitStatus plot_command(const PlotArguments& arguments) {
  const std::filesystem::path path = arguments.output;
  const std::string extension = path.extension().string();
  const std::string format = extension.empty() ? "" : extension.substr(1);
  if (format != "svg" && !can_convert_into(format)) {
    throw Error(ExitStatus::scenario, fmt::format("--output {}: its name must end with .svg, .pdf or .png", path.string()));
  }
  if (can_convert_into(format)) require_converter(format);
  const std::string picture = report::draw_picture(arguments.directory, arguments.picture);
  if (format == "svg") {
    report::write_file(path, picture);
  } else {
    convert_picture(picture, format, path);
  }
  print(path.string() + "\n");
  return ExitStatus::done;
}

}  // namespace wafersim::apps
