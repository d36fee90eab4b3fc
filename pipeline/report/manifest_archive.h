// One description of a struct serves writing and reading: describe(archive, value) names its fields, a JsonWriter or
// JsonReader visits them. Private to this folder.
#pragma once

#include <array>
#include <concepts>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "runtime/base/digest.h"
#include "runtime/base/status.h"
#include "runtime/base/time.h"

namespace takt::pipeline {

// T is U or const U.
template <class T, class U>
concept Like = std::same_as<std::remove_const_t<T>, U>;

// 32 hexadecimal digits; nullopt otherwise.
std::optional<Digest> digest_from_hex(std::string_view text);

class JsonWriter {
 public:
  using Json = nlohmann::ordered_json;
  template <class T>
  void operator()(const char* name, const T& value) {
    object_[name] = encode(value);
  }
  [[nodiscard]] Json take() { return std::move(object_); }

  static Json encode(bool v) { return v; }
  static Json encode(const std::string& v) { return v; }
  static Json encode(const Digest& v) { return v.hex(); }
  static Json encode(Duration v) { return v.ns; }
  template <class Domain>
  static Json encode(TimePoint<Domain> v) {
    return v.ns;
  }
  template <class T>
  requires(std::is_arithmetic_v<T> && !std::same_as<T, bool>) static Json encode(T v) { return v; }
  template <class T>
  requires std::is_enum_v<T>
  static Json encode(T v) { return static_cast<std::int64_t>(v); }
  template <class T>
  static Json encode(const std::optional<T>& v) {
    return v ? encode(*v) : Json(nullptr);
  }
  template <class T>
  static Json encode(const std::vector<T>& v) {
    Json out = Json::array();
    for (const T& element : v) out.push_back(encode(element));
    return out;
  }
  template <class T, std::size_t n>
  static Json encode(const std::array<T, n>& v) {
    Json out = Json::array();
    for (const T& element : v) out.push_back(encode(element));
    return out;
  }
  template <class T>
  requires std::is_class_v<T>
  static Json encode(const T& v) {
    JsonWriter nested;
    describe(nested, v);
    return nested.take();
  }

 private:
  Json object_ = Json::object();
};

// Reads strictly: a missing key, a wrong type or a number out of range is an error that names its place. The first
// error is kept, later calls do nothing.
class JsonReader {
 public:
  using Json = nlohmann::ordered_json;
  JsonReader(const Json& object, std::string place, std::string& error)
      : object_(object), place_(std::move(place)), error_(error) {
    if (!object.is_object()) note("expected an object");
  }
  template <class T>
  void operator()(const char* name, T& value) {
    if (!error_.empty()) return;
    const auto at = object_.find(name);
    const std::string place = place_ + "/" + name;
    if (at == object_.end()) {
      error_ = place + ": missing";
      return;
    }
    decode(*at, place, error_, value);
  }

 private:
  void note(const char* what) {
    if (error_.empty()) error_ = (place_.empty() ? "/" : place_) + ": " + what;
  }
  static void wrong(const std::string& place, std::string& error, const char* expected) {
    if (error.empty()) error = place + ": expected " + expected;
  }

  static void decode(const Json& json, const std::string& place, std::string& error, bool& v) {
    if (!json.is_boolean()) return wrong(place, error, "true or false");
    v = json.get<bool>();
  }
  static void decode(const Json& json, const std::string& place, std::string& error, std::string& v) {
    if (!json.is_string()) return wrong(place, error, "text");
    v = json.get<std::string>();
  }
  static void decode(const Json& json, const std::string& place, std::string& error, Digest& v) {
    const auto digest = json.is_string() ? digest_from_hex(json.get_ref<const std::string&>()) : std::nullopt;
    if (!digest) return wrong(place, error, "32 hexadecimal digits");
    v = *digest;
  }
  static void decode(const Json& json, const std::string& place, std::string& error, Duration& v) {
    decode(json, place, error, v.ns);
  }
  template <class Domain>
  static void decode(const Json& json, const std::string& place, std::string& error, TimePoint<Domain>& v) {
    decode(json, place, error, v.ns);
  }
  template <std::integral T>
  requires(!std::same_as<T, bool>) static void decode(const Json& json, const std::string& place, std::string& error,
                                                      T& v) {
    bool fits = false;
    if (json.is_number_unsigned()) {
      const auto n = json.get<std::uint64_t>();
      fits = std::in_range<T>(n);
      if (fits) v = static_cast<T>(n);
    } else if (json.is_number_integer()) {
      const auto n = json.get<std::int64_t>();
      fits = std::in_range<T>(n);
      if (fits) v = static_cast<T>(n);
    }
    if (!fits) wrong(place, error, "a whole number in range");
  }
  template <std::floating_point T>
  static void decode(const Json& json, const std::string& place, std::string& error, T& v) {
    if (!json.is_number()) return wrong(place, error, "a number");
    v = json.get<T>();
  }
  template <class T>
  requires std::is_enum_v<T>
  static void decode(const Json& json, const std::string& place, std::string& error, T& v) {
    std::uint8_t n = 0;
    decode(json, place, error, n);
    v = static_cast<T>(n);
  }
  template <class T>
  static void decode(const Json& json, const std::string& place, std::string& error, std::optional<T>& v) {
    v.reset();
    if (!json.is_null()) decode(json, place, error, v.emplace());
  }
  template <class T>
  static void decode(const Json& json, const std::string& place, std::string& error, std::vector<T>& v) {
    if (!json.is_array()) return wrong(place, error, "an array");
    v.resize(json.size());
    for (std::size_t i = 0; i < v.size(); ++i) decode(json[i], place + "/" + std::to_string(i), error, v[i]);
  }
  template <class T, std::size_t n>
  static void decode(const Json& json, const std::string& place, std::string& error, std::array<T, n>& v) {
    if (!json.is_array() || json.size() != n) return wrong(place, error, "an array of the declared length");
    for (std::size_t i = 0; i < n; ++i) decode(json[i], place + "/" + std::to_string(i), error, v[i]);
  }
  template <class T>
  requires std::is_class_v<T>
  static void decode(const Json& json, const std::string& place, std::string& error, T& v) {
    JsonReader nested(json, place, error);
    if (error.empty()) describe(nested, v);
  }

  const Json& object_;
  std::string place_;
  std::string& error_;
};

}  // namespace takt::pipeline
