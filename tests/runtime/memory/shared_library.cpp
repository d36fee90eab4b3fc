#include "tests/runtime/memory/shared_library.h"

#include <cstdlib>
#include <cstring>

void* library_allocate(std::size_t size) { return std::malloc(size); }
void library_copy(void* to, const void* from, std::size_t size) { std::memcpy(to, from, size); }
void library_move(void* to, const void* from, std::size_t size) { std::memmove(to, from, size); }
