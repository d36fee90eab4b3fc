// XXH3-128 digests of inputs, chunks and outputs.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "runtime/base/status.h"

namespace takt {

struct Digest {
  std::uint64_t high = 0;
  std::uint64_t low = 0;
  friend constexpr auto operator<=>(const Digest&, const Digest&) = default;
  [[nodiscard]] std::string hex() const;  // 32 lower-case digits, canonical order
};

Digest digest(std::span<const std::byte> bytes);
Digest digest(std::string_view text);
// Streams the file; of a folder: over the names and digests of all its files, in the order of their names. kInput when
// it cannot be read.
Result<Digest> digest_file(const std::string& path);

// Incremental digest: feeding pieces gives the digest of their concatenation. Allocates at construction only.
class Digester {
 public:
  Digester();
  ~Digester();
  Digester(Digester&&) noexcept;
  Digester& operator=(Digester&&) noexcept;
  void reset();
  void add(std::span<const std::byte> bytes);
  template <class T>
  void add_value(const T& value) {
    add(std::as_bytes(std::span<const T, 1>(&value, 1)));
  }
  [[nodiscard]] Digest finish() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace takt
