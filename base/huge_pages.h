#pragma once

#include <cstddef>
#include <limits>
#include <memory>
#include <memory_resource>
#include <new>
#include <type_traits>
#include <utility>
#include <vector>

namespace wafersim {

/// Memory in blocks that the kernel is asked to put on huge pages (2 MiB on x86; transparent huge pages must be `madvise` or
/// `always`, elsewhere it is plain memory). The state of thousands of tiles overflows the TLB of small pages, and every
/// event touches other tiles.
inline constexpr std::size_t kHugePage = std::size_t{1} << 21;

/// Throws std::bad_alloc. `bytes` > 0.
void* allocate_huge(std::size_t bytes);
void free_huge(void* block, std::size_t bytes) noexcept;

/// For containers that grow large: huge pages from half of one on, plain memory below.
template <class T>
struct HugePageAllocator {
  using value_type = T;
  HugePageAllocator() = default;
  template <class U>
  HugePageAllocator(const HugePageAllocator<U>& /*other*/) {}

  T* allocate(std::size_t count) {
    if (count > std::numeric_limits<std::size_t>::max() / sizeof(T)) throw std::bad_array_new_length();
    const std::size_t bytes = count * sizeof(T);
    if (bytes < kHugePage / 2) return std::allocator<T>().allocate(count);
    return static_cast<T*>(allocate_huge(bytes));
  }
  void deallocate(T* block, std::size_t count) noexcept {
    const std::size_t bytes = count * sizeof(T);
    if (bytes < kHugePage / 2) return std::allocator<T>().deallocate(block, count);
    free_huge(block, bytes);
  }
  template <class U>
  bool operator==(const HugePageAllocator<U>& /*other*/) const {
    return true;
  }
};

template <class T>
using HugeVector = std::vector<T, HugePageAllocator<T>>;

/// Lays objects of any size side by side on huge pages. What is in it lives as long as the arena; destructors are the
/// owner's affair (see make()).
class Arena {
 public:
  Arena() = default;
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  /// `alignment` is a power of two up to a page.
  void* allocate(std::size_t bytes, std::size_t alignment);

  /// `count` value-initialized objects; T needs no destructor.
  template <class T>
  T* make_array(std::size_t count) {
    static_assert(std::is_trivially_destructible_v<T>);
    T* const first = static_cast<T*>(allocate(count * sizeof(T), alignof(T)));
    for (std::size_t i = 0; i < count; ++i) new (first + i) T();
    return first;
  }

  /// Destroys an object but leaves its memory to the arena.
  struct Destroy {
    template <class T>
    void operator()(T* object) const {
      object->~T();
    }
  };
  template <class T>
  using Owned = std::unique_ptr<T, Destroy>;
  /// The result must go before the arena does.
  template <class T, class... Arguments>
  Owned<T> make(Arguments&&... arguments) {
    return Owned<T>(new (allocate(sizeof(T), alignof(T))) T(std::forward<Arguments>(arguments)...));
  }

 private:
  struct Block {
    void* start;
    std::size_t bytes;
  };
  std::vector<Block> blocks_;
  char* free_ = nullptr;  ///< what is left of the last block
  std::size_t left_ = 0;
};

/// An arena as the memory behind a pool: what is given back is lost, so the pool has to reuse it.
class ArenaMemory final : public std::pmr::memory_resource {
 public:
  explicit ArenaMemory(Arena& arena) : arena_(arena) {}

 private:
  void* do_allocate(std::size_t bytes, std::size_t alignment) override { return arena_.allocate(bytes, alignment); }
  void do_deallocate(void* /*block*/, std::size_t /*bytes*/, std::size_t /*alignment*/) override {}
  bool do_is_equal(const memory_resource& other) const noexcept override { return this == &other; }

  Arena& arena_;
};

}  // namespace wafersim
