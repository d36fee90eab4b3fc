#include "pipeline/stages/object_output.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <tuple>

namespace takt::pipeline {

namespace {

template <class T>
const T* payload_of(const StageInput& input, std::uint32_t schema, std::uint64_t smallest) {
  if (!input.chunk || input.chunk.payload == nullptr) return nullptr;
  if (input.chunk.header->schema != schema || input.chunk.header->payload_bytes < smallest) return nullptr;
  return reinterpret_cast<const T*>(input.chunk.payload);
}

std::uint32_t bytes_per_pixel(sensors::PixelFormat format) {
  const bool colour = format == sensors::PixelFormat::kRgb8 || format == sensors::PixelFormat::kBgr8;
  return colour ? 3 : 1;
}

}  // namespace

Result<DetectionInputs> find_inputs(const StageSpec& spec, sensors::SensorKind kind) {
  std::optional<std::size_t> sample;
  DetectionInputs inputs;
  for (std::size_t i = 0; i < spec.inputs.size(); ++i) {
    const StageConnection& input = spec.inputs[i];
    const bool from_ego = input.sensor != nullptr && input.sensor->kind == sensors::SensorKind::kEgo;
    const bool from_kind = input.sensor != nullptr && input.sensor->kind == kind;
    if (!from_kind && !from_ego) {
      return fail(Code::kConfiguration, "stage '" + spec.name + "' (" + spec.type + "): input '" + input.name +
                                            "' must come from a " + sensors::name_of(kind) +
                                            " or an ego sensor of the rig");
    }
    std::optional<std::size_t>& place = from_ego ? inputs.ego : sample;
    if (place) {
      return fail(Code::kConfiguration, "stage '" + spec.name + "' (" + spec.type + "): input '" + input.name +
                                            "' is a second one of its kind; one " + sensors::name_of(kind) +
                                            " and at most one ego sensor are allowed");
    }
    place = i;
  }
  if (!sample) {
    return fail(Code::kConfiguration, "stage '" + spec.name + "' (" + spec.type + ") has no input from a " +
                                          sensors::name_of(kind) + "; connect one");
  }
  inputs.sample = *sample;
  return inputs;
}

const sensors::PointCloud* cloud_of(const StageInput& input) {
  const auto* cloud = payload_of<sensors::PointCloud>(input, sensors::kPointCloudSchema, sizeof(sensors::PointCloud));
  if (cloud == nullptr) return nullptr;
  return input.chunk.header->payload_bytes >= sensors::PointCloud::bytes_for(cloud->capacity) ? cloud : nullptr;
}

const sensors::RadarScan* scan_of(const StageInput& input) {
  const auto* scan = payload_of<sensors::RadarScan>(input, sensors::kRadarScanSchema, sizeof(sensors::RadarScan));
  if (scan == nullptr) return nullptr;
  return input.chunk.header->payload_bytes >= sensors::RadarScan::bytes_for(scan->capacity) ? scan : nullptr;
}

const sensors::Image* image_of(const StageInput& input) {
  const auto* image = payload_of<sensors::Image>(input, sensors::kImageSchema, sizeof(sensors::Image));
  if (image == nullptr) return nullptr;
  const std::uint64_t row_bytes = std::uint64_t{image->width} * bytes_per_pixel(image->format);
  const std::uint64_t end = image->data_offset + std::uint64_t{image->row_pitch} * image->height;
  const bool fits = row_bytes <= image->row_pitch && image->data_offset <= input.chunk.header->payload_bytes &&
                    end <= input.chunk.header->payload_bytes;
  return fits ? image : nullptr;
}

const sensors::EgoMotion* ego_of(const StageInput& input) {
  const auto* ego = payload_of<sensors::EgoMotion>(input, sensors::kEgoMotionSchema, sizeof(sensors::EgoMotion));
  if (ego == nullptr) return nullptr;
  for (int i = 0; i < 3; ++i) {
    if (!std::isfinite(ego->velocity[i]) || !std::isfinite(ego->angular_velocity[i])) return nullptr;
  }
  return ego;
}

bool better(const Object& a, const Object& b) {
  const auto key = [](const Object& o) {
    return std::tuple(-o.score, o.x * o.x + o.y * o.y, o.x, o.y, o.z, o.length, o.width, o.height, o.yaw, o.range_rate,
                      o.u0, o.v0, o.u1, o.v1, o.points, o.object_class, o.flags);
  };
  return key(a) < key(b);
}

void write_objects(StageJob& job, std::span<Object> objects, const ListFacts& facts,
                   std::span<const StageConnection> connections, std::size_t sample, std::optional<std::size_t> ego) {
  std::sort(objects.begin(), objects.end(), better);
  const auto count = static_cast<std::uint32_t>(std::min<std::size_t>(objects.size(), kMaxObjects));

  auto& list = *reinterpret_cast<ObjectList*>(job.output);
  list.count = count;
  list.dropped = facts.dropped + static_cast<std::uint32_t>(objects.size() - count);
  list.sensor = static_cast<std::uint32_t>(connections[sample].sensor_index);
  list.input_points = facts.input_points;
  list.invalid_points = facts.invalid_points;
  list.reserved = 0;
  std::copy_n(objects.begin(), count, list.objects);

  transport::ChunkHeader& header = *job.output_header;
  header.schema = kObjectListSchema;
  header.payload_bytes = offsetof(ObjectList, objects) + std::uint64_t{count} * sizeof(Object);
  header.capture_ns = transport::kNoStamp;
  header.sources.fill({});
  const auto add_source = [&](std::size_t input) {
    const transport::ChunkView& chunk = job.inputs[input].chunk;
    if (!chunk) return;
    header.sources[connections[input].sensor_index] = {chunk.header->capture_ns, chunk.header->capture_ns};
  };
  if (job.inputs[sample].chunk) header.capture_ns = job.inputs[sample].chunk.header->capture_ns;
  add_source(sample);
  if (ego) add_source(*ego);
  list.stamp_ns = header.capture_ns;
}

}  // namespace takt::pipeline
