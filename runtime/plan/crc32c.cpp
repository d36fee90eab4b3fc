#include "runtime/plan/crc32c.h"

#include <array>
#include <cstring>

#if defined(__x86_64__)
#include <nmmintrin.h>
#elif defined(__aarch64__) && defined(__ARM_FEATURE_CRC32)
#include <arm_acle.h>
#endif

namespace takt::plan {
namespace {

constexpr std::uint32_t kReflected = 0x82F63B78;

// Row 0: one byte; row k: the same byte followed by k zero bytes, so that eight bytes are taken at once.
constexpr std::array<std::array<std::uint32_t, 256>, 8> make_table() {
  std::array<std::array<std::uint32_t, 256>, 8> table{};
  for (std::uint32_t i = 0; i < 256; ++i) {
    std::uint32_t crc = i;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1U) != 0 ? kReflected : 0U);
    table[0][i] = crc;
  }
  for (std::size_t row = 1; row < 8; ++row) {
    for (std::size_t i = 0; i < 256; ++i) {
      table[row][i] = (table[row - 1][i] >> 8) ^ table[0][table[row - 1][i] & 0xffU];
    }
  }
  return table;
}
constexpr auto kTable = make_table();

std::uint64_t load(const std::byte* p) {
  std::uint64_t word = 0;
  std::memcpy(&word, p, sizeof word);
  return word;
}

#if defined(__x86_64__)
constexpr bool kMayHaveInstruction = true;
bool has_instruction() { return __builtin_cpu_supports("sse4.2") != 0; }
__attribute__((target("sse4.2"))) std::uint32_t by_instruction(std::span<const std::byte> bytes) {
  std::uint64_t crc = 0xffffffff;
  const std::byte* p = bytes.data();
  std::size_t left = bytes.size();
  for (; left >= 8; left -= 8, p += 8) crc = _mm_crc32_u64(crc, load(p));
  auto tail = static_cast<std::uint32_t>(crc);
  for (; left > 0; --left, ++p) tail = _mm_crc32_u8(tail, static_cast<unsigned char>(*p));
  return ~tail;
}
#elif defined(__aarch64__) && defined(__ARM_FEATURE_CRC32)
constexpr bool kMayHaveInstruction = true;
bool has_instruction() { return true; }
std::uint32_t by_instruction(std::span<const std::byte> bytes) {
  std::uint32_t crc = 0xffffffff;
  const std::byte* p = bytes.data();
  std::size_t left = bytes.size();
  for (; left >= 8; left -= 8, p += 8) crc = __crc32cd(crc, load(p));
  for (; left > 0; --left, ++p) crc = __crc32cb(crc, static_cast<std::uint8_t>(*p));
  return ~crc;
}
#else
constexpr bool kMayHaveInstruction = false;
bool has_instruction() { return false; }
std::uint32_t by_instruction(std::span<const std::byte> bytes) { return crc32c_by_table(bytes); }
#endif

}  // namespace

std::uint32_t crc32c_by_table(std::span<const std::byte> bytes) {
  std::uint32_t crc = 0xffffffff;
  const std::byte* p = bytes.data();
  std::size_t left = bytes.size();
  for (; left >= 8; left -= 8, p += 8) {
    const std::uint64_t word = load(p) ^ crc;  // little-endian, as all targets are
    crc = 0;
    for (unsigned k = 0; k < 8; ++k) crc ^= kTable[7 - k][(word >> (8 * k)) & 0xffU];
  }
  for (; left > 0; --left, ++p) crc = (crc >> 8) ^ kTable[0][(crc ^ static_cast<std::uint32_t>(*p)) & 0xffU];
  return ~crc;
}

std::uint32_t crc32c(std::span<const std::byte> bytes) {
  static const bool instruction = kMayHaveInstruction && has_instruction();
  return instruction ? by_instruction(bytes) : crc32c_by_table(bytes);
}

}  // namespace takt::plan
