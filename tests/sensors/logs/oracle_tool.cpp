// The takt side of mcap_oracle.py.
//   oracle_tool write FOLDER   one file per compression, with every message type
//   oracle_tool dump FILE      one line per message in takt's order: topic, log time, publish time, bytes in
//   hexadecimal;
//                              then one line per problem
#include <cstdio>
#include <string>
#include <vector>

#include "pipeline/messages/encode.h"
#include "sensors/logs/encode.h"
#include "sensors/logs/log_reader.h"

using namespace takt;
using namespace takt::sensors;

namespace {

Status write_file(const std::string& path, Compression compression) {
  TAKT_ASSIGN(McapWriter writer, McapWriter::create(path, {compression, 2000}));
  const auto add = [&](const std::string& topic, const Result<LogSchema>& schema) -> Result<std::uint16_t> {
    if (!schema) return fail(schema.error());
    TAKT_ASSIGN(const auto id, writer.add_schema(*schema));
    return writer.add_channel(topic, schema->encoding == "jsonschema" ? "json" : "protobuf", id);
  };
  TAKT_ASSIGN(const auto image, add("/image", log_schema("foxglove.CompressedImage")));
  TAKT_ASSIGN(const auto calibration, add("/calibration", log_schema("foxglove.CameraCalibration")));
  TAKT_ASSIGN(const auto lidar, add("/lidar", log_schema("foxglove.PointCloud")));
  TAKT_ASSIGN(const auto radar, add("/radar", log_schema("foxglove.PointCloud")));
  TAKT_ASSIGN(const auto tf, add("/tf", log_schema("foxglove.FrameTransforms")));
  TAKT_ASSIGN(const auto ego, add("/ego", log_schema("foxglove.PoseInFrame")));
  TAKT_ASSIGN(const auto ego_takt, add("/ego/takt", log_schema("takt.EgoMotion")));
  TAKT_ASSIGN(const auto truth, add("/truth", log_schema("foxglove.SceneUpdate")));
  TAKT_ASSIGN(const auto truth_takt, add("/truth/takt", log_schema("takt.Truth")));
  TAKT_ASSIGN(const auto boxes, add("/boxes", log_schema("foxglove.ImageAnnotations")));
  TAKT_ASSIGN(const auto tracks, add("/tracks/takt", pipeline::pipeline_schema("takt.TrackList")));
  TAKT_ASSIGN(const auto objects, add("/objects/takt", pipeline::pipeline_schema("takt.ObjectList")));
  TAKT_ASSIGN(const auto jobs, add("/jobs/takt", pipeline::pipeline_schema("takt.JobRecord")));
  TAKT_ASSIGN(const auto metrics, add("/jobs", pipeline::pipeline_schema("takt.JobMetrics")));
  for (int i = 0; i < 20; ++i) {
    const SensorTime stamp{1'700'000'000'000'000'000 + i * 100'000'000LL}, arrival = stamp + milliseconds(i % 3 * 120);
    const std::string data(300, static_cast<char>(i));
    const log::Pose pose{{1.0 * i, 2, 3}, {1, 0, 0, 0}};
    const std::vector<log::LidarPoint> points(50, {1.0F * static_cast<float>(i), 2, 3, 0.5F, 7, 9});
    const std::vector<RadarReturn> returns{{1, 2, 3, -4.5F, 5}};
    const log::Truth boxes_of_truth{
        stamp, "base", {{static_cast<std::uint32_t>(i), 1, pose, {4, 2, 1}, {1, 0, 0}, 12}}};
    pipeline::TrackList track_list;
    track_list.count = 1;
    track_list.tracks[0].id = static_cast<std::uint32_t>(i) + 1;
    pipeline::ObjectList object_list;
    object_list.count = 1;
    object_list.objects[0].flags = pipeline::kHasBox;
    sched::JobRecord record;
    record.nominal_start = 0;
    const auto put = [&](std::uint16_t channel, const std::string& bytes) {
      return writer.write(channel, arrival, stamp, static_cast<std::uint32_t>(i), bytes);
    };
    TAKT_RETURN_IF_ERROR(
        put(image, encode(log::CompressedImage{stamp, "cam", "jpeg", std::as_bytes(std::span(data))})));
    TAKT_RETURN_IF_ERROR(put(calibration, encode(log::CameraCalibration{stamp, "cam", 64, 48, 50, 50, 32, 24, {}})));
    TAKT_RETURN_IF_ERROR(put(lidar, encode_lidar(stamp, "lidar", points)));
    TAKT_RETURN_IF_ERROR(put(radar, encode_radar(stamp, "radar", returns)));
    TAKT_RETURN_IF_ERROR(put(tf, encode(std::vector<log::FrameTransform>{{stamp, "map", "base", pose}})));
    TAKT_RETURN_IF_ERROR(put(ego, encode(log::PoseInFrame{stamp, "map", pose})));
    TAKT_RETURN_IF_ERROR(put(ego_takt, encode(log::EgoMotion{stamp, "map", "base", pose, {1, 0, 0}, {}})));
    TAKT_RETURN_IF_ERROR(put(truth, encode(scene_of(boxes_of_truth, milliseconds(250)))));
    TAKT_RETURN_IF_ERROR(put(truth_takt, encode(boxes_of_truth)));
    TAKT_RETURN_IF_ERROR(put(boxes, encode(log::ImageAnnotations{stamp, {{1, 2, 3, 4, "box", {}}}})));
    TAKT_RETURN_IF_ERROR(put(tracks, pipeline::encode(track_list)));
    TAKT_RETURN_IF_ERROR(put(objects, pipeline::encode(object_list)));
    TAKT_RETURN_IF_ERROR(put(jobs, pipeline::encode(record, "fusion", "full")));
    TAKT_RETURN_IF_ERROR(put(metrics, pipeline::job_metrics(record, "fusion", "full")));
  }
  TAKT_RETURN_IF_ERROR(writer.add_attachment("note.txt", "text/plain", {1}, "attached text"));
  TAKT_RETURN_IF_ERROR(writer.add_metadata("takt.drive", {{"drive", "simulated"}}));
  return writer.finish();
}

Status dump(const std::string& path) {
  TAKT_ASSIGN(const auto reader, open_log(path));
  for (;;) {
    TAKT_ASSIGN(const auto message, reader->next());
    if (!message) break;
    std::printf("%s %lld %lld ", message->channel->topic.c_str(), static_cast<long long>(message->arrival.ns),
                static_cast<long long>(message->capture.ns));
    for (const std::byte byte : message->bytes) std::printf("%02x", static_cast<unsigned>(byte));
    std::printf("\n");
  }
  for (const LogProblem& problem : reader->problems()) std::printf("problem: %s\n", problem.kind.c_str());
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  const std::string verb = argc == 3 ? argv[1] : "";
  Status status = fail(Code::kUsage, "usage: oracle_tool write FOLDER | dump FILE");
  if (verb == "write") {
    const std::string folder = argv[2];
    status = write_file(folder + "/none.mcap", Compression::kNone);
    if (status) status = write_file(folder + "/lz4.mcap", Compression::kLz4);
    if (status) status = write_file(folder + "/zstd.mcap", Compression::kZstd);
  } else if (verb == "dump") {
    status = dump(argv[2]);
  }
  if (status) return 0;
  std::fprintf(stderr, "%s\n", status.error().message.c_str());
  return exit_code(status.error().code);
}
