#include "report/page_assets.h"

namespace wafersim::report {

PageAssets page_assets() { return {}; }

}  // namespace wafersim::report
