#include "base/huge_pages.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdint>

namespace wafersim {
namespace {

std::size_t whole_pages(std::size_t bytes) { return (bytes + kHugePage - 1) / kHugePage * kHugePage; }

}  // namespace

void* allocate_huge(std::size_t bytes) {
  const std::size_t size = whole_pages(bytes);
  // mmap aligns to small pages only: ask for one huge page more and give back what is over at both ends.
  constexpr int kFlags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
  void* const mapped = mmap(nullptr, size + kHugePage, PROT_READ | PROT_WRITE, kFlags, -1, 0);
  if (mapped == MAP_FAILED) throw std::bad_alloc();
  const auto start = reinterpret_cast<std::uintptr_t>(mapped);
  const std::uintptr_t aligned = (start + kHugePage - 1) / kHugePage * kHugePage;
  if (aligned != start) munmap(mapped, aligned - start);
  const std::size_t behind = start + kHugePage - aligned;
  if (behind != 0) munmap(reinterpret_cast<void*>(aligned + size), behind);
#ifdef MADV_HUGEPAGE
  madvise(reinterpret_cast<void*>(aligned), size, MADV_HUGEPAGE);  // a hint; where it is refused the pages stay small
#endif
  return reinterpret_cast<void*>(aligned);
}

void free_huge(void* block, std::size_t bytes) noexcept { munmap(block, whole_pages(bytes)); }

Arena::~Arena() {
  for (const Block& block : blocks_) free_huge(block.start, block.bytes);
}

void* Arena::allocate(std::size_t bytes, std::size_t alignment) {
  const auto align = [&] {
    const std::size_t over = reinterpret_cast<std::uintptr_t>(free_) % alignment;
    return over == 0 ? 0 : alignment - over;
  };
  std::size_t gap = align();
  if (gap + bytes > left_) {
    const std::size_t size = whole_pages(std::max<std::size_t>(bytes, 1));
    blocks_.reserve(blocks_.size() + 1);
    free_ = static_cast<char*>(allocate_huge(size));
    blocks_.push_back({free_, size});
    left_ = size;
    gap = 0;
  }
  char* const start = free_ + gap;
  free_ = start + bytes;
  left_ -= gap + bytes;
  return start;
}

}  // namespace wafersim
