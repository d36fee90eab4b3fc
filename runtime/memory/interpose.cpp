// Strong definitions of the allocating functions and of memcpy/memmove: they count for the calling thread and hand on
// to the C library. An executable's definitions win over those of libc for all its shared libraries too.
// free() is not replaced: every block comes from the C library's own allocator.
//
// Runs from the first instruction of the process, before any constructor: nothing here may need initialisation.
#include <dlfcn.h>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "runtime/memory/counters.h"

extern "C" {
// The C library's allocator under its second, exported names.
void* __libc_malloc(std::size_t size);
void* __libc_calloc(std::size_t count, std::size_t size);
void* __libc_realloc(void* block, std::size_t size);
void* __libc_memalign(std::size_t alignment, std::size_t size);
}

namespace {

using Copy = void* (*)(void*, const void*, std::size_t);

// Until the C library's functions are known. memmove's semantics serve memcpy as well.
void* copy_bytes(void* to, const void* from, std::size_t size) {
  auto* target = static_cast<unsigned char*>(to);
  const auto* source = static_cast<const unsigned char*>(from);
  const bool upward = reinterpret_cast<std::uintptr_t>(target) - reinterpret_cast<std::uintptr_t>(source) >= size;
  for (std::size_t i = 0; i < size; ++i) {
    const std::size_t at = upward ? i : size - 1 - i;
    target[at] = source[at];
    asm volatile("" : : : "memory");  // or the compiler sees a memmove here
  }
  return to;
}

constinit Copy next_memcpy = copy_bytes;
constinit Copy next_memmove = copy_bytes;

__attribute__((constructor(101))) void find_copies() {
  if (void* found = ::dlsym(RTLD_NEXT, "memcpy")) next_memcpy = reinterpret_cast<Copy>(found);
  if (void* found = ::dlsym(RTLD_NEXT, "memmove")) next_memmove = reinterpret_cast<Copy>(found);
}

void count_allocation() { takt::memory::bump(takt::memory::counters.allocations, 1); }
void count_copy(std::size_t size) { takt::memory::bump(takt::memory::counters.copied_bytes, size); }

}  // namespace

extern "C" {

void* malloc(std::size_t size) noexcept {
  count_allocation();
  return __libc_malloc(size);
}

void* calloc(std::size_t count, std::size_t size) noexcept {
  count_allocation();
  return __libc_calloc(count, size);
}

void* realloc(void* block, std::size_t size) noexcept {
  count_allocation();
  return __libc_realloc(block, size);
}

void* memalign(std::size_t alignment, std::size_t size) noexcept {
  count_allocation();
  return __libc_memalign(alignment, size);
}

void* aligned_alloc(std::size_t alignment, std::size_t size) noexcept {
  count_allocation();
  return __libc_memalign(alignment, size);
}

int posix_memalign(void** block, std::size_t alignment, std::size_t size) noexcept {
  if (alignment < sizeof(void*) || (alignment & (alignment - 1)) != 0) return EINVAL;
  count_allocation();
  void* memory = __libc_memalign(alignment, size);
  if (memory == nullptr) return ENOMEM;
  *block = memory;
  return 0;
}

void* memcpy(void* to, const void* from, std::size_t size) noexcept {
  count_copy(size);
  return next_memcpy(to, from, size);
}

void* memmove(void* to, const void* from, std::size_t size) noexcept {
  count_copy(size);
  return next_memmove(to, from, size);
}

// What memcpy and memmove become in libraries built with _FORTIFY_SOURCE.
void* __memcpy_chk(void* to, const void* from, std::size_t size, std::size_t room) noexcept {
  if (size > room) std::abort();
  count_copy(size);
  return next_memcpy(to, from, size);
}

void* __memmove_chk(void* to, const void* from, std::size_t size, std::size_t room) noexcept {
  if (size > room) std::abort();
  count_copy(size);
  return next_memmove(to, from, size);
}

}  // extern "C"
