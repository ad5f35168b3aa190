#include "report/page.h"

#include <fmt/format.h>

#include <string>
#include <string_view>

#include "base/error.h"
#include "base/text.h"
#include "report/atomic_file.h"
#include "report/deflate.h"
#include "report/packed.h"
#include "report/page_assets.h"
#include "report/page_columns.h"
#include "report/page_data.h"
#include "report/run_comparison.h"
#include "report/run_directory.h"
#include "report/svg.h"

namespace wafersim::report {
namespace {

/// Writes the frame up to a mark, which it must have, then `content`; returns what is left of the frame.
std::string_view fill(AtomicFile& file, std::string_view frame, std::string_view mark,
                      std::string_view content) {
  const std::size_t at = frame.find(mark);
  require_invariant(at != std::string_view::npos, "the report page has lost a mark");
  file.write(frame.substr(0, at));
  file.write(content);
  return frame.substr(at + mark.size());
}

std::string text_of(const Json& data) { return data.dump(-1, ' ', false, Json::error_handler_t::replace); }

void write_page_file(const std::filesystem::path& path, const std::string& title, const std::string& data) {
  const PageAssets assets = page_assets();
  AtomicFile file(path);
  std::string_view rest = fill(file, assets.frame, "@TITLE@", escaped(title + " - wafersim"));
  rest = fill(file, rest, "@STYLE@", assets.style);
  rest = fill(file, rest, "@DATA@", base64(deflated(data)));
  rest = fill(file, rest, "@SCRIPT@", assets.script);
  file.write(rest);
  file.commit();
}

}  // namespace

bool has_page() { return !page_assets().script.empty(); }

void require_page() {
  if (has_page()) return;
  throw IoError(
      "this build of wafersim has no report page: node and npm were not there when it was configured. "
      "scripts/install-dependencies installs them; then configure with -DWAFERSIM_REPORT_PAGE=ON and build "
      "again");
}

void require_page_for(std::size_t tiles) {
  if (tiles <= kMostPageTiles) return;
  throw PlanError(
      fmt::format("the report page shows at most {} tiles, this run uses {}; without --report the tables "
                  "have all of them",
                  human_count(kMostPageTiles), human_count(tiles)));
}

std::filesystem::path write_page(const std::filesystem::path& directory) {
  require_page();
  std::string title;
  std::string data;
  try {
    const RunTables run(directory);
    require_page_for(run.tiles.rows());
    title = run.summary.at("name").get<std::string>();
    data = page_data(run);
  } catch (const nlohmann::json::exception& error) {
    throw IoError(fmt::format("cannot use {}: {}", (directory / kSummaryFile).string(), error.what()));
  }
  const std::filesystem::path path = directory / kReportFile;
  write_page_file(path, title, data);
  return path;
}

void write_comparison_page(const std::filesystem::path& path, const std::vector<std::filesystem::path>& directories) {
  require_page();
  const std::vector<FinishedRun> finished = load_runs(directories);
  Json data = {{"comparison", comparison_part(finished)}, {"runs", Json::array()}};
  std::string title;
  for (std::size_t i = 0; i < directories.size(); ++i) {
    const RunTables run(directories[i]);
    require_page_for(run.tiles.rows());
    data["runs"].push_back(run_part(run));
    title += (i == 0 ? "" : " and ") + finished[i].label;
  }
  write_page_file(path, title, text_of(data));
}

void write_study_page(const std::filesystem::path& path, const StudyHeader& header, const std::vector<PointRow>& rows) {
  require_page();
  write_page_file(path, header.name, text_of({{"study", study_part(header, rows)}}));
}

}  // namespace wafersim::report
