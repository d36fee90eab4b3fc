#include "sensors/logs/ros_messages.h"

#include <algorithm>
#include <string>

namespace takt::sensors::ros {
namespace {

// Types that start with a header, for logs that hold no definitions.
constexpr std::string_view kStampedTypes[] = {"sensor_msgs/Image",
                                              "sensor_msgs/CompressedImage",
                                              "sensor_msgs/PointCloud2",
                                              "sensor_msgs/CameraInfo",
                                              "sensor_msgs/Imu",
                                              "sensor_msgs/NavSatFix",
                                              "sensor_msgs/LaserScan",
                                              "nav_msgs/Odometry",
                                              "radar_msgs/RadarScan",
                                              "radar_msgs/RadarTracks",
                                              "geometry_msgs/PoseStamped",
                                              "geometry_msgs/TwistStamped",
                                              "geometry_msgs/PoseWithCovarianceStamped",
                                              "velodyne_msgs/VelodyneScan",
                                              "nebula_msgs/NebulaPackets"};

Status named(Cursor& cursor, const char* type) {
  auto status = cursor.status();
  if (!status) return fail(std::move(status).error().with_context(type));
  return {};
}

std::array<double, 3> read_vector(Cursor& c) {
  std::array<double, 3> v{};
  c.numbers<double>(v);
  return v;
}

// x y z w in the message. All zeros counts as no rotation, as viewers treat it.
std::array<double, 4> read_quaternion(Cursor& c) {
  std::array<double, 4> q{};
  c.numbers<double>(q);
  if (q == std::array<double, 4>{}) return {1, 0, 0, 0};
  return {q[3], q[0], q[1], q[2]};
}

template <std::size_t n>
void skip_numbers(Cursor& c) {
  std::array<double, n> ignored{};
  c.numbers<double>(ignored);
}

// sensor_msgs/PointField datatypes 1..8: INT8 UINT8 INT16 UINT16 INT32 UINT32 FLOAT32 FLOAT64.
log::NumericType type_of(std::uint8_t datatype) {
  using enum log::NumericType;
  constexpr log::NumericType kTypes[] = {kUnknown, kInt8, kUint8, kInt16, kUint16, kInt32, kUint32, kFloat32, kFloat64};
  return datatype < std::size(kTypes) ? kTypes[datatype] : kUnknown;
}

std::string size_text(const log::PointCloud& cloud, std::uint32_t width, std::uint32_t height, std::uint32_t row_step) {
  return "width " + std::to_string(width) + ", height " + std::to_string(height) + ", point_step " +
         std::to_string(cloud.point_stride) + ", row_step " + std::to_string(row_step) + ", " +
         std::to_string(cloud.data.size()) + " bytes of data";
}

// Where the points lie, from sizes that real drivers get wrong: row_step 0 or of the whole cloud, size changed without
// row_step, bytes behind the last point.
Status arrange_points(log::PointCloud& cloud, std::uint32_t width, std::uint32_t height, std::uint32_t row_step) {
  const auto refuse = [&](const char* why) {
    return fail(Code::kInput,
                std::string("sensor_msgs/PointCloud2: ") + why + ": " + size_text(cloud, width, height, row_step));
  };
  if (width == 0 || height == 0) {
    if (!cloud.data.empty()) return refuse("data without points");
    return {};
  }
  if (cloud.point_stride == 0) return refuse("point_step is 0");
  const std::uint64_t row = std::uint64_t{width} * cloud.point_stride, size = cloud.data.size();
  if (row > size || row * height > size) return refuse("the points exceed the data");  // width * height < 2^64
  if (row_step == row) {
    if (row * height < size) cloud.repaired = "bytes behind the last point: ignored";
  } else if (height == 1) {
    cloud.repaired = "row_step contradicts the width; there is one row, so it is not needed";
  } else if (row * height == size) {
    cloud.repaired = "row_step contradicts the size; rows without gaps fill the data exactly";
  } else if (row_step > row && std::uint64_t{row_step} * (height - 1) + row <= size) {
    cloud.rows = height;
    cloud.row_points = width;
    cloud.row_stride = row_step;
    return {};
  } else {
    return refuse("row_step fits neither the width nor the data");
  }
  cloud.data = cloud.data.first(static_cast<std::size_t>(row * height));
  return {};
}

}  // namespace

std::optional<Encoding> encoding_of(std::string_view channel_encoding) {
  if (channel_encoding == "cdr") return Encoding::kCdr;
  if (channel_encoding == "ros1") return Encoding::kRos1;
  return std::nullopt;
}

bool is_type(std::string_view schema, std::string_view name) {
  const std::size_t slash = name.find('/');
  const std::string_view package = name.substr(0, slash), type = name.substr(slash);  // "/Image"
  if (!schema.starts_with(package) || !schema.ends_with(type)) return false;
  const std::size_t between = schema.size() - package.size() - type.size();
  return schema.size() == name.size() ||
         (schema.size() == name.size() + 4 && schema.substr(package.size(), between) == "/msg");
}

bool starts_with_header(std::string_view type, std::string_view definition) {
  for (const auto known : kStampedTypes) {
    if (is_type(type, known)) return true;
  }
  while (!definition.empty()) {
    const std::size_t end = std::min(definition.find('\n'), definition.size());
    std::string_view line = definition.substr(0, end);
    definition.remove_prefix(std::min(end + 1, definition.size()));
    while (!line.empty() && (line.front() == ' ' || line.front() == '\t')) line.remove_prefix(1);
    if (line.empty() || line.front() == '#' || line.front() == '\r') continue;
    const std::string_view first = line.substr(0, line.find_first_of(" \t"));
    // A constant takes no bytes; any other line is the first field.
    if (line.substr(0, line.find('#')).find('=') != std::string_view::npos) {
      if (line.front() == '=') return false;  // the line between definitions: no field at all
      continue;
    }
    return first == "Header" || first == "std_msgs/Header" || first == "std_msgs/msg/Header";
  }
  return false;
}

std::optional<SensorTime> header_stamp(Encoding encoding, std::span<const std::byte> bytes) {
  Cursor c(encoding, bytes);
  if (encoding == Encoding::kRos1) c.number<std::uint32_t>();
  const SensorTime stamp = c.time();
  if (!c.ok()) return std::nullopt;
  return stamp;
}

std::optional<Encoding> stamped_encoding(std::string_view channel_encoding, std::string_view type,
                                         std::string_view definition) {
  const auto encoding = encoding_of(channel_encoding);
  return encoding && starts_with_header(type, definition) ? encoding : std::nullopt;
}

Result<log::RawImage> decode_image(Encoding encoding, std::span<const std::byte> bytes) {
  Cursor c(encoding, bytes);
  log::RawImage m;
  const Header header = c.header();
  m.stamp = header.stamp;
  m.frame_id = header.frame_id;
  m.height = c.number<std::uint32_t>();
  m.width = c.number<std::uint32_t>();
  m.encoding = c.text();
  m.big_endian = c.boolean();
  m.step = c.number<std::uint32_t>();
  m.data = c.bytes();
  TAKT_RETURN_IF_ERROR(named(c, "sensor_msgs/Image"));
  return m;
}

Result<log::CompressedImage> decode_compressed_image(Encoding encoding, std::span<const std::byte> bytes) {
  Cursor c(encoding, bytes);
  log::CompressedImage m;
  const Header header = c.header();
  m.stamp = header.stamp;
  m.frame_id = header.frame_id;
  m.format = c.text();
  m.data = c.bytes();
  TAKT_RETURN_IF_ERROR(named(c, "sensor_msgs/CompressedImage"));
  return m;
}

Result<log::PointCloud> decode_point_cloud(Encoding encoding, std::span<const std::byte> bytes) {
  Cursor c(encoding, bytes);
  log::PointCloud m;
  const Header header = c.header();
  m.stamp = header.stamp;
  m.frame_id = header.frame_id;
  const auto height = c.number<std::uint32_t>(), width = c.number<std::uint32_t>();
  const std::uint32_t fields = c.count(13);  // length of the name, offset, datatype, count
  for (std::uint32_t i = 0; i < fields && c.ok(); ++i) {
    log::PackedField field;
    field.name = c.text();
    field.offset = c.number<std::uint32_t>();
    field.type = type_of(c.number<std::uint8_t>());
    c.number<std::uint32_t>();  // count: of a field with several values the first is meant
    if (m.field_count < m.fields.size()) m.fields[m.field_count++] = field;
  }
  m.big_endian = c.boolean();
  m.point_stride = c.number<std::uint32_t>();
  const auto row_step = c.number<std::uint32_t>();
  m.data = c.bytes();
  c.boolean();  // is_dense: often wrong, every point is looked at anyway
  TAKT_RETURN_IF_ERROR(named(c, "sensor_msgs/PointCloud2"));
  TAKT_RETURN_IF_ERROR(arrange_points(m, width, height, row_step));
  return m;
}

Result<log::CameraCalibration> decode_camera_info(Encoding encoding, std::span<const std::byte> bytes) {
  Cursor c(encoding, bytes);
  log::CameraCalibration m;
  const Header header = c.header();
  m.stamp = header.stamp;
  m.frame_id = header.frame_id;
  m.height = c.number<std::uint32_t>();
  m.width = c.number<std::uint32_t>();
  const std::string_view model = c.text();
  const std::uint32_t coefficients = c.count(8);
  bool more = false;
  for (std::uint32_t i = 0; i < coefficients && c.ok(); ++i) {
    const auto value = c.number<double>();
    if (i < m.distortion.size()) {
      m.distortion[i] = value;
    } else {
      more = more || value != 0;
    }
  }
  std::array<double, 9> k{};
  c.numbers<double>(k);
  skip_numbers<9>(c);   // R
  skip_numbers<12>(c);  // P
  TAKT_RETURN_IF_ERROR(named(c, "sensor_msgs/CameraInfo"));
  const bool straight = std::all_of(m.distortion.begin(), m.distortion.end(), [](double d) { return d == 0; });
  if (more || (!model.empty() && model != "plumb_bob" && !straight)) {
    return fail(Code::kInput, "sensor_msgs/CameraInfo: distortion model '" + std::string(model) + "' with " +
                                  std::to_string(coefficients) + " coefficients is not supported; known: plumb_bob");
  }
  m.fx = k[0];
  m.cx = k[2];
  m.fy = k[4];
  m.cy = k[5];
  return m;
}

Result<log::Imu> decode_imu(Encoding encoding, std::span<const std::byte> bytes) {
  Cursor c(encoding, bytes);
  log::Imu m;
  const Header header = c.header();
  m.stamp = header.stamp;
  m.frame_id = header.frame_id;
  m.orientation = read_quaternion(c);
  std::array<double, 9> covariance{};
  c.numbers<double>(covariance);
  m.has_orientation = covariance[0] != -1;
  m.angular_velocity = read_vector(c);
  skip_numbers<9>(c);
  m.linear_acceleration = read_vector(c);
  skip_numbers<9>(c);
  TAKT_RETURN_IF_ERROR(named(c, "sensor_msgs/Imu"));
  return m;
}

Result<log::Odometry> decode_odometry(Encoding encoding, std::span<const std::byte> bytes) {
  Cursor c(encoding, bytes);
  log::Odometry m;
  const Header header = c.header();
  m.stamp = header.stamp;
  m.frame_id = header.frame_id;
  m.child_frame_id = c.text();
  m.pose.position = read_vector(c);
  m.pose.orientation = read_quaternion(c);
  skip_numbers<36>(c);
  m.velocity = read_vector(c);
  m.angular_velocity = read_vector(c);
  skip_numbers<36>(c);
  TAKT_RETURN_IF_ERROR(named(c, "nav_msgs/Odometry"));
  return m;
}

Result<log::NavSatFix> decode_nav_sat_fix(Encoding encoding, std::span<const std::byte> bytes) {
  Cursor c(encoding, bytes);
  log::NavSatFix m;
  const Header header = c.header();
  m.stamp = header.stamp;
  m.frame_id = header.frame_id;
  m.status = c.number<std::int8_t>();
  c.number<std::uint16_t>();  // service
  m.latitude = c.number<double>();
  m.longitude = c.number<double>();
  m.altitude = c.number<double>();
  c.numbers<double>(m.covariance);
  c.number<std::uint8_t>();  // covariance type
  TAKT_RETURN_IF_ERROR(named(c, "sensor_msgs/NavSatFix"));
  return m;
}

Result<std::vector<log::FrameTransform>> decode_transforms(Encoding encoding, std::span<const std::byte> bytes) {
  Cursor c(encoding, bytes);
  std::vector<log::FrameTransform> transforms;
  const std::uint32_t count = c.count(72);  // stamp, two lengths, seven numbers
  for (std::uint32_t i = 0; i < count && c.ok(); ++i) {
    log::FrameTransform t;
    const Header header = c.header();
    t.stamp = header.stamp;
    t.parent = header.frame_id;
    t.child = c.text();
    t.pose.position = read_vector(c);
    t.pose.orientation = read_quaternion(c);
    transforms.push_back(std::move(t));
  }
  TAKT_RETURN_IF_ERROR(named(c, "tf2_msgs/TFMessage"));
  return transforms;
}

Status decode_radar_scan(Encoding encoding, std::span<const std::byte> bytes, log::RadarScan& out) {
  Cursor c(encoding, bytes);
  const Header header = c.header();
  out.stamp = header.stamp;
  out.frame_id = header.frame_id;
  out.returns.resize(c.count(20));
  for (auto& r : out.returns) {
    r.range = c.number<float>();
    r.azimuth = c.number<float>();
    r.elevation = c.number<float>();
    r.doppler_velocity = c.number<float>();
    r.amplitude = c.number<float>();
  }
  return named(c, "radar_msgs/RadarScan");
}

Status decode_radar_tracks(Encoding encoding, std::span<const std::byte> bytes, log::RadarTracks& out) {
  Cursor c(encoding, bytes);
  const Header header = c.header();
  out.stamp = header.stamp;
  out.frame_id = header.frame_id;
  out.tracks.resize(c.count(210));  // uuid, twelve doubles, the class, four covariances of six floats
  for (auto& t : out.tracks) {
    c.numbers<std::uint8_t>(t.uuid);
    t.position = read_vector(c);
    t.velocity = read_vector(c);
    t.acceleration = read_vector(c);
    t.size = read_vector(c);
    t.classification = c.number<std::uint16_t>();
    std::array<float, 24> covariances{};
    c.numbers<float>(covariances);
  }
  return named(c, "radar_msgs/RadarTracks");
}

}  // namespace takt::sensors::ros
