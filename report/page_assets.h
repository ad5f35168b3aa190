#pragma once

#include <string_view>

namespace wafersim::report {

/// What the page of a run is made of besides its data. Empty in a build without it (WAFERSIM_REPORT_PAGE in
/// cmake/ReportPage.cmake).
struct PageAssets {
  std::string_view frame;  ///< HTML with @TITLE@, @STYLE@, @DATA@ and @SCRIPT@ in this order
  std::string_view style;
  std::string_view script;
};
PageAssets page_assets();

}  // namespace wafersim::report
