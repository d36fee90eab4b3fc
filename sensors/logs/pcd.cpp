#include "sensors/logs/pcd.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <map>

#include "sensors/logs/point_fields.h"

namespace takt::sensors {
namespace {

using log::NumericType;

std::vector<std::string_view> words_of(std::string_view line) {
  std::vector<std::string_view> words;
  for (std::size_t at = 0; at < line.size();) {
    const std::size_t begin = line.find_first_not_of(" \t\r", at);
    if (begin == std::string_view::npos) break;
    const std::size_t end = std::min(line.find_first_of(" \t\r", begin), line.size());
    words.push_back(line.substr(begin, end - begin));
    at = end;
  }
  return words;
}

bool to_count(std::string_view text, std::uint64_t& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

NumericType type_of(std::string_view letter, std::uint64_t size) {
  if (letter == "F")
    return size == 4 ? NumericType::kFloat32 : size == 8 ? NumericType::kFloat64 : NumericType::kUnknown;
  const bool is_signed = letter == "I";
  if (!is_signed && letter != "U") return NumericType::kUnknown;
  switch (size) {
    case 1: return is_signed ? NumericType::kInt8 : NumericType::kUint8;
    case 2: return is_signed ? NumericType::kInt16 : NumericType::kUint16;
    case 4: return is_signed ? NumericType::kInt32 : NumericType::kUint32;
    default: return NumericType::kUnknown;
  }
}

template <class T>
void append(std::string& out, T value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

// One ASCII value in the binary form of its type.
bool append_text(std::string& out, std::string_view text, NumericType type) {
  double value = 0;
  if (text == "nan" || text == "-nan" || text == "NaN") {
    value = std::numeric_limits<double>::quiet_NaN();
  } else {
    if (text.starts_with('+')) text.remove_prefix(1);
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size()) return false;
  }
  const auto whole = [&](double low, double high) { return value >= low && value <= high; };
  switch (type) {
    case NumericType::kFloat32: append(out, static_cast<float>(value)); return true;
    case NumericType::kFloat64: append(out, value); return true;
    case NumericType::kUint8: return whole(0, 255) ? append(out, static_cast<std::uint8_t>(value)), true : false;
    case NumericType::kInt8: return whole(-128, 127) ? append(out, static_cast<std::int8_t>(value)), true : false;
    case NumericType::kUint16: return whole(0, 65535) ? append(out, static_cast<std::uint16_t>(value)), true : false;
    case NumericType::kInt16: return whole(-32768, 32767) ? append(out, static_cast<std::int16_t>(value)), true : false;
    case NumericType::kUint32:
      return whole(0, 4294967295.0) ? append(out, static_cast<std::uint32_t>(value)), true : false;
    case NumericType::kInt32:
      return whole(-2147483648.0, 2147483647.0) ? append(out, static_cast<std::int32_t>(value)), true : false;
    case NumericType::kUnknown: break;
  }
  return false;
}

}  // namespace

const PcdField* PcdCloud::find(std::string_view name) const {
  const auto found = std::find_if(fields.begin(), fields.end(), [&](const PcdField& f) { return f.name == name; });
  return found == fields.end() ? nullptr : &*found;
}

double PcdCloud::value(std::uint64_t i, const PcdField& field) const {
  const PointField reader({field.name, field.offset, field.type});
  return reader.at(reinterpret_cast<const std::byte*>(data.data()) + i * stride);
}

Result<PcdCloud> parse_pcd(std::string_view bytes, const std::string& name) {
  std::map<std::string, std::vector<std::string_view>, std::less<>> header;
  std::size_t at = 0, line_number = 0;
  const auto refuse = [&](const std::string& what) {
    return fail(Code::kInput, name + ":" + std::to_string(line_number) + ": " + what);
  };
  for (;;) {
    ++line_number;
    if (at >= bytes.size() || at > 65536) return refuse("no PCD header that ends with a DATA line");
    const std::size_t end = std::min(bytes.find('\n', at), bytes.size());
    const auto words = words_of(bytes.substr(at, end - at));
    at = std::min(end + 1, bytes.size());
    if (words.empty() || words[0].starts_with('#')) continue;
    static constexpr std::string_view kKnown[] = {"VERSION", "FIELDS", "SIZE",      "TYPE",   "COUNT",
                                                  "WIDTH",   "HEIGHT", "VIEWPOINT", "POINTS", "DATA"};
    if (std::find(std::begin(kKnown), std::end(kKnown), words[0]) == std::end(kKnown)) {
      return refuse("'" + std::string(words[0].substr(0, 32)) + "' is no entry of a PCD header");
    }
    header[std::string(words[0])].assign(words.begin() + 1, words.end());
    if (words[0] == "DATA") break;
  }
  const auto entry = [&](const char* key) -> const std::vector<std::string_view>& { return header[key]; };
  const auto& names = entry("FIELDS");
  const auto &sizes = entry("SIZE"), &types = entry("TYPE");
  if (names.empty() || names.size() > 256 || sizes.size() != names.size() || types.size() != names.size() ||
      (!entry("COUNT").empty() && entry("COUNT").size() != names.size())) {
    return refuse("FIELDS, SIZE, TYPE and COUNT have different lengths");
  }
  PcdCloud cloud;
  for (std::size_t i = 0; i < names.size(); ++i) {
    std::uint64_t size = 0, count = 1;
    if (!to_count(sizes[i], size) || (!entry("COUNT").empty() && !to_count(entry("COUNT")[i], count))) {
      return refuse("SIZE and COUNT must be numbers");
    }
    const NumericType type = type_of(types[i], size);
    const bool padding = names[i] == "_";
    if ((type == NumericType::kUnknown && !padding) || size > 8 || count > 4096) {
      return refuse("field '" + std::string(names[i]) + "': type " + std::string(types[i]) + " of " +
                    std::to_string(size) + " bytes, " + std::to_string(count) + " times, is not supported");
    }
    for (std::uint64_t k = 0; k < count; ++k) {
      const std::string field = std::string(names[i]) + (k == 0 ? "" : "_" + std::to_string(k));
      if (!padding) cloud.fields.push_back({field, type, cloud.stride});
      cloud.stride += static_cast<std::uint32_t>(size);
    }
  }
  std::uint64_t width = 0, height = 1;
  if (entry("POINTS").size() == 1) {
    if (!to_count(entry("POINTS")[0], cloud.announced)) return refuse("POINTS must be a number");
  } else {
    if (entry("WIDTH").size() != 1 || !to_count(entry("WIDTH")[0], width) ||
        (entry("HEIGHT").size() == 1 && !to_count(entry("HEIGHT")[0], height)) ||
        __builtin_mul_overflow(width, height, &cloud.announced)) {
      return refuse("POINTS or WIDTH and HEIGHT must be numbers");
    }
  }
  if (cloud.stride == 0) return refuse("a point has no bytes");
  const std::string_view kind = entry("DATA").size() == 1 ? entry("DATA")[0] : std::string_view();
  const std::string_view rest = bytes.substr(at);
  if (kind == "binary") {
    cloud.points = std::min<std::uint64_t>(cloud.announced, rest.size() / cloud.stride);
    cloud.data = rest.substr(0, static_cast<std::size_t>(cloud.points * cloud.stride));
  } else if (kind == "ascii") {
    for (std::size_t from = 0; from < rest.size() && cloud.points < cloud.announced;) {
      ++line_number;
      const std::size_t end = std::min(rest.find('\n', from), rest.size());
      const auto words = words_of(rest.substr(from, end - from));
      from = end + 1;
      if (words.empty()) continue;
      const std::size_t before = cloud.data.size();
      bool whole = words.size() == cloud.fields.size();
      for (std::size_t i = 0; whole && i < words.size(); ++i) {
        cloud.data.resize(before + cloud.fields[i].offset);
        whole = append_text(cloud.data, words[i], cloud.fields[i].type);
      }
      if (!whole) return refuse("not one value of the announced type per field");
      cloud.data.resize(before + cloud.stride);
      ++cloud.points;
    }
  } else {
    return refuse("DATA " + std::string(kind.substr(0, 32)) + " is not supported; known: binary, ascii");
  }
  return cloud;
}

}  // namespace takt::sensors
