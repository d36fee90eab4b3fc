// Protobuf's wire format (https://protobuf.dev/programming-guides/encoding), as far as takt's messages need it. Own
// code instead of libprotobuf, so that the feeder reads bulk data as views into the message without copies, and a
// board links no protobuf. Tests check both directions against libprotobuf.
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

namespace takt::sensors::wire {

enum class Type : std::uint32_t { kVarint = 0, kFixed64 = 1, kLength = 2, kFixed32 = 5 };

// Appends fields to a string. Default values (0, "") are left out, as in proto3.
class Writer {
 public:
  explicit Writer(std::string& out) : out_(out) {}

  void unsigned_(std::uint32_t field, std::uint64_t value) {
    if (value == 0) return;
    tag(field, Type::kVarint);
    varint(value);
  }
  void signed_(std::uint32_t field, std::int64_t value) { unsigned_(field, static_cast<std::uint64_t>(value)); }
  // sint64 (zigzag) with presence: zero is written, an absent value is not.
  void present_signed(std::uint32_t field, std::int64_t value) {
    tag(field, Type::kVarint);
    varint(static_cast<std::uint64_t>(value) << 1 ^ static_cast<std::uint64_t>(value >> 63));
  }
  void fixed32(std::uint32_t field, std::uint32_t value) {
    if (value == 0) return;
    tag(field, Type::kFixed32);
    raw(&value, sizeof value);
  }
  void float_(std::uint32_t field, float value) { fixed32(field, std::bit_cast<std::uint32_t>(value)); }
  void double_(std::uint32_t field, double value) {
    const auto bits = std::bit_cast<std::uint64_t>(value);
    if (bits == 0) return;
    tag(field, Type::kFixed64);
    raw(&bits, sizeof bits);
  }
  void doubles(std::uint32_t field, std::span<const double> values) {  // repeated, packed
    if (values.empty()) return;
    tag(field, Type::kLength);
    varint(values.size_bytes());
    raw(values.data(), values.size_bytes());
  }
  void text(std::uint32_t field, std::string_view value) {
    if (!value.empty()) block(field, value);
  }
  void bytes(std::uint32_t field, std::span<const std::byte> value) {
    text(field, {reinterpret_cast<const char*>(value.data()), value.size()});
  }
  // fill(Writer&) writes the nested message; written even when empty (presence).
  template <class Fill>
  void message(std::uint32_t field, Fill&& fill) {
    std::string nested;
    Writer writer(nested);
    std::forward<Fill>(fill)(writer);
    block(field, nested);
  }
  void stamp(std::uint32_t field, SensorTime time) { seconds_and_nanos(field, time.ns, true); }
  void duration(std::uint32_t field, Duration span) { seconds_and_nanos(field, span.ns, false); }

 private:
  void varint(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) out_.push_back(static_cast<char>((value & 0x7f) | 0x80));
    out_.push_back(static_cast<char>(value));
  }
  void tag(std::uint32_t field, Type type) { varint(std::uint64_t{field} << 3 | static_cast<std::uint32_t>(type)); }
  void raw(const void* data, std::size_t size) { out_.append(static_cast<const char*>(data), size); }
  void block(std::uint32_t field, std::string_view value) {
    tag(field, Type::kLength);
    varint(value.size());
    out_.append(value);
  }
  // google.protobuf.Timestamp has nanos >= 0, google.protobuf.Duration nanos of the sign of the whole.
  void seconds_and_nanos(std::uint32_t field, std::int64_t ns, bool floored) {
    std::int64_t seconds = ns / 1'000'000'000;
    std::int64_t nanos = ns % 1'000'000'000;
    if (floored && nanos < 0) {
      --seconds;
      nanos += 1'000'000'000;
    }
    message(field, [&](Writer& w) {
      w.signed_(1, seconds);
      w.signed_(2, nanos);
    });
  }

  static_assert(std::endian::native == std::endian::little);
  std::string& out_;
};

// Walks over the fields of one message. After the loop, status() says whether the bytes were well formed:
//
//   Reader reader(bytes);
//   while (reader.next()) switch (reader.field()) { case 1: x = reader.double_(); break; }
//   TAKT_RETURN_IF_ERROR(reader.status());
class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes) : begin_(bytes.data()), at_(begin_), end_(at_ + bytes.size()) {}

  // Reads the next field; false at the end and after an error.
  bool next() {
    if (failed_ || at_ == end_) return false;
    field_start_ = at_;
    std::uint64_t tag = 0;
    if (!varint(tag)) return false;
    if (tag >> 3 == 0 || tag >> 3 > 0x1fffffff) return fail("invalid field number");
    field_ = static_cast<std::uint32_t>(tag >> 3);
    type_ = static_cast<Type>(tag & 7);
    switch (type_) {
      case Type::kVarint: return varint(value_);
      case Type::kFixed64: return fixed(8);
      case Type::kFixed32: return fixed(4);
      case Type::kLength: {
        std::uint64_t length = 0;
        if (!varint(length)) return false;
        if (length > left()) return fail("length " + std::to_string(length) + " exceeds the bytes left");
        block_ = {at_, static_cast<std::size_t>(length)};
        at_ += length;
        return true;
      }
    }
    return fail("unknown wire type");
  }
  [[nodiscard]] std::uint32_t field() const { return field_; }

  std::uint64_t unsigned_() { return is(Type::kVarint) ? value_ : 0; }
  std::uint32_t unsigned32() { return static_cast<std::uint32_t>(unsigned_()); }
  std::int64_t signed_() { return static_cast<std::int64_t>(unsigned_()); }
  std::uint32_t fixed32() { return is(Type::kFixed32) ? static_cast<std::uint32_t>(value_) : 0; }
  float float_() { return std::bit_cast<float>(fixed32()); }
  double double_() { return is(Type::kFixed64) ? std::bit_cast<double>(value_) : 0; }
  std::span<const std::byte> bytes() { return is(Type::kLength) ? block_ : std::span<const std::byte>(); }
  std::string_view text() {
    const auto block = bytes();
    return {reinterpret_cast<const char*>(block.data()), block.size()};
  }
  // Elements of a repeated double, packed or not: appends to `values` from `count` on; more than fit is an error.
  void doubles(std::span<double> values, std::size_t& count) {
    if (type_ == Type::kFixed64) {
      if (count == values.size()) {
        fail("too many elements");
      } else {
        values[count++] = double_();
      }
      return;
    }
    const auto block = bytes();
    if (block.size() % 8 != 0 || block.size() / 8 > values.size() - count) {
      fail("unexpected number of elements");
      return;
    }
    if (!block.empty()) std::memcpy(values.data() + count, block.data(), block.size());
    count += block.size() / 8;
  }
  // read(Reader&) reads the fields of a nested message.
  template <class Read>
  void message(Read&& read) {
    Reader nested(bytes());
    nested.begin_ = begin_;
    while (nested.next()) read(nested);
    if (nested.failed_ && !failed_) {
      failed_ = true;
      reason_ = nested.reason_;
    }
  }
  std::int64_t time_ns() {  // google.protobuf.Timestamp or Duration
    std::int64_t seconds = 0, nanos = 0;
    message([&](Reader& r) {
      if (r.field() == 1) seconds = r.signed_();
      if (r.field() == 2) nanos = r.signed_();
    });
    if (seconds > 9'000'000'000 || seconds < -9'000'000'000 || nanos <= -1'000'000'000 || nanos >= 1'000'000'000) {
      fail("time out of range");
      return 0;
    }
    return seconds * 1'000'000'000 + nanos;
  }
  SensorTime stamp() { return {time_ns()}; }

  bool fail(const std::string& what) {
    if (!failed_) {
      failed_ = true;
      reason_ = what + " (field " + std::to_string(field_) + " at byte " + std::to_string(field_start_ - begin_) + ")";
    }
    return false;
  }
  [[nodiscard]] Status status() const {
    if (failed_) return takt::fail(Code::kInput, reason_);
    return {};
  }

 private:
  [[nodiscard]] std::size_t left() const { return static_cast<std::size_t>(end_ - at_); }
  bool is(Type type) {
    if (type_ == type) return true;
    fail("wrong wire type " + std::to_string(static_cast<std::uint32_t>(type_)));
    return false;
  }
  bool varint(std::uint64_t& value) {
    value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      if (at_ == end_) return fail("message ends inside a number");
      const auto byte = static_cast<std::uint64_t>(*at_++);
      value |= (byte & 0x7f) << shift;
      if (byte < 0x80) return true;
    }
    return fail("number too long");
  }
  bool fixed(std::size_t size) {
    if (size > left()) return fail("message ends inside a number");
    value_ = 0;
    std::memcpy(&value_, at_, size);
    at_ += size;
    return true;
  }

  const std::byte* begin_;
  const std::byte* at_;
  const std::byte* end_;
  const std::byte* field_start_ = begin_;
  std::uint32_t field_ = 0;
  Type type_ = Type::kVarint;
  std::uint64_t value_ = 0;
  std::span<const std::byte> block_;
  bool failed_ = false;
  std::string reason_;
};

}  // namespace takt::sensors::wire
