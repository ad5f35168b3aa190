#pragma once

#include <filesystem>

namespace wafersim::report {

/// Throws Error with ExitStatus::io when this build has no page, so that a run need not end before that is known.
void require_page();

/// Writes report.html into the directory of a run, from the files there alone: one page that needs no other file and no network.
/// Throws IoError for files that are missing or cannot be used, and as require_page().
std::filesystem::path write_page(const std::filesystem::path& directory);

}  // namespace wafersim::report
