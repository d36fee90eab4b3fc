// Walks over the bytes of one ROS message, field by field in the order of its definition. One cursor for both
// serialisations, so that every message type is described once (ros_messages.cpp):
//
//   CDR (ROS 2)  XCDR1, OMG DDS-RTPS 2.3 section 10 and CORBA 3.3 part 2: four bytes of encapsulation, then values in
//                the announced byte order, each aligned to its own size counted from byte 4; strings end with NUL.
//   ROS 1        little-endian, packed, strings without NUL; a header has a sequence number in front.
//
// Every length is bounded by the bytes left. Text and byte arrays are views into the message: nothing is copied.
// After the first fault every read gives zero or nothing, and status() says what and where.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "runtime/base/status.h"
#include "runtime/base/time.h"

namespace takt::sensors::ros {

enum class Encoding { kCdr, kRos1 };

struct Header {  // std_msgs/Header
  SensorTime stamp;
  std::string_view frame_id;
};

class Cursor {
 public:
  Cursor(Encoding encoding, std::span<const std::byte> bytes) : bytes_(bytes), ros1_(encoding == Encoding::kRos1) {
    if (!ros1_) encapsulation();
  }

  template <class T>
  T number() {
    T value{};
    if (!align(sizeof(T)) || !have(sizeof(T), "a number")) return value;
    std::memcpy(&value, bytes_.data() + at_, sizeof(T));
    at_ += sizeof(T);
    return swap_ ? swapped(value) : value;
  }
  bool boolean() { return number<std::uint8_t>() != 0; }

  // An array of fixed length.
  template <class T>
  void numbers(std::span<T> out) {
    for (T& value : out) value = number<T>();
  }

  // Length of a sequence whose elements take at least `element` bytes each: a longer one cannot be in the message.
  std::uint32_t count(std::size_t element) {
    const auto length = number<std::uint32_t>();
    if (ok() && std::uint64_t{length} * element > left()) {
      fault("a sequence of " + std::to_string(length) + " elements exceeds the " + std::to_string(left()) +
            " bytes left");
    }
    return ok() ? length : 0;
  }

  std::span<const std::byte> bytes() { return take(count(1)); }  // uint8[]
  std::string_view text() {
    const auto block = take(count(1));
    std::string_view text(reinterpret_cast<const char*>(block.data()), block.size());
    if (!ros1_ && !text.empty()) {
      if (text.back() != '\0') {
        fault("a string does not end with NUL");
        return {};
      }
      text.remove_suffix(1);
    }
    return text;
  }
  std::span<const std::byte> take(std::size_t size) {
    if (!have(size, "a block")) return {};
    const auto block = bytes_.subspan(at_, size);
    at_ += size;
    return block;
  }

  SensorTime time() {
    // Seconds are unsigned in ROS 1 and signed in ROS 2.
    const std::int64_t seconds = ros1_ ? std::int64_t{number<std::uint32_t>()} : std::int64_t{number<std::int32_t>()};
    const auto nanos = number<std::uint32_t>();
    if (ok() && nanos >= 1'000'000'000) fault("a time with " + std::to_string(nanos) + " nanoseconds");
    return {ok() ? seconds * 1'000'000'000 + nanos : 0};
  }
  Header header() {
    if (ros1_) number<std::uint32_t>();  // sequence number
    Header header;
    header.stamp = time();
    header.frame_id = text();
    return header;
  }

  [[nodiscard]] bool ok() const { return reason_.empty(); }
  [[nodiscard]] Status status() const {
    if (!ok()) return fail(Code::kInput, reason_);
    return {};
  }
  void fault(std::string what) {
    if (ok()) reason_ = std::move(what) + " (at byte " + std::to_string(at_) + ")";
  }

 private:
  void encapsulation() {
    if (!have(4, "its encapsulation")) return;
    const auto high = static_cast<unsigned>(bytes_[0]), low = static_cast<unsigned>(bytes_[1]);
    if (bytes_.size() >= 4 && std::memcmp(bytes_.data(), "\x28\xB5\x2F\xFD", 4) == 0) {
      // rosbag2 packs messages inside an MCAP file, too, when asked to compress them one by one.
      fault("packed one by one with zstd, which takt reads in .db3 files only; `ros2 bag convert` unpacks them");
      return;
    }
    if (high != 0 || low > 1) {
      const char* what = high == 0 && low <= 3                ? "PL_CDR, a parameter list"
                         : high == 0 && low >= 6 && low <= 11 ? "XCDR2"
                                                              : "unknown";
      fault(
          "CDR encapsulation " + std::to_string(high << 8 | low) + " (" + what +
          ") is not supported; known: 0 and 1, plain CDR of either byte order. Record with a middleware set to XCDR1");
      return;
    }
    static_assert(std::endian::native == std::endian::little);
    swap_ = low == 0;
    at_ = 4;
  }
  bool align(std::size_t size) {
    if (ros1_ || !ok()) return ok();
    const std::size_t padding = (size - (at_ - 4) % size) % size;
    if (!have(padding, "padding")) return false;
    at_ += padding;
    return true;
  }
  bool have(std::size_t size, const char* what) {
    if (!ok()) return false;
    if (size <= left()) return true;
    fault(std::string("the message of ") + std::to_string(bytes_.size()) + " bytes ends inside " + what);
    return false;
  }
  [[nodiscard]] std::size_t left() const { return bytes_.size() - at_; }

  template <class T>
  static T swapped(T value) {
    std::byte raw[sizeof(T)];
    std::memcpy(raw, &value, sizeof(T));
    for (std::size_t i = 0; i < sizeof(T) / 2; ++i) std::swap(raw[i], raw[sizeof(T) - 1 - i]);
    std::memcpy(&value, raw, sizeof(T));
    return value;
  }

  std::span<const std::byte> bytes_;
  std::size_t at_ = 0;
  bool ros1_ = false, swap_ = false;
  std::string reason_;
};

}  // namespace takt::sensors::ros
