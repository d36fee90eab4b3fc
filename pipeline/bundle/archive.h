// One list of fields per struct serves writing and reading: fields(archive, value) names them in order. Little-endian,
// as every target is; fixed widths; lengths before what they count. Private to this folder.
#pragma once

#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "runtime/base/digest.h"
#include "runtime/base/time.h"

namespace takt::pipeline::bundle {

static_assert(std::endian::native == std::endian::little);

// The largest value of an enumeration; there is one specialisation per enumeration in fields.h.
template <class E>
struct Last;

template <class T>
inline constexpr bool kIsVector = false;
template <class T>
inline constexpr bool kIsVector<std::vector<T>> = true;
template <class T>
inline constexpr bool kIsOptional = false;
template <class T>
inline constexpr bool kIsOptional<std::optional<T>> = true;
template <class T>
inline constexpr bool kIsArray = false;
template <class T, std::size_t n>
inline constexpr bool kIsArray<std::array<T, n>> = true;
template <class T, std::size_t n>
inline constexpr bool kIsArray<T[n]> = true;
template <class T>
inline constexpr bool kIsVariant = false;
template <class... T>
inline constexpr bool kIsVariant<std::variant<T...>> = true;

class Writer {
 public:
  template <class... T>
  void operator()(const T&... values) {
    (put(values), ...);
  }
  [[nodiscard]] std::vector<std::byte> take() { return std::move(bytes_); }

 private:
  void raw(const void* data, std::size_t size) {
    const auto* from = static_cast<const std::byte*>(data);
    bytes_.insert(bytes_.end(), from, from + size);
  }
  template <class T>
  void put(const T& v) {
    if constexpr (std::is_same_v<T, bool>) {
      put(static_cast<std::uint8_t>(v ? 1 : 0));
    } else if constexpr (std::is_enum_v<T>) {
      put(static_cast<std::uint8_t>(v));
    } else if constexpr (std::is_arithmetic_v<T>) {
      raw(&v, sizeof v);
    } else if constexpr (std::is_same_v<T, std::string>) {
      put(static_cast<std::uint32_t>(v.size()));
      raw(v.data(), v.size());
    } else if constexpr (std::is_same_v<T, Duration>) {
      put(v.ns);
    } else if constexpr (std::is_same_v<T, Digest>) {
      (*this)(v.high, v.low);
    } else if constexpr (kIsVector<T>) {
      put(static_cast<std::uint32_t>(v.size()));
      for (const auto& item : v) put(item);
    } else if constexpr (kIsArray<T>) {
      for (const auto& item : v) put(item);
    } else if constexpr (kIsOptional<T>) {
      put(v.has_value());
      if (v) put(*v);
    } else if constexpr (kIsVariant<T>) {
      put(static_cast<std::uint8_t>(v.index()));
      std::visit([&](const auto& held) { put(held); }, v);
    } else {
      fields(*this, v);
    }
  }

  std::vector<std::byte> bytes_;
};

// Keeps the first error and its place; later calls do nothing.
class Reader {
 public:
  Reader(std::span<const std::byte> bytes, std::uint64_t file_offset) : bytes_(bytes), file_offset_(file_offset) {}

  template <class... T>
  void operator()(T&... values) {
    (get(values), ...);
  }
  // Nothing may be left over.
  void finish() {
    if (error_.empty() && at_ != bytes_.size()) note("bytes that belong to nothing");
  }
  [[nodiscard]] const std::string& error() const { return error_; }

 private:
  static constexpr int kDeepest = 24;

  void note(const std::string& what) {
    if (error_.empty()) error_ = "byte " + std::to_string(file_offset_ + at_) + ": " + what;
  }
  bool raw(void* data, std::size_t size) {
    if (!error_.empty()) return false;
    if (size > bytes_.size() - at_) {
      note("the section ends inside a value");
      return false;
    }
    std::memcpy(data, bytes_.data() + at_, size);
    at_ += size;
    return true;
  }
  // Every element takes at least one byte: a length beyond what is left is none.
  std::uint32_t length() {
    std::uint32_t n = 0;
    get(n);
    if (error_.empty() && n > bytes_.size() - at_) note("a length beyond the end of the section");
    return error_.empty() ? n : 0;
  }

  template <class T>
  void get(T& v) {
    if constexpr (std::is_same_v<T, bool>) {
      std::uint8_t n = 0;
      get(n);
      if (error_.empty() && n > 1) note("neither true nor false");
      v = n == 1;
    } else if constexpr (std::is_enum_v<T>) {
      std::uint8_t n = 0;
      get(n);
      if (error_.empty() &&
          (n < static_cast<std::uint8_t>(Last<T>::first) || n > static_cast<std::uint8_t>(Last<T>::last)))
        return note("an unknown number of a kind");
      if (error_.empty()) v = static_cast<T>(n);
    } else if constexpr (std::is_floating_point_v<T>) {
      raw(&v, sizeof v);
      if (error_.empty() && !std::isfinite(v)) note("no finite number");
    } else if constexpr (std::is_arithmetic_v<T>) {
      raw(&v, sizeof v);
    } else if constexpr (std::is_same_v<T, std::string>) {
      const std::uint32_t n = length();
      v.assign(n, '\0');
      raw(v.data(), n);
    } else if constexpr (std::is_same_v<T, Duration>) {
      get(v.ns);
    } else if constexpr (std::is_same_v<T, Digest>) {
      (*this)(v.high, v.low);
    } else if constexpr (kIsVector<T>) {
      v.clear();
      for (std::uint32_t n = length(); n > 0 && error_.empty(); --n) get(v.emplace_back());
    } else if constexpr (kIsArray<T>) {
      for (auto& item : v) get(item);
    } else if constexpr (kIsOptional<T>) {
      bool there = false;
      get(there);
      v.reset();
      if (there && error_.empty()) get(v.emplace());
    } else if constexpr (kIsVariant<T>) {
      std::uint8_t index = 0;
      get(index);
      if (error_.empty() && !choose(v, index, std::make_index_sequence<std::variant_size_v<T>>{}))
        note("an unknown number of a kind");
    } else {
      if (++depth_ > kDeepest) note("nested too deeply");
      if (error_.empty()) fields(*this, v);
      --depth_;
    }
  }
  template <class T, std::size_t... i>
  bool choose(T& v, std::uint8_t index, std::index_sequence<i...>) {
    return ((index == i ? (get(v.template emplace<i>()), true) : false) || ...);
  }

  std::span<const std::byte> bytes_;
  std::uint64_t file_offset_;
  std::size_t at_ = 0;
  int depth_ = 0;
  std::string error_;
};

}  // namespace takt::pipeline::bundle
