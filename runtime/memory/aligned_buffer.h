// Memory where kernels and plans may put a tensor.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "runtime/base/status.h"

namespace takt::memory {

// Owns bytes that start at a multiple of 64; zero at first, so that every page is touched.
class AlignedBuffer {
 public:
  static constexpr std::size_t kAlignment = 64;

  AlignedBuffer() = default;
  // kEnvironment, naming the size, when there is no memory. Zero bytes take none: data() is then null.
  static Result<AlignedBuffer> create(std::uint64_t bytes);

  [[nodiscard]] std::byte* data() const { return data_.get(); }
  [[nodiscard]] std::span<std::byte> span() const { return {data_.get(), bytes_}; }

 private:
  struct Delete {
    void operator()(std::byte* p) const;
  };
  std::unique_ptr<std::byte, Delete> data_;
  std::uint64_t bytes_ = 0;
};

}  // namespace takt::memory
