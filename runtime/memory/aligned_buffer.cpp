#include "runtime/memory/aligned_buffer.h"

#include <cstring>
#include <new>
#include <string>

namespace takt::memory {

void AlignedBuffer::Delete::operator()(std::byte* p) const { ::operator delete (p, std::align_val_t{kAlignment}); }

Result<AlignedBuffer> AlignedBuffer::create(std::uint64_t bytes) {
  AlignedBuffer buffer;
  if (bytes == 0) return buffer;
  buffer.data_.reset(static_cast<std::byte*>(::operator new (bytes, std::align_val_t{kAlignment}, std::nothrow)));
  if (buffer.data_ == nullptr) {
    return fail(Code::kEnvironment,
                "no memory for a buffer of " + std::to_string(bytes) + " bytes; free memory or use a smaller model");
  }
  buffer.bytes_ = bytes;
  std::memset(buffer.data_.get(), 0, bytes);
  return buffer;
}

}  // namespace takt::memory
