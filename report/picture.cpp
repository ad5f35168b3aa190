#include "report/picture.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "report/picture_parts.h"
#include "report/run_directory.h"

namespace wafersim::report {
namespace {

std::string draw(const RunTables& run, const PictureRequest& request) {
  switch (request.kind) {
    case PictureKind::heatmap:
      return draw_heatmap_picture(run, request.measure, request.links);
    case PictureKind::breakdown:
      return draw_breakdown_picture(run);
    case PictureKind::memory:
      return draw_memory_picture(run);
    case PictureKind::timeline:
      return draw_timeline_picture(run, request.replica);
  }
  throw InternalError("a picture of no kind");
}

}  // namespace

std::string draw_picture(const std::filesystem::path& directory, const PictureRequest& request) {
  try {
    return draw(RunTables(directory), request);
  } catch (const nlohmann::json::exception& error) {
    throw IoError(fmt::format("cannot use {}: {}", (directory / kSummaryFile).string(), error.what()));
  }
}

}  // namespace wafersim::report
