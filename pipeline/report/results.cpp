#include "pipeline/report/results.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "pipeline/messages/encode.h"
#include "pipeline/report/manifest_archive.h"
#include "pipeline/report/record_index.h"
#include "pipeline/report/run_folder.h"
#include "sensors/logs/decode.h"
#include "sensors/logs/encode.h"
#include "sensors/logs/mcap_writer.h"
#include "sensors/logs/wire.h"

namespace takt::pipeline {
namespace {

using sensors::McapWriter;
using sensors::wire::Reader;

SensorTime sensor_time(const RunData& run, std::int64_t table_ns) {
  return run.sensor_from_table.map_unchecked(TableTime{table_ns});
}

// MCAP times are unsigned: an instant before 0 of the sensor clock is written as 0.
SensorTime not_negative(SensorTime t) { return t.ns < 0 ? SensorTime{0} : t; }

std::string variant_name(const RunData& run, const sched::JobRecord& record) {
  const auto& variants = run.problem.stages[record.stage].variants;
  return record.variant < variants.size() ? variants[record.variant].name : "";
}

// When the record was made, for the order in the file: publication, else the end of the slot.
std::int64_t moment_of(const sched::JobRecord& record) {
  if (record.publication != sched::kNever) return record.publication;
  return record.slot_end != sched::kNever ? record.slot_end : record.nominal_start;
}

// ---- writing ----------------------------------------------------------------------------------------------------

class ResultsWriter {
 public:
  ResultsWriter(const RunData& run, McapWriter& writer) : run_(run), writer_(writer) {
    for (const sched::JobRecord& record : run.records) published_[{record.stage, record.job}] = record.publication;
  }

  Status write() {
    TAKT_RETURN_IF_ERROR(transforms());
    for (const ObjectFrame& frame : run_.objects) TAKT_RETURN_IF_ERROR(objects(frame));
    for (const TrackFrame& frame : run_.tracks) TAKT_RETURN_IF_ERROR(tracks(frame));
    for (const TruthFrame& frame : run_.truth) TAKT_RETURN_IF_ERROR(truth(frame));
    TAKT_RETURN_IF_ERROR(writer_.add_metadata("takt.run", {{"pipeline", run_.pipeline_name},
                                                           {"mode", run_.mode},
                                                           {"drive", run_.rig.drive},
                                                           {"host", run_.environment.host},
                                                           {"kernel", run_.environment.kernel},
                                                           {"clock_source", run_.environment.clock_source}}));
    return writer_.add_attachment("run.json", "application/json", not_negative(sensor_time(run_, 0)),
                                  manifest_json(run_));
  }

 private:
  // Id of a channel, made when first used.
  Result<std::uint16_t> channel(const std::string& topic, const std::string& schema_name) {
    const auto known = channels_.find(topic);
    if (known != channels_.end()) return known->second;
    Result<sensors::LogSchema> schema = schema_name.rfind("foxglove.", 0) == 0 || schema_name == "takt.Truth"
                                            ? sensors::log_schema(schema_name)
                                            : pipeline_schema(schema_name);
    if (!schema) return fail(std::move(schema).error());
    TAKT_ASSIGN(const std::uint16_t id, writer_.add_schema(*schema));
    TAKT_ASSIGN(const std::uint16_t added, writer_.add_channel(topic, "protobuf", id));
    channels_[topic] = added;
    return added;
  }
  Status put(const std::string& topic, const std::string& schema, SensorTime log, SensorTime stamp,
             std::uint64_t sequence, const std::string& bytes) {
    TAKT_ASSIGN(const std::uint16_t id, channel(topic, schema));
    return writer_.write(id, not_negative(log), not_negative(stamp), static_cast<std::uint32_t>(sequence), bytes);
  }

  [[nodiscard]] SensorTime log_time(std::uint32_t stage, std::uint64_t job, SensorTime stamp) const {
    const auto at = published_.find({stage, job});
    return at == published_.end() || at->second == sched::kNever ? stamp : sensor_time(run_, at->second);
  }
  [[nodiscard]] Duration lifetime(std::uint32_t stage) const {
    return Duration{run_.problem.hyperperiod.ns * 5 / 2 / std::max<std::int64_t>(1, run_.schedule.choices[stage].rate)};
  }

  // Static, but repeated: a viewer that starts in the middle needs them, too.
  Status transforms() {
    std::set<std::int64_t> stamps;
    for (const TrackFrame& frame : run_.tracks) stamps.insert(frame.list.stamp().ns);
    for (const ObjectFrame& frame : run_.objects) stamps.insert(frame.list.stamp().ns);
    std::uint64_t sequence = 0;
    for (const std::int64_t stamp : stamps) {
      std::vector<sensors::log::FrameTransform> list;
      for (const sensors::RigSensor& sensor : run_.rig.sensors) {
        if (sensor.frame_id.empty() || sensor.frame_id == run_.rig.vehicle_frame) continue;
        sensors::log::FrameTransform& transform = list.emplace_back();
        transform.stamp = {stamp};
        transform.parent = run_.rig.vehicle_frame;
        transform.child = sensor.frame_id;
        transform.pose.position = sensor.vehicle_from_sensor.translation;
        transform.pose.orientation = sensor.vehicle_from_sensor.quaternion();
      }
      if (list.empty()) return {};
      TAKT_RETURN_IF_ERROR(
          put("/tf", "foxglove.FrameTransforms", {stamp}, {stamp}, sequence++, sensors::encode(std::span(list))));
    }
    return {};
  }

  Status objects(const ObjectFrame& frame) {
    const std::string& topic = run_.stages[frame.stage].topic;
    const ObjectList list = frame.list.get();
    const SensorTime stamp = frame.list.stamp(), log = log_time(frame.stage, frame.job, stamp);
    TAKT_RETURN_IF_ERROR(put(topic + "/takt", "takt.ObjectList", log, stamp, frame.job, encode(list)));
    const auto scene = scene_of(list, run_.rig.vehicle_frame, lifetime(frame.stage));
    TAKT_RETURN_IF_ERROR(put(topic, "foxglove.SceneUpdate", log, stamp, frame.job, sensors::encode(scene)));
    const bool camera =
        list.sensor < run_.rig.sensors.size() && run_.rig.sensors[list.sensor].kind == sensors::SensorKind::kCamera;
    if (!camera) return {};
    return put(topic + "/image", "foxglove.ImageAnnotations", log, stamp, frame.job,
               sensors::encode(annotations_of(list)));
  }

  Status tracks(const TrackFrame& frame) {
    const std::string& topic = run_.stages[frame.stage].topic;
    const TrackList list = frame.list.get();
    const SensorTime stamp = frame.list.stamp(), log = log_time(frame.stage, frame.job, stamp);
    TAKT_RETURN_IF_ERROR(put(topic + "/takt", "takt.TrackList", log, stamp, frame.job, encode(list)));
    const auto scene = scene_of(list, run_.rig.vehicle_frame, lifetime(frame.stage));
    return put(topic, "foxglove.SceneUpdate", log, stamp, frame.job, sensors::encode(scene));
  }

  Status truth(const TruthFrame& frame) {
    sensors::log::Truth message;
    message.stamp = frame.stamp;
    message.frame_id = run_.rig.vehicle_frame;
    for (const TruthBox& box : frame.boxes) {
      sensors::log::TruthBox& out = message.boxes.emplace_back();
      out.id = box.id;
      out.object_class = static_cast<std::uint32_t>(box.object_class);
      out.pose.position = {box.x, box.y, box.z};
      out.pose.orientation = {std::cos(box.yaw / 2), 0, 0, std::sin(box.yaw / 2)};
      out.size = {box.length, box.width, box.height};
      out.velocity = {box.vx, box.vy, 0};
      out.lidar_points = box.lidar_points;
    }
    TAKT_RETURN_IF_ERROR(put("/truth/takt", "takt.Truth", frame.stamp, frame.stamp, 0, sensors::encode(message)));
    return put("/truth", "foxglove.SceneUpdate", frame.stamp, frame.stamp, 0,
               sensors::encode(sensors::scene_of(message, milliseconds(250))));
  }

  const RunData& run_;
  McapWriter& writer_;
  std::map<std::string, std::uint16_t> channels_;
  std::map<std::pair<std::uint32_t, std::uint64_t>, std::int64_t> published_;
};

// ---- reading ----------------------------------------------------------------------------------------------------

std::int64_t zigzag(std::uint64_t v) { return static_cast<std::int64_t>(v >> 1) ^ -static_cast<std::int64_t>(v & 1); }

sched::InputRecord read_input(Reader& reader) {
  sched::InputRecord input;
  input.kind = 0;  // proto3 leaves zeros out
  reader.message([&](Reader& r) {
    switch (r.field()) {
      case 1: input.job = r.unsigned_(); break;
      case 2: input.capture_ns = r.time_ns(); break;
      case 3: input.arrival_ns = r.time_ns(); break;
      case 4: input.kind = static_cast<std::uint8_t>(std::min<std::uint64_t>(r.unsigned_(), 3)); break;
      case 5:
        input.reason = static_cast<sched::Reason>(std::min<std::uint64_t>(r.unsigned_(), sched::kReasons - 1));
        break;
      case 6: input.moved = r.unsigned_() != 0 ? 1 : 0; break;
      default: break;
    }
  });
  return input;
}

sched::SegmentRecord read_segment(Reader& reader) {
  sched::SegmentRecord segment;
  reader.message([&](Reader& r) {
    switch (r.field()) {
      case 1: segment.start = zigzag(r.unsigned_()); break;
      case 2: segment.end = zigzag(r.unsigned_()); break;
      default: break;
    }
  });
  return segment;
}

// takt.JobRecord, as pipeline/messages writes it.
Result<sched::JobRecord> read_record(const RunData& run, std::span<const std::byte> bytes) {
  sched::JobRecord record;
  record.job_class = sched::JobClass::kSkipped;
  std::string variant;
  Reader reader(bytes);
  while (reader.next()) {
    switch (reader.field()) {
      case 2: variant = std::string(reader.text()); break;
      case 3: record.job = reader.unsigned_(); break;
      case 4: record.hyperperiod = reader.unsigned_(); break;
      case 5: record.stage = reader.unsigned32(); break;
      case 6: record.slot = reader.unsigned32(); break;
      case 7: record.cores = reader.unsigned32(); break;
      case 8: record.job_class = static_cast<sched::JobClass>(std::min<std::uint64_t>(reader.unsigned_(), 5)); break;
      case 9:
        record.reason = static_cast<sched::Reason>(std::min<std::uint64_t>(reader.unsigned_(), sched::kReasons - 1));
        break;
      case 10: record.flags = reader.unsigned32(); break;
      case 11: record.nominal_start = zigzag(reader.unsigned_()); break;
      case 12: record.actual_start = zigzag(reader.unsigned_()); break;
      case 13: record.completion = zigzag(reader.unsigned_()); break;
      case 14: record.publication = zigzag(reader.unsigned_()); break;
      case 15: record.slot_end = zigzag(reader.unsigned_()); break;
      case 16: record.cpu_ns = reader.signed_(); break;
      case 17: record.page_faults = reader.unsigned32(); break;
      case 18: record.allocations = reader.unsigned32(); break;
      case 19: record.copied_bytes = reader.unsigned_(); break;
      case 20: record.published = reader.unsigned_() != 0 ? 1 : 0; break;
      case 21:
        if (record.input_count == sched::kMaxInputs) {
          reader.fail("too many inputs");
        } else {
          record.inputs[record.input_count++] = read_input(reader);
        }
        break;
      case 22: record.output_bytes = reader.unsigned_(); break;
      case 27: record.aborted_at = reader.unsigned32(); break;
      case 28: record.mode = reader.unsigned32(); break;
      case 29: record.launch_ns = reader.signed_(); break;
      case 30: record.device_ns = reader.signed_(); break;
      case 31:
        if (record.segment_count == sched::kMostSegments) {
          reader.fail("too many segments");
        } else {
          record.segments[record.segment_count++] = read_segment(reader);
        }
        break;
      case 23: {
        const auto digest = digest_from_hex(reader.text());
        if (!digest) {
          reader.fail("no digest");
        } else {
          record.output = *digest;
        }
        break;
      }
      case 24: record.major_faults = reader.unsigned32(); break;
      case 25: record.voluntary_switches = reader.unsigned32(); break;
      case 26: record.involuntary_switches = reader.unsigned32(); break;
      default: break;
    }
  }
  TAKT_RETURN_IF_ERROR(reader.status());
  if (record.stage >= run.problem.stages.size()) return fail(Code::kInput, "a record names an unknown stage");
  if (!run.modes.empty() && record.mode >= run.modes.size())
    return fail(Code::kInput, "a record names an unknown mode");
  const sched::Schedule& table = run.table_of(record);
  if (record.slot >= table.slots.size()) return fail(Code::kInput, "a record names an unknown slot");
  if (record.segment_count != 0 && record.segment_count != table.choices[record.stage].budget.segments.size()) {
    return fail(Code::kInput, "a record has other segments than its table");
  }
  const auto& variants = run.problem.stages[record.stage].variants;
  for (std::uint32_t v = 0; v < variants.size(); ++v) {
    if (variants[v].name == variant) record.variant = v;
  }
  return record;
}

}  // namespace

TruthFrame truth_frame(const sensors::log::Truth& message) {
  TruthFrame out;
  out.stamp = message.stamp;
  for (const sensors::log::TruthBox& box : message.boxes) {
    TruthBox& b = out.boxes.emplace_back();
    b.id = box.id;
    b.object_class = box.object_class > 4 ? ObjectClass::kUnknown : static_cast<ObjectClass>(box.object_class);
    b.x = box.pose.position[0];
    b.y = box.pose.position[1];
    b.z = box.pose.position[2];
    b.length = box.size[0];
    b.width = box.size[1];
    b.height = box.size[2];
    const auto& q = box.pose.orientation;
    b.yaw = std::atan2(2 * (q[0] * q[3] + q[1] * q[2]), 1 - 2 * (q[2] * q[2] + q[3] * q[3]));
    b.vx = box.velocity[0];
    b.vy = box.velocity[1];
    b.lidar_points = box.lidar_points;
  }
  return out;
}

namespace {

template <class T>
Result<T> named(Result<T> result, const std::string& path) {
  if (!result) return fail(std::move(result).error().with_context(path));
  return result;
}

Status sound(const sensors::LogReader& log, const std::string& path) {
  if (log.problems().empty()) return {};
  const sensors::LogProblem& first = log.problems().front();
  return fail(Code::kInput,
              path + ": damaged, " + first.kind + " at byte " + std::to_string(first.offset) + ": " + first.detail);
}

}  // namespace

Status write_records_mcap(const RunData& run, const std::string& path) {
  TAKT_ASSIGN(McapWriter writer, McapWriter::create(path));
  TAKT_ASSIGN(const sensors::LogSchema record_schema, pipeline_schema("takt.JobRecord"));
  TAKT_ASSIGN(const sensors::LogSchema metrics_schema, pipeline_schema("takt.JobMetrics"));
  TAKT_ASSIGN(const std::uint16_t record_id, writer.add_schema(record_schema));
  TAKT_ASSIGN(const std::uint16_t metrics_id, writer.add_schema(metrics_schema));
  std::vector<std::pair<std::uint16_t, std::uint16_t>> channels;  // by stage
  for (const sched::Stage& stage : run.problem.stages) {
    TAKT_ASSIGN(const std::uint16_t records,
                writer.add_channel("/jobs/" + stage.name + "/takt", "protobuf", record_id));
    TAKT_ASSIGN(const std::uint16_t metrics, writer.add_channel("/jobs/" + stage.name, "json", metrics_id));
    channels.emplace_back(records, metrics);
  }
  for (const sched::JobRecord& record : run.records) {
    const std::string& stage = run.problem.stages[record.stage].name;
    const std::string variant = variant_name(run, record);
    const SensorTime log = not_negative(sensor_time(run, moment_of(record)));
    const SensorTime nominal = not_negative(sensor_time(run, record.nominal_start));
    const auto sequence = static_cast<std::uint32_t>(record.job);
    TAKT_RETURN_IF_ERROR(
        writer.write(channels[record.stage].first, log, nominal, sequence, encode(record, stage, variant)));
    TAKT_RETURN_IF_ERROR(
        writer.write(channels[record.stage].second, log, nominal, sequence, job_metrics(record, stage, variant)));
  }
  return writer.finish();
}

Status write_results_mcap(const RunData& run, const std::string& path) {
  TAKT_ASSIGN(McapWriter writer, McapWriter::create(path));
  TAKT_RETURN_IF_ERROR(ResultsWriter(run, writer).write());
  return writer.finish();
}

Status read_records_mcap(RunData& run, const std::string& path) {
  TAKT_ASSIGN(const auto log, sensors::open_log(path));
  std::vector<std::string> topics;
  for (const sched::Stage& stage : run.problem.stages) topics.push_back("/jobs/" + stage.name + "/takt");
  log->select(topics);
  run.records.clear();
  while (true) {
    TAKT_ASSIGN(const auto message, log->next());
    if (!message) break;
    TAKT_ASSIGN(const sched::JobRecord record, named(read_record(run, message->bytes), path));
    run.records.push_back(record);
  }
  std::sort(run.records.begin(), run.records.end(), [](const sched::JobRecord& a, const sched::JobRecord& b) {
    return std::pair(a.stage, a.job) < std::pair(b.stage, b.job);
  });
  return sound(*log, path);
}

Status read_results_mcap(RunData& run, const std::string& path) {
  TAKT_ASSIGN(const auto log, sensors::open_log(path));
  std::map<std::string, std::uint32_t> stage_of;  // by topic
  std::vector<std::string> topics{"/truth/takt"};
  for (std::uint32_t s = 0; s < run.stages.size(); ++s) {
    stage_of[run.stages[s].topic + "/takt"] = s;
    topics.push_back(run.stages[s].topic + "/takt");
  }
  const RecordIndex index(run);
  log->select(topics);
  run.objects.clear();
  run.tracks.clear();
  run.truth.clear();
  while (true) {
    TAKT_ASSIGN(const auto message, log->next());
    if (!message) break;
    if (message->channel->topic == "/truth/takt") {
      TAKT_ASSIGN(const sensors::log::Truth truth, named(sensors::decode_truth(message->bytes), path));
      run.truth.push_back(truth_frame(truth));
      continue;
    }
    const auto stage = stage_of.find(message->channel->topic);
    if (stage == stage_of.end()) continue;
    const sched::JobRecord* record = index.find(stage->second, message->sequence);
    if (record == nullptr) return fail(Code::kInput, path + ": an output belongs to no recorded job");
    if (message->channel->schema == "takt.ObjectList") {
      ObjectFrame& frame = run.objects.emplace_back();
      frame.stage = stage->second;
      frame.job = record->job;
      TAKT_ASSIGN(frame.list, named(decode_object_list(message->bytes), path));
    } else {
      TrackFrame& frame = run.tracks.emplace_back();
      frame.stage = stage->second;
      frame.job = record->job;
      frame.published_ns = record->publication;
      TAKT_ASSIGN(frame.list, named(decode_track_list(message->bytes), path));
    }
  }
  const auto by_job = [](const auto& a, const auto& b) {
    return std::pair(a.stage, a.job) < std::pair(b.stage, b.job);
  };
  std::sort(run.objects.begin(), run.objects.end(), by_job);
  std::sort(run.tracks.begin(), run.tracks.end(), by_job);
  std::stable_sort(run.truth.begin(), run.truth.end(),
                   [](const TruthFrame& a, const TruthFrame& b) { return a.stamp < b.stamp; });
  return sound(*log, path);
}

}  // namespace takt::pipeline
