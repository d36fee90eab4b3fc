#include "tools/convert/npy.h"

#include <charconv>
#include <cstring>
#include <string_view>

#include "runtime/base/file.h"

namespace takt::tools {

Result<NpyArray> parse_npy(const std::string& bytes, const std::string& name) {
  constexpr std::string_view kMagic("\x93NUMPY", 6);
  if (bytes.size() < 12 || !std::string_view(bytes).starts_with(kMagic))
    return fail(Code::kInput, name + ": is no .npy file");
  const int version = bytes[6];
  const std::size_t prefix = version == 1 ? 10 : 12;
  std::size_t header = 0;
  for (std::size_t i = prefix; i-- > 8;) header = header << 8 | static_cast<unsigned char>(bytes[i]);
  if (version < 1 || version > 3 || header > bytes.size() - prefix) {
    return fail(Code::kInput,
                name + ": a header of version " + std::to_string(version) + " that does not fit the file");
  }
  const std::string_view text = std::string_view(bytes).substr(prefix, header);
  if (text.find("'<f8'") == std::string_view::npos || text.find("'fortran_order': False") == std::string_view::npos) {
    return fail(Code::kInput, name + ": only little-endian float64 in C order is read; the header says " +
                                  std::string(text.substr(0, 60)));
  }
  std::size_t at = text.find("'shape': (");
  if (at == std::string_view::npos) return fail(Code::kInput, name + ": the header has no shape");
  at += 10;
  NpyArray array;
  std::size_t dimensions[2] = {1, 1}, count = 0;
  for (;;) {
    at = std::min(text.find_first_not_of(", ", at), text.size());
    const auto [end, error] =
        std::from_chars(text.data() + at, text.data() + text.size(), dimensions[std::min<std::size_t>(count, 1)]);
    if (error != std::errc()) break;
    at = static_cast<std::size_t>(end - text.data());
    if (++count > 2) break;
  }
  if (count == 0 || count > 2) return fail(Code::kInput, name + ": only one or two dimensions are read");
  array.rows = dimensions[0];
  array.columns = dimensions[1];
  std::size_t total = 0, size = 0;
  if (__builtin_mul_overflow(array.rows, array.columns, &total) ||
      __builtin_mul_overflow(total, sizeof(double), &size) || size != bytes.size() - prefix - header) {
    return fail(Code::kInput, name + ": " + std::to_string(bytes.size() - prefix - header) +
                                  " bytes of data do not fit the shape (" + std::to_string(array.rows) + ", " +
                                  std::to_string(array.columns) + ")");
  }
  array.values.resize(total);
  if (total != 0) std::memcpy(array.values.data(), bytes.data() + prefix + header, size);
  return array;
}

Result<NpyArray> load_npy(const std::string& path) {
  TAKT_ASSIGN(const std::string bytes, read_file(path));
  return parse_npy(bytes, path);
}

}  // namespace takt::tools
