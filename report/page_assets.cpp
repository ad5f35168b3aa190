#include "report/page_assets.h"

// The assembler puts a file into the read-only data as it is: no compiler has to read half a megabyte of
// digits.
#define WAFERSIM_EMBED(name, path)              \
  asm(".pushsection .rodata\n"                  \
      ".global wafersim_page_" #name            \
      "\n"                                      \
      "wafersim_page_" #name                    \
      ":\n"                                     \
      ".incbin \"" path                         \
      "\"\n"                                    \
      ".global wafersim_page_" #name            \
      "_end\n"                                  \
      "wafersim_page_" #name                    \
      "_end:\n"                                 \
      ".byte 0\n"                               \
      ".popsection\n");                         \
  extern "C" const char wafersim_page_##name[]; \
  extern "C" const char wafersim_page_##name##_end[]

WAFERSIM_EMBED(frame, WAFERSIM_PAGE_WEB "/page.html");
WAFERSIM_EMBED(style, WAFERSIM_PAGE_BUILD "/main.css");
WAFERSIM_EMBED(script, WAFERSIM_PAGE_BUILD "/main.js");

namespace wafersim::report {
namespace {

std::string_view between(const char* begin, const char* end) {
  return {begin, static_cast<std::size_t>(end - begin)};
}

}  // namespace

PageAssets page_assets() {
  return {between(wafersim_page_frame, wafersim_page_frame_end),
          between(wafersim_page_style, wafersim_page_style_end),
          between(wafersim_page_script, wafersim_page_script_end)};
}

}  // namespace wafersim::report
