#include "sensors/logs/log_export.h"

#include <fnmatch.h>
#include <png.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "runtime/base/file.h"
#include "sensors/camera/raw_image.h"
#include "sensors/logs/decode.h"
#include "sensors/logs/point_fields.h"
#include "sensors/logs/ros_messages.h"

namespace takt::sensors {
namespace {

namespace fs = std::filesystem;
using Bytes = std::span<const std::byte>;

struct File {
  std::string extension, content;
};

// The kinds of messages that become files.
enum class Kind { kOther, kCompressedImage, kRawImage, kCloud };

Kind kind_of(const LogChannel& channel) {
  if (channel.encoding == "protobuf") {
    if (channel.schema == "foxglove.CompressedImage") return Kind::kCompressedImage;
    if (channel.schema == "foxglove.RawImage") return Kind::kRawImage;
    if (channel.schema == "foxglove.PointCloud") return Kind::kCloud;
  } else if (ros::encoding_of(channel.encoding)) {
    if (ros::is_type(channel.schema, "sensor_msgs/CompressedImage")) return Kind::kCompressedImage;
    if (ros::is_type(channel.schema, "sensor_msgs/Image")) return Kind::kRawImage;
    if (ros::is_type(channel.schema, "sensor_msgs/PointCloud2")) return Kind::kCloud;
  }
  return Kind::kOther;
}

Result<File> file_of(const log::CompressedImage& image) {
  const std::string_view data(reinterpret_cast<const char*>(image.data.data()), image.data.size());
  if (data.starts_with("\xff\xd8\xff")) return File{"jpg", std::string(data)};
  if (data.starts_with("\x89PNG\r\n\x1a\n")) return File{"png", std::string(data)};
  // compressedDepth of ROS puts a header before the PNG.
  if (const std::size_t png = data.substr(0, 64).find("\x89PNG\r\n\x1a\n"); png != std::string_view::npos) {
    return File{"png", std::string(data.substr(png))};
  }
  return fail(Code::kInput, "the picture is neither JPEG nor PNG");
}

template <class T>
Result<File> as_file(const char* extension, Result<T> content) {
  if (!content) return fail(std::move(content).error());
  return File{extension, std::move(*content)};
}

Result<File> convert_message(Kind kind, const LogChannel& channel, Bytes bytes, bool ascii) {
  const auto ros = ros::encoding_of(channel.encoding);
  switch (kind) {
    case Kind::kCompressedImage: {
      TAKT_ASSIGN(const auto image, ros ? ros::decode_compressed_image(*ros, bytes) : decode_compressed_image(bytes));
      return file_of(image);
    }
    case Kind::kRawImage: {
      TAKT_ASSIGN(const auto image, ros ? ros::decode_image(*ros, bytes) : decode_raw_image(bytes));
      return as_file("png", png_of(image));
    }
    case Kind::kCloud: {
      TAKT_ASSIGN(const auto cloud, ros ? ros::decode_point_cloud(*ros, bytes) : decode_point_cloud(bytes));
      return as_file("pcd", pcd_of(cloud, ascii));
    }
    case Kind::kOther: break;
  }
  return fail(Code::kInternal, "no picture and no cloud");
}

std::string folder_name(std::string topic) {
  topic.erase(0, topic.find_first_not_of('/'));
  for (char& c : topic) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-';
    if (!plain) c = '_';
  }
  return topic.empty() ? "_" : topic;
}

char pcd_type(log::NumericType type) {
  switch (type) {
    case log::NumericType::kInt8:
    case log::NumericType::kInt16:
    case log::NumericType::kInt32: return 'I';
    case log::NumericType::kFloat32:
    case log::NumericType::kFloat64: return 'F';
    default: return 'U';
  }
}

void print_value(std::string& out, const PointField& field, std::uint32_t bytes, const std::byte* point) {
  const double value = field.at(point);
  char text[40];
  // 9 and 17 digits give every float and double back.
  if (std::isnan(value)) {
    std::snprintf(text, sizeof text, "nan");
  } else if (field.is_float()) {
    std::snprintf(text, sizeof text, "%.*g", bytes == 4 ? 9 : 17, value);
  } else {
    std::snprintf(text, sizeof text, "%.0f", value);
  }
  out += text;
}

void append_packed(std::string& out, const std::byte* value, std::uint32_t bytes, bool turn) {
  const auto* from = reinterpret_cast<const char*>(value);
  if (!turn) {
    out.append(from, bytes);
    return;
  }
  for (std::uint32_t i = bytes; i > 0; --i) out.push_back(from[i - 1]);
}

Result<std::string> write_png(const png_image& format, const void* rows, std::int32_t stride) {
  png_image image = format;
  png_alloc_size_t size = 0;
  if (png_image_write_to_memory(&image, nullptr, &size, 0, rows, stride, nullptr) == 0) {
    return fail(Code::kInput, std::string("PNG: ") + image.message);
  }
  std::string out(size, '\0');
  if (png_image_write_to_memory(&image, out.data(), &size, 0, rows, stride, nullptr) == 0) {
    return fail(Code::kInput, std::string("PNG: ") + image.message);
  }
  out.resize(size);
  return out;
}

bool matches(const std::vector<std::string>& patterns, const std::string& topic) {
  return std::any_of(patterns.begin(), patterns.end(),
                     [&](const std::string& p) { return ::fnmatch(p.c_str(), topic.c_str(), 0) == 0; });
}

}  // namespace

Result<std::string> pcd_of(const log::PointCloud& cloud, bool ascii) {
  log::PointCloud in_frame = cloud;
  in_frame.pose = {};
  PointLayout layout(in_frame);
  std::vector<PointField> fields;
  std::vector<log::PackedField> packed;
  std::string names, sizes, types, counts;
  for (std::size_t i = 0; i < cloud.field_count; ++i) {
    const log::PackedField& field = cloud.fields[i];
    const std::uint32_t bytes = bytes_of(field.type);
    if (bytes == 0 || field.name.empty() || field.name.find_first_of(" \t\r\n") != std::string_view::npos) continue;
    fields.push_back(layout.find({field.name}, true));
    packed.push_back(field);
    names += " " + std::string(field.name);
    sizes += " " + std::to_string(bytes);
    types += std::string(" ") + pcd_type(field.type);
    counts += " 1";
  }
  if (!layout.reason().empty()) return fail(Code::kInput, layout.reason());
  if (fields.empty()) return fail(Code::kInput, "the cloud has no fields");
  const std::size_t points = layout.points();
  const std::size_t height = cloud.rows > 1 ? cloud.rows : 1;
  char viewpoint[256];
  const auto& p = cloud.pose.position;
  const auto& q = cloud.pose.orientation;
  std::snprintf(viewpoint, sizeof viewpoint, "%.17g %.17g %.17g %.17g %.17g %.17g %.17g", p[0], p[1], p[2], q[0], q[1],
                q[2], q[3]);
  std::string out = "# .PCD v0.7\nVERSION 0.7\nFIELDS" + names + "\nSIZE" + sizes + "\nTYPE" + types + "\nCOUNT" +
                    counts + "\nWIDTH " + std::to_string(points / height) + "\nHEIGHT " + std::to_string(height) +
                    "\nVIEWPOINT " + viewpoint + "\nPOINTS " + std::to_string(points) + "\nDATA " +
                    (ascii ? "ascii" : "binary") + "\n";
  for (std::size_t i = 0; i < points; ++i) {
    const std::byte* point = layout.point(i);
    for (std::size_t f = 0; f < fields.size(); ++f) {
      if (ascii) {
        if (f != 0) out.push_back(' ');
        print_value(out, fields[f], bytes_of(packed[f].type), point);
      } else {
        append_packed(out, point + packed[f].offset, bytes_of(packed[f].type), cloud.big_endian);
      }
    }
    if (ascii) out.push_back('\n');
  }
  return out;
}

Result<std::string> png_of(const log::RawImage& raw) {
  constexpr std::uint32_t kMostPixels = 1U << 28;
  if (raw.width == 0 || raw.height == 0 || std::uint64_t{raw.width} * raw.height > kMostPixels) {
    return fail(Code::kInput, "a picture of " + std::to_string(raw.width) + "x" + std::to_string(raw.height) +
                                  " pixels cannot be written");
  }
  png_image png{};
  png.version = PNG_IMAGE_VERSION;
  png.width = raw.width;
  png.height = raw.height;
  if (raw.encoding == "16UC1") {
    const std::uint64_t row = std::uint64_t{raw.width} * 2;
    if (raw.step < row || std::uint64_t{raw.step} * (raw.height - 1) + row > raw.data.size()) {
      return fail(Code::kInput, "the rows exceed the data");
    }
    std::vector<std::uint16_t> samples(std::size_t{raw.width} * raw.height);
    for (std::uint32_t y = 0; y < raw.height; ++y) {
      std::uint16_t* to = samples.data() + std::size_t{y} * raw.width;
      std::memcpy(to, raw.data.data() + std::size_t{y} * raw.step, row);
      if (raw.big_endian) std::transform(to, to + raw.width, to, [](std::uint16_t v) { return __builtin_bswap16(v); });
    }
    png.format = PNG_FORMAT_LINEAR_Y;
    return write_png(png, samples.data(), static_cast<std::int32_t>(raw.width));
  }
  if (raw.data.size() < std::uint64_t{raw.width} * raw.height) return fail(Code::kInput, "the picture is cut");
  std::vector<std::uint64_t> chunk(Image::bytes_for(raw.width, raw.height, 3) / 8 + 1);
  auto& image = *new (chunk.data()) Image;
  image.width = raw.width;
  image.height = raw.height;
  const char* repaired = nullptr;
  if (const std::string reason = convert(raw, image, repaired); !reason.empty()) return fail(Code::kInput, reason);
  png.format = image.format == PixelFormat::kMono8 ? PNG_FORMAT_GRAY : PNG_FORMAT_RGB;
  return write_png(png, image.row(0), static_cast<std::int32_t>(image.row_pitch));
}

Result<ExportReport> export_log(const std::string& path, const std::string& folder, const ExportOptions& options) {
  ExportReport report;
  TAKT_ASSIGN(const auto log, open_log(path));
  std::vector<std::string> topics;
  std::uint64_t expected = 0, done = 0;
  for (const LogChannel& channel : log->channels()) {
    if (!(options.topics.empty() || matches(options.topics, channel.topic)) ||
        matches(options.exclude, channel.topic)) {
      continue;
    }
    if (kind_of(channel) == Kind::kOther) {
      report.other_topics.push_back(channel.topic);
      continue;
    }
    topics.push_back(channel.topic);
    expected += channel.messages;
  }
  if (topics.empty()) return fail(Code::kInput, path + ": no pictures and no clouds on the chosen topics");
  log->select(topics);
  for (;;) {
    TAKT_ASSIGN(const auto message, log->next());
    if (!message) break;
    const LogChannel& channel = *message->channel;
    const Kind kind = kind_of(channel);
    if (options.end && message->arrival > *options.end) break;
    if (kind == Kind::kOther || (options.start && message->arrival < *options.start)) continue;
    if (options.progress && !options.progress(++done, std::max(expected, done), report.bytes)) {
      return fail(Code::kInterrupted, folder + ": interrupted after " + std::to_string(done) + " messages");
    }
    const auto file = convert_message(kind, channel, message->bytes, options.ascii);
    if (!file) {
      ++report.refused[channel.topic + ": " + file.error().message];
      continue;
    }
    const fs::path where = fs::path(folder) / folder_name(channel.topic);
    std::error_code error;
    fs::create_directories(where, error);
    if (error) return fail(Code::kEnvironment, where.string() + ": cannot be made: " + error.message());
    char name[64];
    std::snprintf(name, sizeof name, "%06llu_%lld.", static_cast<unsigned long long>(message->index),
                  static_cast<long long>(message->capture.ns));
    TAKT_RETURN_IF_ERROR(write_file_atomically((where / (name + file->extension)).string(), file->content));
    ++report.files[channel.topic];
    report.bytes += file->content.size();
  }
  report.problems = log->problems();
  return report;
}

}  // namespace takt::sensors
