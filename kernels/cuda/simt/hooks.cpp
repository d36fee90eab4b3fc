// What g++ calls before memory accesses of sources compiled with -fsanitize=thread (names and forms as gcc's
// sanitizer.def has them). Only for programs whose every such source is a kernel; libtsan is not linked.
#include "kernels/cuda/simt/machine.h"

namespace {

using takt::simt::Machine;

inline void touch(const void* address, std::size_t bytes, bool write, const void* pc) {
  Machine::Impl* const machine = takt::simt::machine_in_use();
  if (machine != nullptr && machine->judges()) machine->access(address, bytes, write, false, {}, pc);
}

}  // namespace

extern "C" {

// NOLINTBEGIN(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp): the compiler's names
void __tsan_init() {}
void __tsan_func_entry(void*) {}
void __tsan_func_exit() {}
void __tsan_vptr_update(void*, void*) {}
void __tsan_vptr_read(void*) {}
void __tsan_read_range(const void* a, std::size_t n) { touch(a, n, false, __builtin_return_address(0)); }
void __tsan_write_range(const void* a, std::size_t n) { touch(a, n, true, __builtin_return_address(0)); }

#define TAKT_ACCESS(bytes)                                                                                  \
  void __tsan_read##bytes(const void* a) { touch(a, bytes, false, __builtin_return_address(0)); }           \
  void __tsan_write##bytes(const void* a) { touch(a, bytes, true, __builtin_return_address(0)); }           \
  void __tsan_unaligned_read##bytes(const void* a) { touch(a, bytes, false, __builtin_return_address(0)); } \
  void __tsan_unaligned_write##bytes(const void* a) { touch(a, bytes, true, __builtin_return_address(0)); } \
  void __tsan_volatile_read##bytes(const void* a) { touch(a, bytes, false, __builtin_return_address(0)); }  \
  void __tsan_volatile_write##bytes(const void* a) { touch(a, bytes, true, __builtin_return_address(0)); }
TAKT_ACCESS(1)
TAKT_ACCESS(2)
TAKT_ACCESS(4)
TAKT_ACCESS(8)
TAKT_ACCESS(16)
#undef TAKT_ACCESS
// NOLINTEND(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp)

}  // extern "C"
