#include "runtime/base/npy.h"

#include <charconv>
#include <cstring>
#include <optional>

#include "runtime/base/file.h"
#include "runtime/base/sizes.h"

namespace takt {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr std::size_t kMaxHeader = 1 << 16;

tl::unexpected<Error> bad(std::size_t offset, const std::string& what) {
  return fail(Code::kInput, "byte " + std::to_string(offset) + ": " + what);
}

// The value behind 'key': in the header's dictionary, up to its end.
std::optional<std::string_view> after_key(std::string_view header, std::string_view key) {
  const std::size_t at = header.find("'" + std::string(key) + "'");
  if (at == std::string_view::npos) return std::nullopt;
  std::size_t begin = header.find(':', at);
  if (begin == std::string_view::npos) return std::nullopt;
  begin = header.find_first_not_of(" ", begin + 1);
  return begin == std::string_view::npos ? std::nullopt : std::optional(header.substr(begin));
}

constexpr NpyType kTypes[] = {{"<f4", "f32", 4}, {"<f2", "f16", 2}, {"<f8", "f64", 8}, {"|i1", "i8", 1},
                              {"<i2", "i16", 2}, {"<i4", "i32", 4}, {"<i8", "i64", 8}, {"|u1", "u8", 1},
                              {"<u2", "u16", 2}, {"<u4", "u32", 4}, {"<u8", "u64", 8}, {"|b1", "bool", 1}};

}  // namespace

std::span<const NpyType> npy_types() { return kTypes; }

std::size_t npy_element_size(std::string_view type) {
  for (const NpyType& t : kTypes) {
    if (t.npy == type) return t.size;
  }
  return 0;
}

Result<NpyArray> parse_npy(std::span<const std::byte> file) {
  const std::string_view text(reinterpret_cast<const char*>(file.data()), file.size());
  if (text.substr(0, kMagic.size()) != kMagic) return bad(0, "is no .npy file (it does not begin with \\x93NUMPY)");
  if (text.size() < 12) return bad(text.size(), "ends inside the head");
  const auto major = static_cast<unsigned char>(text[6]);
  if (major < 1 || major > 3) return bad(6, ".npy version " + std::to_string(major) + " is not supported");
  const auto byte = [&](std::size_t i) { return static_cast<std::size_t>(static_cast<unsigned char>(text[i])); };
  const std::size_t begin = major == 1 ? 10 : 12;
  std::size_t length = byte(8) | byte(9) << 8;
  if (major > 1) length |= byte(10) << 16 | byte(11) << 24;
  if (length > kMaxHeader || length > text.size() - begin) return bad(8, "the header leaves the file");
  const std::string_view header = text.substr(begin, length);

  NpyArray out;
  const auto type = after_key(header, "descr");
  const std::size_t type_end = type && !type->empty() ? type->find((*type)[0], 1) : std::string_view::npos;
  if (type_end == std::string_view::npos || (*type)[0] != '\'') return bad(begin, "the header has no 'descr'");
  out.type = type->substr(1, type_end - 1);
  const std::size_t size = npy_element_size(out.type);
  if (size == 0) return bad(begin, "element type '" + out.type.substr(0, 16) + "' is not supported");
  const auto order = after_key(header, "fortran_order");
  if (!order || order->substr(0, 5) != "False") return bad(begin, "expected row-major elements (fortran_order False)");
  const auto shape = after_key(header, "shape");
  if (!shape || shape->empty() || (*shape)[0] != '(') return bad(begin, "the header has no 'shape'");

  std::uint64_t bytes = size;
  std::string_view list = shape->substr(1);
  for (;;) {
    const std::size_t next = list.find_first_not_of(" ,");
    if (next == std::string_view::npos) return bad(begin, "the shape has no end");
    list = list.substr(next);
    if (list[0] == ')') break;
    std::int64_t extent = -1;
    const auto [end, error] = std::from_chars(list.data(), list.data() + list.size(), extent);
    if (error != std::errc() || extent < 0 || out.shape.size() == 8) return bad(begin, "the shape cannot be read");
    out.shape.push_back(extent);
    const auto product = checked_mul(bytes, static_cast<std::uint64_t>(extent));
    if (!product) return bad(begin, "the shape is too large");
    bytes = *product;
    list = list.substr(static_cast<std::size_t>(end - list.data()));
  }
  const auto data = file.subspan(begin + length);
  if (data.size() != bytes) {
    return bad(begin + length, std::to_string(data.size()) + " bytes follow, the shape says " + std::to_string(bytes));
  }
  out.bytes.assign(data.begin(), data.end());
  return out;
}

Result<NpyArray> read_npy(const std::string& path) {
  TAKT_ASSIGN(const std::string file, read_file(path));
  auto array = parse_npy(std::as_bytes(std::span(file.data(), file.size())));
  if (!array) return fail(std::move(array.error()).with_context(path));
  return array;
}

std::string npy_bytes(const NpyArray& array) {
  std::string header = "{'descr': '" + array.type + "', 'fortran_order': False, 'shape': (";
  for (const std::int64_t extent : array.shape) header += std::to_string(extent) + ", ";
  header += "), }";
  // Data begin at a multiple of 64.
  const std::size_t padded = round_up(10 + header.size() + 1, 64) - 10;
  header.resize(padded - 1, ' ');
  header += '\n';
  std::string out(kMagic);
  out += '\x01';
  out += '\0';
  out += static_cast<char>(padded & 0xff);
  out += static_cast<char>(padded >> 8);
  out += header;
  out.append(reinterpret_cast<const char*>(array.bytes.data()), array.bytes.size());
  return out;
}

}  // namespace takt
