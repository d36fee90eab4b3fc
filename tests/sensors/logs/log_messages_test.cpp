// Own encoders and decoders against libprotobuf, by way of the schemas that travel in the file.
#include <gmock/gmock.h>
#include <google/protobuf/descriptor.pb.h>
#include <google/protobuf/dynamic_message.h>
#include <google/protobuf/util/json_util.h>
#include <gtest/gtest.h>
#include <memory>
#include <string>

#include "pipeline/messages/encode.h"
#include "sensors/logs/decode.h"
#include "sensors/logs/encode.h"
#include "sensors/logs/wire.h"

namespace takt::sensors {
namespace {

namespace pb = google::protobuf;
using ::testing::HasSubstr;

std::span<const std::byte> bytes_of(const std::string& s) { return std::as_bytes(std::span(s)); }

// A viewer that knows nothing of takt: decodes by the schema alone.
class Viewer {
 public:
  explicit Viewer(const LogSchema& schema) : name_(schema.name) {
    EXPECT_EQ(schema.encoding, "protobuf");
    pb::FileDescriptorSet set;
    EXPECT_TRUE(set.ParseFromString(schema.data));
    for (const auto& file : set.file()) EXPECT_NE(pool_.BuildFile(file), nullptr) << file.name();
  }
  std::unique_ptr<pb::Message> parse(const std::string& bytes) {
    const auto* type = pool_.FindMessageTypeByName(name_);
    EXPECT_NE(type, nullptr) << name_;
    std::unique_ptr<pb::Message> message(factory_.GetPrototype(type)->New());
    EXPECT_TRUE(message->ParseFromString(bytes)) << name_;
    return message;
  }
  std::string json(const std::string& bytes) {
    std::string out;
    pb::util::JsonPrintOptions options;
    options.preserve_proto_field_names = true;
    EXPECT_TRUE(pb::util::MessageToJsonString(*parse(bytes), &out, options).ok());
    return out;
  }
  // What libprotobuf makes of JSON, in its own serialisation.
  std::string bytes(const std::string& json_text) {
    std::unique_ptr<pb::Message> message(factory_.GetPrototype(pool_.FindMessageTypeByName(name_))->New());
    const auto status = pb::util::JsonStringToMessage(json_text, message.get());
    EXPECT_TRUE(status.ok()) << status.ToString();
    return message->SerializeAsString();
  }
  // No field of the bytes is unknown to the schema, and libprotobuf writes the same bytes again.
  void expect_same_bytes(const std::string& bytes) { EXPECT_EQ(parse(bytes)->SerializeAsString(), bytes); }

 private:
  std::string name_;
  pb::DescriptorPool pool_;
  pb::DynamicMessageFactory factory_{&pool_};
};

Viewer viewer(const char* name) { return Viewer(log_schema(name).value()); }

constexpr SensorTime kStamp{1'700'000'000'123'456'789};
constexpr const char* kStampJson = "2023-11-14T22:13:20.123456789Z";

TEST(LogMessages, CompressedImage) {
  Viewer view(log_schema("foxglove.CompressedImage").value());
  const std::string data("\xff\xd8\xff\0binary", 10);
  const std::string bytes = encode(log::CompressedImage{kStamp, "camera", "jpeg", bytes_of(data)});
  view.expect_same_bytes(bytes);
  EXPECT_EQ(view.json(bytes), std::string(R"({"timestamp":")") + kStampJson +
                                  R"(","data":"/9j/AGJpbmFyeQ==","format":"jpeg","frame_id":"camera"})");
  const auto back = decode_compressed_image(bytes_of(bytes));
  ASSERT_TRUE(back);
  EXPECT_EQ(back->stamp, kStamp);
  EXPECT_EQ(back->frame_id, "camera");
  EXPECT_EQ(back->format, "jpeg");
  EXPECT_EQ(back->data.size(), data.size());
  EXPECT_GE(reinterpret_cast<const char*>(back->data.data()), bytes.data()) << "a view, not a copy";
  EXPECT_LT(reinterpret_cast<const char*>(back->data.data()), bytes.data() + bytes.size());
}

TEST(LogMessages, CameraCalibration) {
  Viewer view(log_schema("foxglove.CameraCalibration").value());
  const log::CameraCalibration in{kStamp, "camera", 640, 384, 500, 501, 320.5, 192.25, {-0.1, 0.01, 0, 0.002, 0.5}};
  const std::string bytes = encode(in);
  view.expect_same_bytes(bytes);
  EXPECT_THAT(view.json(bytes), HasSubstr(R"("distortion_model":"plumb_bob")"));
  EXPECT_THAT(view.json(bytes), HasSubstr(R"("K":[500,0,320.5,0,501,192.25,0,0,1])"));
  const auto back = decode_camera_calibration(bytes_of(bytes));
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(back->width, 640u);
  EXPECT_EQ(back->height, 384u);
  EXPECT_EQ(back->fx, 500);
  EXPECT_EQ(back->fy, 501);
  EXPECT_EQ(back->cx, 320.5);
  EXPECT_EQ(back->cy, 192.25);
  EXPECT_EQ(back->distortion, in.distortion);
  EXPECT_THAT(
      decode_camera_calibration(bytes_of(view.bytes(R"({"distortion_model":"kannala_brandt"})"))).error().message,
      HasSubstr("kannala_brandt"));
}

TEST(LogMessages, LidarAndRadarLayouts) {
  Viewer view(log_schema("foxglove.PointCloud").value());
  const std::vector<log::LidarPoint> points{{1, 2, 3, 0.5F, -7, 31}, {-1, -2, -3, 0, 99'000'000, 0}};
  const std::string bytes = encode_lidar(kStamp, "lidar", points);
  view.expect_same_bytes(bytes);
  const std::string json = view.json(bytes);
  EXPECT_THAT(json, HasSubstr(R"("point_stride":22)"));
  EXPECT_THAT(json, HasSubstr(R"({"name":"time_offset_ns","offset":16,"type":"INT32"})"));
  EXPECT_THAT(json, HasSubstr(R"({"name":"ring","offset":20,"type":"UINT16"})"));
  EXPECT_THAT(json, HasSubstr(R"("orientation":{"w":1})"));
  const auto back = decode_point_cloud(bytes_of(bytes));
  ASSERT_TRUE(back);
  EXPECT_EQ(back->field_count, 6u);
  EXPECT_EQ(back->point_stride, 22u);
  EXPECT_EQ(back->data.size(), 44u);

  const std::vector<RadarReturn> returns{{1, 2, 3, -4.5F, 12}};
  const std::string radar = encode_radar(kStamp, "radar", returns);
  view.expect_same_bytes(radar);
  EXPECT_THAT(view.json(radar), HasSubstr(R"({"name":"range_rate","offset":12,"type":"FLOAT32"})"));

  // From a payload: the same bytes as from points.
  std::vector<std::byte> payload(PointCloud::bytes_for(10) + 64);
  void* at = payload.data();
  std::size_t room = payload.size();
  auto& cloud = *new (std::align(64, PointCloud::bytes_for(10), at, room)) PointCloud;
  cloud.capacity = 10;
  cloud.count = 2;
  for (std::size_t i = 0; i < 2; ++i) {
    cloud.x()[i] = points[i].x;
    cloud.y()[i] = points[i].y;
    cloud.z()[i] = points[i].z;
    cloud.intensity()[i] = points[i].intensity;
    cloud.time_ns()[i] = points[i].time_ns;
    cloud.ring()[i] = points[i].ring;
  }
  EXPECT_EQ(encode_lidar(kStamp, "lidar", cloud), bytes);
}

TEST(LogMessages, PosesAndTransforms) {
  const log::Pose pose{{1, -2, 0}, {0.5, 0.1, -0.5, 0.7}};
  const std::string one = encode(log::PoseInFrame{kStamp, "map", pose});
  viewer("foxglove.PoseInFrame").expect_same_bytes(one);
  EXPECT_THAT(viewer("foxglove.PoseInFrame").json(one),
              HasSubstr(R"("orientation":{"x":0.1,"y":-0.5,"z":0.7,"w":0.5})"));
  EXPECT_EQ(decode_pose_in_frame(bytes_of(one))->pose.orientation, pose.orientation);
  EXPECT_EQ(decode_pose_in_frame(bytes_of(one))->pose.position, pose.position);

  const std::vector<log::FrameTransform> transforms{{kStamp, "map", "base", pose}, {{0}, "base", "lidar", {}}};
  const std::string bytes = encode(transforms);
  viewer("foxglove.FrameTransforms").expect_same_bytes(bytes);
  const auto back = decode_frame_transforms(bytes_of(bytes));
  ASSERT_TRUE(back);
  ASSERT_EQ(back->size(), 2u);
  EXPECT_EQ((*back)[0].parent, "map");
  EXPECT_EQ((*back)[0].child, "base");
  EXPECT_EQ((*back)[0].stamp, kStamp);
  EXPECT_EQ((*back)[0].pose.orientation, pose.orientation);
  EXPECT_EQ((*back)[1].pose.orientation, (std::array<double, 4>{1, 0, 0, 0}));
}

TEST(LogMessages, SceneAndAnnotations) {
  log::SceneUpdate scene{kStamp, "base", milliseconds(250), {}};
  scene.boxes.push_back({"track-1", "vehicle", {{10, 0, 1}, {1, 0, 0, 0}}, {4, 2, 1.5}, {0, 0, 1, 0.5}});
  scene.boxes.push_back({"track-2", "", {}, {1, 1, 1}, {}});
  const std::string bytes = encode(scene);
  Viewer view(log_schema("foxglove.SceneUpdate").value());
  view.expect_same_bytes(bytes);
  const std::string json = view.json(bytes);
  EXPECT_THAT(json, HasSubstr(R"("lifetime":"0.250s","frame_locked":true)"));
  EXPECT_THAT(json, HasSubstr(R"("size":{"x":4,"y":2,"z":1.5})"));
  EXPECT_THAT(json, HasSubstr(R"("text":"vehicle")"));

  const std::string annotations = encode(log::ImageAnnotations{kStamp, {{1, 2, 30, 40, "car", {}}}});
  Viewer pictures(log_schema("foxglove.ImageAnnotations").value());
  pictures.expect_same_bytes(annotations);
  EXPECT_THAT(
      pictures.json(annotations),
      HasSubstr(R"("type":"LINE_LOOP","points":[{"x":1,"y":2},{"x":30,"y":2},{"x":30,"y":40},{"x":1,"y":40}])"));
  EXPECT_THAT(pictures.json(annotations), HasSubstr(kStampJson));
}

TEST(LogMessages, EgoAndTruth) {
  const log::EgoMotion ego{kStamp, "map", "base", {{1, 2, 3}, {0, 0, 0, 1}}, {10, 0.1, 0}, {0, 0, -0.2}};
  const std::string bytes = encode(ego);
  viewer("takt.EgoMotion").expect_same_bytes(bytes);
  EXPECT_THAT(viewer("takt.EgoMotion").json(bytes), HasSubstr(R"("orientation":{"z":1})"));
  const auto back = decode_ego_motion(bytes_of(bytes));
  ASSERT_TRUE(back);
  EXPECT_EQ(back->world_frame, "map");
  EXPECT_EQ(back->vehicle_frame, "base");
  EXPECT_EQ(back->pose.orientation, ego.pose.orientation);
  EXPECT_EQ(back->velocity, ego.velocity);
  EXPECT_EQ(back->angular_velocity, ego.angular_velocity);

  log::Truth truth{kStamp, "base", {}};
  truth.boxes.push_back({7, 2, {{5, -1, 0.9}, {1, 0, 0, 0}}, {0.6, 0.5, 1.8}, {1.2, 0, 0}, 41});
  truth.boxes.push_back({8, 1, {}, {4, 2, 1.5}, {}, 0});
  const std::string truth_bytes = encode(truth);
  viewer("takt.Truth").expect_same_bytes(truth_bytes);
  EXPECT_THAT(viewer("takt.Truth").json(truth_bytes), HasSubstr(R"("object_class":"OBJECT_PEDESTRIAN")"));
  const auto truth_back = decode_truth(bytes_of(truth_bytes));
  ASSERT_TRUE(truth_back);
  ASSERT_EQ(truth_back->boxes.size(), 2u);
  EXPECT_EQ(truth_back->boxes[0].id, 7u);
  EXPECT_EQ(truth_back->boxes[0].lidar_points, 41u);
  EXPECT_EQ(truth_back->boxes[0].velocity, truth.boxes[0].velocity);
  EXPECT_EQ(truth_back->boxes[0].size, truth.boxes[0].size);

  const auto scene = scene_of(truth, milliseconds(300));
  ASSERT_EQ(scene.boxes.size(), 2u);
  EXPECT_EQ(scene.boxes[0].label, "pedestrian 7");
  viewer("foxglove.SceneUpdate").expect_same_bytes(encode(scene));
}

TEST(LogMessages, WhatLibprotobufWritesIsRead) {
  // Field order, unpacked numbers and unknown fields are libprotobuf's choice.
  const auto calibration =
      viewer("foxglove.CameraCalibration").bytes(R"({"width":8,"height":4,"K":[1,2,3,4,5,6,7,8,9],"frame_id":"c"})");
  EXPECT_EQ(decode_camera_calibration(bytes_of(calibration))->cx, 3);
  std::string with_unknown;
  wire::Writer writer(with_unknown);
  writer.text(100, "a message id of a later version of the type");
  writer.unsigned_(200, 7);
  writer.text(4, "camera");
  EXPECT_EQ(decode_compressed_image(bytes_of(with_unknown))->frame_id, "camera");
  const auto before_epoch = viewer("foxglove.PoseInFrame").bytes(R"({"timestamp":"1969-12-31T23:59:59.500Z"})");
  EXPECT_EQ(decode_pose_in_frame(bytes_of(before_epoch))->stamp.ns, -500'000'000);
  std::string written;
  wire::Writer(written).stamp(1, {-500'000'000});
  EXPECT_EQ(written, before_epoch.substr(0, written.size()));
}

TEST(LogMessages, CutMessagesAreErrorsWithAPlace) {
  const std::vector<log::LidarPoint> points(3);
  const std::string bytes = encode_lidar(kStamp, "lidar", points);
  std::size_t errors = 0;
  for (std::size_t cut = 0; cut < bytes.size(); ++cut) {
    const auto result = decode_point_cloud(bytes_of(bytes).first(cut));
    if (result) continue;  // cut between two fields
    ++errors;
    EXPECT_EQ(result.error().code, Code::kInput);
    EXPECT_THAT(result.error().message, ::testing::MatchesRegex("foxglove.PointCloud: .* \\(field .* at byte .*\\)"));
  }
  EXPECT_GT(errors, bytes.size() / 2);
  EXPECT_THAT(decode_point_cloud(bytes_of("\x32\xff\xff\xff\xff\x0f")).error().message,
              HasSubstr("length 4294967295 exceeds the bytes left (field 6 at byte 0)"));
  EXPECT_THAT(decode_point_cloud(bytes_of("\x0b")).error().message, HasSubstr("unknown wire type"));
  EXPECT_THAT(decode_ego_motion(bytes_of("\x20\x01")).error().message, HasSubstr("wrong wire type 0 (field 4"));
}

}  // namespace
}  // namespace takt::sensors

namespace takt::pipeline {
namespace {

using sensors::Viewer;
using ::testing::HasSubstr;

TEST(PipelineMessages, ObjectList) {
  auto list = std::make_unique<ObjectList>();
  list->count = 2;
  list->sensor = 1;
  list->dropped = 3;
  list->input_points = 1000;
  list->invalid_points = 4;
  list->stamp_ns = 5'000'000'000;
  list->objects[0] = {
      1, 2, 3, 4, 5, 6, 0.5F, 0.9F, 0, 0, 0, 0, 0, 0, 0, 0.25F, ObjectClass::kVehicle, kHasPosition | kHasBox, 77, 0};
  list->objects[1].flags = kHasImageBox | kHasRangeRate;
  list->objects[1].range_rate = -3;
  list->objects[1].u1 = 10;
  list->objects[1].v1 = 20;
  list->objects[1].object_class = ObjectClass::kCyclist;
  std::vector<transport::SourceStamps> sources(3);
  sources[1] = {4'000'000'000, 5'000'000'000};
  const std::string bytes = encode(*list, sources);
  Viewer view(pipeline_schema("takt.ObjectList").value());
  view.expect_same_bytes(bytes);
  EXPECT_THAT(view.json(bytes), HasSubstr(R"("sources":[{"sensor":1,"oldest":"1970-01-01T00:00:04Z")"));
  EXPECT_THAT(view.json(bytes), HasSubstr(R"("object_class":"OBJECT_VEHICLE")"));
  const auto back = decode_object_list(std::as_bytes(std::span(bytes)));
  ASSERT_TRUE(back);
  EXPECT_EQ(back->count, 2u);
  EXPECT_EQ(back->invalid_points, 4u);
  EXPECT_EQ(std::memcmp(&back->objects, &list->objects, 2 * sizeof(Object)), 0);

  const auto scene = scene_of(*list, "base", milliseconds(100));
  ASSERT_EQ(scene.boxes.size(), 1u) << "only objects with an extent";
  EXPECT_EQ(scene.boxes[0].label, "vehicle 0.90");
  EXPECT_NEAR(scene.boxes[0].pose.orientation[0], 0.96891242171, 1e-9);
  EXPECT_NEAR(scene.boxes[0].pose.orientation[3], 0.24740395925, 1e-9);
  const auto annotations = annotations_of(*list);
  ASSERT_EQ(annotations.boxes.size(), 1u);
  EXPECT_EQ(annotations.boxes[0].v1, 20);
}

TEST(PipelineMessages, TrackList) {
  auto list = std::make_unique<TrackList>();
  list->count = 1;
  list->missing_inputs = 2;
  list->repeat_inputs = 1;
  list->stamp_ns = 7;
  list->tracks[0] = {42, ObjectClass::kPedestrian, 1, 2, 3, 4, 5, 6, -3, 7, 8, 0.5F, 0.75F, 9, 1, 5};
  const std::string bytes = encode(*list);
  Viewer view(pipeline_schema("takt.TrackList").value());
  view.expect_same_bytes(bytes);
  const auto back = decode_track_list(std::as_bytes(std::span(bytes)));
  ASSERT_TRUE(back);
  EXPECT_EQ(back->missing_inputs, 2u);
  EXPECT_EQ(std::memcmp(&back->tracks[0], &list->tracks[0], sizeof(Track)), 0);
  EXPECT_EQ(scene_of(*list, "base", {}).boxes[0].id, "track-42");
}

TEST(PipelineMessages, JobRecord) {
  sched::JobRecord record;
  record.stage = 1;
  record.job = 12;
  record.hyperperiod = 4;
  record.job_class = sched::JobClass::kLate;
  record.flags = sched::kFlagLate;
  record.nominal_start = 0;  // table time zero is a time, not an absence
  record.actual_start = 1'500;
  record.completion = 2'500'000;
  record.slot_end = 2'000'000;
  record.input_count = 2;
  record.inputs[0] = {3, 1'000, 2'000, 1, sched::Reason::kNone, 0, {}};
  record.inputs[1].reason = sched::Reason::kFeederLate;
  const std::string bytes = encode(record, "fusion", "full");
  Viewer view(pipeline_schema("takt.JobRecord").value());
  view.expect_same_bytes(bytes);
  const std::string json = view.json(bytes);
  EXPECT_THAT(json, HasSubstr(R"("job_class":"LATE")"));
  EXPECT_THAT(json, HasSubstr(R"("nominal_start_ns":"0")"));
  EXPECT_THAT(json, ::testing::Not(HasSubstr("publication_ns")));
  EXPECT_THAT(json, HasSubstr(R"("kind":"REPEAT")"));
  EXPECT_THAT(json, HasSubstr(R"("kind":"ABSENT","reason":"FEEDER_LATE")"));
  EXPECT_EQ(
      job_metrics(record, "fusion", "full"),
      R"({"stage":"fusion","variant":"full","job":12,"class":"late","start_us":1.500,"execution_us":2498.500,)"
      R"("slot_us":2000.000,"cpu_us":0.000,"copied_bytes":0,"allocations":0,"page_faults":0,"involuntary_switches":0})");
  EXPECT_EQ(pipeline_schema("takt.JobMetrics")->encoding, "jsonschema");
}

}  // namespace
}  // namespace takt::pipeline
