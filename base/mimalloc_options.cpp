// Part of every program that allocates with mimalloc (the target wafersim_allocator).
#include <mimalloc.h>

namespace {

/// The heap on transparent huge pages, where the kernel gives them: a page fault costs small runs more than what they do with the
/// page, and the modules of a large wafer are spread over gigabytes (docs/performance.md has what that gains).
void ask_for_huge_pages() { mi_option_set_enabled_default(mi_option_large_os_pages, true); }

/// Before the constructors of libraries, the first of which allocates: what is there by then stays on small pages. Only programs
/// have functions that run so early.
[[gnu::section(".preinit_array"), gnu::used]] void (*const kEarly)() = ask_for_huge_pages;

}  // namespace
