#pragma once
#include <cstddef>

extern "C" {
void* library_allocate(std::size_t size);
void library_copy(void* to, const void* from, std::size_t size);
void library_move(void* to, const void* from, std::size_t size);
}
