// Part of every program that allocates with mimalloc (the target wafersim_allocator).
#include <mimalloc.h>

namespace {

/// The heap on transparent huge pages, where the kernel gives them: the modules of a large wafer and their names are spread over
/// gigabytes (docs/performance.md has what that gains).
[[maybe_unused]] const bool kOnHugePages = [] {
  mi_option_enable(mi_option_large_os_pages);
  return true;
}();

}  // namespace
