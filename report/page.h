#pragma once

#include <cstddef>
#include <filesystem>
#include <vector>

#include "report/study_database.h"

namespace wafersim::report {

/// So many tiles a browser can still draw.
inline constexpr std::size_t kMostPageTiles = std::size_t{1} << 16;

/// This build has pages.
bool has_page();
/// Throws IoError when this build has no page, so that a run need not end before that is known.
void require_page();
/// Throws PlanError when a run of so many used tiles is too large for the page.
void require_page_for(std::size_t tiles);

/// Writes report.html into the directory of a run, from the files there alone: one page that needs no other
/// file and no network. Throws IoError for files that are missing or cannot be used, and as the functions
/// above.
std::filesystem::path write_page(const std::filesystem::path& directory);

/// Writes one page that puts the runs in these directories side by side, from the files there alone. Throws as load_runs() and
/// write_page() do.
void write_comparison_page(const std::filesystem::path& path, const std::vector<std::filesystem::path>& directories);

/// Writes one page of all points of a study.
void write_study_page(const std::filesystem::path& path, const StudyHeader& header, const std::vector<PointRow>& rows);

}  // namespace wafersim::report
