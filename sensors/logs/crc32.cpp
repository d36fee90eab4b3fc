#include "sensors/logs/crc32.h"

#include <zlib.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace takt::sensors {
namespace {

std::uint32_t by_zlib(std::uint32_t start, const std::byte* data, std::size_t size) {
  return static_cast<std::uint32_t>(::crc32_z(start, reinterpret_cast<const Bytef*>(data), size));
}

#if defined(__x86_64__)
// Folding, after Gopal et al., "Fast CRC Computation for Generic Polynomials Using PCLMULQDQ" (Intel, 2009): bytes are
// a polynomial over GF(2), and 16 of them may be replaced by a remainder that is added to the 16 (or 64) bytes behind.
// The constants are x^(512+32), x^(512-32), x^(128+32) and x^(128-32) modulo the polynomial, reflected, shifted by one.
__attribute__((target("pclmul,sse2"))) inline __m128i fold(__m128i bytes, __m128i constants, __m128i next) {
  const __m128i low = _mm_clmulepi64_si128(bytes, constants, 0x00);
  const __m128i high = _mm_clmulepi64_si128(bytes, constants, 0x11);
  return _mm_xor_si128(_mm_xor_si128(low, high), next);
}

__attribute__((target("pclmul,sse2"))) inline __m128i load(const std::byte* from) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
}

__attribute__((target("pclmul,sse2"))) std::uint32_t by_folding(std::uint32_t start, const std::byte* data,
                                                                std::size_t size) {
  const __m128i by_64 = _mm_set_epi64x(0x1c6e41596, 0x154442bd4);
  const __m128i by_16 = _mm_set_epi64x(0x0ccaa009e, 0x1751997d0);
  __m128i a = _mm_xor_si128(load(data), _mm_cvtsi32_si128(static_cast<int>(~start)));
  __m128i b = load(data + 16), c = load(data + 32), d = load(data + 48);
  data += 64;
  size -= 64;
  for (; size >= 64; data += 64, size -= 64) {
    a = fold(a, by_64, load(data));
    b = fold(b, by_64, load(data + 16));
    c = fold(c, by_64, load(data + 32));
    d = fold(d, by_64, load(data + 48));
  }
  a = fold(a, by_16, b);
  a = fold(a, by_16, c);
  a = fold(a, by_16, d);
  for (; size >= 16; data += 16, size -= 16) a = fold(a, by_16, load(data));
  alignas(16) std::byte rest[16];
  _mm_store_si128(reinterpret_cast<__m128i*>(rest), a);
  // 0xffffffff makes zlib's register zero: what was before is in `rest` already.
  return by_zlib(by_zlib(0xffffffffU, rest, sizeof rest), data, size);
}

const bool kCanFold = __builtin_cpu_supports("pclmul") != 0;
#endif

}  // namespace

std::uint32_t crc32(std::uint32_t start, std::span<const std::byte> bytes) {
#if defined(__x86_64__)
  if (kCanFold && bytes.size() >= 64) return by_folding(start, bytes.data(), bytes.size());
#endif
  return by_zlib(start, bytes.data(), bytes.size());
}

}  // namespace takt::sensors
