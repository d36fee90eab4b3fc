// Takes little-endian values off the front of untrusted bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

namespace takt::sensors {

// ok() turns false when the bytes do not suffice, and stays so; values are zero from then on.
class ByteCursor {
 public:
  explicit ByteCursor(std::span<const std::byte> bytes) : rest_(bytes) {}
  template <class T>
  T take() {
    T value{};
    const auto from = bytes(sizeof value);
    if (ok_) std::memcpy(&value, from.data(), sizeof value);
    return value;
  }
  std::span<const std::byte> bytes(std::uint64_t size) {
    if (!ok_ || size > rest_.size()) {
      ok_ = false;
      return {};
    }
    const auto front = rest_.first(static_cast<std::size_t>(size));
    rest_ = rest_.subspan(static_cast<std::size_t>(size));
    return front;
  }
  std::string_view text() {  // u32 length, then the bytes
    const auto b = bytes(take<std::uint32_t>());
    return {reinterpret_cast<const char*>(b.data()), b.size()};
  }
  [[nodiscard]] bool ok() const { return ok_; }
  [[nodiscard]] std::span<const std::byte> rest() const { return rest_; }

 private:
  std::span<const std::byte> rest_;
  bool ok_ = true;
};

}  // namespace takt::sensors
