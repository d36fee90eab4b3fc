#include "pipeline/messages/encode.h"

#include <algorithm>

#include "kernels/reference/elementary.h"
#include "sensors/logs/wire.h"

namespace takt::pipeline {
namespace {

using sensors::wire::Reader;
using sensors::wire::Writer;

constexpr unsigned char kSchema[] = {
#include "pipeline/messages/takt_pipeline.proto.inc"
};

constexpr const char* kMetricsSchema = R"({
  "title": "takt.JobMetrics",
  "type": "object",
  "properties": {
    "stage": {"type": "string"},
    "variant": {"type": "string"},
    "job": {"type": "integer"},
    "class": {"type": "string"},
    "start_us": {"type": "number", "description": "actual start after the nominal start"},
    "execution_us": {"type": "number", "description": "completion after the actual start"},
    "published_us": {"type": "number", "description": "publication after the nominal start"},
    "slot_us": {"type": "number", "description": "slot end after the nominal start"},
    "cpu_us": {"type": "number"},
    "device_us": {"type": "number", "description": "of a job on a device: that one's own time"},
    "copied_bytes": {"type": "integer"},
    "allocations": {"type": "integer"},
    "page_faults": {"type": "integer"},
    "involuntary_switches": {"type": "integer", "description": "another thread was given the core of a worker"}
  }
})";

// In the order of sched::JobClass, whose own names belong to the dispatcher's library.
constexpr const char* kClassNames[] = {"skipped", "missing", "late start", "overrun", "late", "ok"};
static_assert(std::size(kClassNames) == sched::kJobClasses);

void write_vector(Writer& w, std::uint32_t field, float x, float y, float z) {
  w.message(field, [&](Writer& m) {
    m.double_(1, static_cast<double>(x));
    m.double_(2, static_cast<double>(y));
    m.double_(3, static_cast<double>(z));
  });
}

void read_vector(Reader& reader, float& x, float& y, float& z) {
  reader.message([&](Reader& r) {
    if (r.field() == 1) x = static_cast<float>(r.double_());
    if (r.field() == 2) y = static_cast<float>(r.double_());
    if (r.field() == 3) z = static_cast<float>(r.double_());
  });
}

void write_sources(Writer& w, std::uint32_t field, std::span<const transport::SourceStamps> sources) {
  for (std::size_t i = 0; i < sources.size(); ++i) {
    if (sources[i].newest_ns == transport::kNoStamp) continue;
    w.message(field, [&](Writer& m) {
      m.unsigned_(1, i);
      m.stamp(2, {sources[i].oldest_ns});
      m.stamp(3, {sources[i].newest_ns});
    });
  }
}

void write_object(Writer& w, const Object& o) {
  write_vector(w, 1, o.x, o.y, o.z);
  write_vector(w, 2, o.length, o.width, o.height);
  w.float_(3, o.yaw);
  w.unsigned_(4, static_cast<std::uint32_t>(o.object_class));
  w.float_(5, o.score);
  w.unsigned_(6, (o.flags & kHasPosition) != 0);
  w.unsigned_(7, (o.flags & kHasBox) != 0);
  w.unsigned_(8, (o.flags & kHasRangeRate) != 0);
  w.unsigned_(9, (o.flags & kHasImageBox) != 0);
  w.float_(10, o.range_rate);
  w.float_(11, o.ray_x);
  w.float_(12, o.ray_y);
  w.float_(13, o.u0);
  w.float_(14, o.v0);
  w.float_(15, o.u1);
  w.float_(16, o.v1);
  w.float_(17, o.position_variance);
  w.unsigned_(18, o.points);
}

Object read_object(Reader& reader) {
  Object o;
  const auto flag = [&](Reader& r, std::uint32_t bit) {
    if (r.unsigned_() != 0) o.flags |= bit;
  };
  reader.message([&](Reader& r) {
    switch (r.field()) {
      case 1: read_vector(r, o.x, o.y, o.z); break;
      case 2: read_vector(r, o.length, o.width, o.height); break;
      case 3: o.yaw = r.float_(); break;
      case 4: o.object_class = static_cast<ObjectClass>(r.unsigned32()); break;
      case 5: o.score = r.float_(); break;
      case 6: flag(r, kHasPosition); break;
      case 7: flag(r, kHasBox); break;
      case 8: flag(r, kHasRangeRate); break;
      case 9: flag(r, kHasImageBox); break;
      case 10: o.range_rate = r.float_(); break;
      case 11: o.ray_x = r.float_(); break;
      case 12: o.ray_y = r.float_(); break;
      case 13: o.u0 = r.float_(); break;
      case 14: o.v0 = r.float_(); break;
      case 15: o.u1 = r.float_(); break;
      case 16: o.v1 = r.float_(); break;
      case 17: o.position_variance = r.float_(); break;
      case 18: o.points = r.unsigned32(); break;
    }
  });
  return o;
}

void write_track(Writer& w, const Track& t) {
  w.unsigned_(1, t.id);
  w.unsigned_(2, static_cast<std::uint32_t>(t.object_class));
  write_vector(w, 3, t.x, t.y, t.z);
  write_vector(w, 4, t.length, t.width, t.height);
  w.float_(5, t.yaw);
  w.float_(6, t.vx);
  w.float_(7, t.vy);
  w.float_(8, t.position_variance);
  w.float_(9, t.score);
  w.unsigned_(10, t.hits);
  w.unsigned_(11, t.misses);
  w.unsigned_(12, t.sensors);
}

Track read_track(Reader& reader) {
  Track t;
  reader.message([&](Reader& r) {
    switch (r.field()) {
      case 1: t.id = r.unsigned32(); break;
      case 2: t.object_class = static_cast<ObjectClass>(r.unsigned32()); break;
      case 3: read_vector(r, t.x, t.y, t.z); break;
      case 4: read_vector(r, t.length, t.width, t.height); break;
      case 5: t.yaw = r.float_(); break;
      case 6: t.vx = r.float_(); break;
      case 7: t.vy = r.float_(); break;
      case 8: t.position_variance = r.float_(); break;
      case 9: t.score = r.float_(); break;
      case 10: t.hits = r.unsigned32(); break;
      case 11: t.misses = r.unsigned32(); break;
      case 12: t.sensors = r.unsigned32(); break;
    }
  });
  return t;
}

sensors::log::Color color_of(ObjectClass object_class) {
  switch (object_class) {
    case ObjectClass::kVehicle: return {0.20, 0.60, 1.00, 0.5};
    case ObjectClass::kPedestrian: return {1.00, 0.45, 0.20, 0.5};
    case ObjectClass::kCyclist: return {0.95, 0.80, 0.10, 0.5};
    case ObjectClass::kOther: return {0.65, 0.50, 0.90, 0.5};
    case ObjectClass::kUnknown: break;
  }
  return {0.6, 0.6, 0.6, 0.5};
}

std::array<double, 4> yaw_quaternion(double yaw) { return {kernels::cos(yaw / 2), 0, 0, kernels::sin(yaw / 2)}; }

std::string two_digits(float value) {
  const int percent = static_cast<int>(std::clamp(value, 0.0F, 9.99F) * 100);
  return std::to_string(percent / 100) + "." + (percent % 100 < 10 ? "0" : "") + std::to_string(percent % 100);
}

template <class Box>
sensors::log::SceneBox scene_box(const Box& box, std::string id, std::string label) {
  sensors::log::SceneBox out;
  out.id = std::move(id);
  out.label = std::move(label);
  out.pose.position = {static_cast<double>(box.x), static_cast<double>(box.y), static_cast<double>(box.z)};
  out.pose.orientation = yaw_quaternion(static_cast<double>(box.yaw));
  out.size = {static_cast<double>(box.length), static_cast<double>(box.width), static_cast<double>(box.height)};
  out.color = color_of(box.object_class);
  return out;
}

std::string microseconds_text(std::int64_t ns) {
  const bool negative = ns < 0;
  const std::uint64_t magnitude = negative ? 0 - static_cast<std::uint64_t>(ns) : static_cast<std::uint64_t>(ns);
  std::string fraction = std::to_string(magnitude % 1000);
  fraction.insert(0, 3 - fraction.size(), '0');
  return (negative ? "-" : "") + std::to_string(magnitude / 1000) + "." + fraction;
}

std::string json_text(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (static_cast<unsigned char>(c) >= 0x20) out += c;
  }
  return out + "\"";
}

}  // namespace

Result<sensors::LogSchema> pipeline_schema(std::string_view name) {
  if (name == "takt.JobMetrics") return sensors::LogSchema{std::string(name), "jsonschema", kMetricsSchema};
  for (const char* known : {"takt.ObjectList", "takt.TrackList", "takt.JobRecord"}) {
    if (name == known) {
      return sensors::LogSchema{std::string(name), "protobuf", std::string(std::begin(kSchema), std::end(kSchema))};
    }
  }
  return fail(Code::kInternal, "no pipeline schema is called '" + std::string(name) + "'");
}

std::string encode(const ObjectList& list, std::span<const transport::SourceStamps> sources) {
  std::string out;
  Writer w(out);
  w.stamp(1, {list.stamp_ns});
  w.unsigned_(2, list.sensor);
  for (std::uint32_t i = 0; i < std::min(list.count, kMaxObjects); ++i) {
    w.message(3, [&](Writer& m) { write_object(m, list.objects[i]); });
  }
  w.unsigned_(4, list.dropped);
  w.unsigned_(5, list.input_points);
  w.unsigned_(6, list.invalid_points);
  write_sources(w, 7, sources);
  return out;
}

std::string encode(const TrackList& list, std::span<const transport::SourceStamps> sources) {
  std::string out;
  Writer w(out);
  w.stamp(1, {list.stamp_ns});
  for (std::uint32_t i = 0; i < std::min(list.count, kMaxTracks); ++i) {
    w.message(2, [&](Writer& m) { write_track(m, list.tracks[i]); });
  }
  w.unsigned_(3, list.dropped);
  w.unsigned_(4, list.missing_inputs);
  w.unsigned_(5, list.repeat_inputs);
  write_sources(w, 6, sources);
  return out;
}

std::string encode(const sched::JobRecord& record, std::string_view stage, std::string_view variant) {
  std::string out;
  Writer w(out);
  const auto time = [&](std::uint32_t field, std::int64_t ns) {
    if (ns != sched::kNever) w.present_signed(field, ns);
  };
  w.text(1, stage);
  w.text(2, variant);
  w.unsigned_(3, record.job);
  w.unsigned_(4, record.hyperperiod);
  w.unsigned_(5, record.stage);
  w.unsigned_(6, record.slot);
  w.unsigned_(7, record.cores);
  w.unsigned_(8, static_cast<std::uint32_t>(record.job_class));
  w.unsigned_(9, static_cast<std::uint32_t>(record.reason));
  w.unsigned_(10, record.flags);
  time(11, record.nominal_start);
  time(12, record.actual_start);
  time(13, record.completion);
  time(14, record.publication);
  time(15, record.slot_end);
  w.signed_(16, record.cpu_ns);
  w.unsigned_(17, record.page_faults);
  w.unsigned_(18, record.allocations);
  w.unsigned_(19, record.copied_bytes);
  w.unsigned_(20, record.published);
  for (std::size_t i = 0; i < std::min<std::size_t>(record.input_count, sched::kMaxInputs); ++i) {
    const sched::InputRecord& input = record.inputs[i];
    w.message(21, [&](Writer& m) {
      m.unsigned_(1, input.job);
      if (input.kind != 3 && input.capture_ns != transport::kNoStamp) m.stamp(2, {input.capture_ns});
      if (input.kind != 3 && input.arrival_ns != transport::kNoStamp) m.stamp(3, {input.arrival_ns});
      m.unsigned_(4, input.kind);
      m.unsigned_(5, static_cast<std::uint32_t>(input.reason));
      m.unsigned_(6, input.moved);
    });
  }
  w.unsigned_(22, record.output_bytes);
  if (record.published != 0) w.text(23, record.output.hex());
  w.unsigned_(24, record.major_faults);
  w.unsigned_(25, record.voluntary_switches);
  w.unsigned_(26, record.involuntary_switches);
  if ((record.flags & sched::kFlagAborted) != 0) w.unsigned_(27, record.aborted_at);
  w.unsigned_(28, record.mode);
  w.signed_(29, record.launch_ns);
  w.signed_(30, record.device_ns);
  for (std::size_t i = 0; i < record.segment_count; ++i) {
    const sched::SegmentRecord& segment = record.segments[i];
    w.message(31, [&](Writer& m) {
      if (segment.start != sched::kNever) m.present_signed(1, segment.start);
      if (segment.end != sched::kNever) m.present_signed(2, segment.end);
    });
  }
  return out;
}

std::string job_metrics(const sched::JobRecord& record, std::string_view stage, std::string_view variant) {
  std::string out = "{\"stage\":" + json_text(stage) + ",\"variant\":" + json_text(variant) +
                    ",\"job\":" + std::to_string(record.job) + ",\"class\":\"" +
                    kClassNames[static_cast<std::size_t>(record.job_class)] + "\"";
  const auto difference = [&](const char* name, std::int64_t to, std::int64_t from) {
    if (to != sched::kNever && from != sched::kNever) {
      out += std::string(",\"") + name + "\":" + microseconds_text(to - from);
    }
  };
  difference("start_us", record.actual_start, record.nominal_start);
  difference("execution_us", record.completion, record.actual_start);
  difference("published_us", record.publication, record.nominal_start);
  difference("slot_us", record.slot_end, record.nominal_start);
  if (record.device_ns != 0) out += ",\"device_us\":" + microseconds_text(record.device_ns);
  out += ",\"cpu_us\":" + microseconds_text(record.cpu_ns) +
         ",\"copied_bytes\":" + std::to_string(record.copied_bytes) +
         ",\"allocations\":" + std::to_string(record.allocations) +
         ",\"page_faults\":" + std::to_string(record.page_faults) +
         ",\"involuntary_switches\":" + std::to_string(record.involuntary_switches) + "}";
  return out;
}

sensors::log::SceneUpdate scene_of(const ObjectList& list, std::string_view frame_id, Duration lifetime) {
  sensors::log::SceneUpdate scene{{list.stamp_ns}, frame_id, lifetime, {}};
  for (std::uint32_t i = 0; i < std::min(list.count, kMaxObjects); ++i) {
    const Object& o = list.objects[i];
    if ((o.flags & kHasBox) == 0) continue;
    scene.boxes.push_back(
        scene_box(o, "object-" + std::to_string(i), std::string(name_of(o.object_class)) + " " + two_digits(o.score)));
  }
  return scene;
}

sensors::log::SceneUpdate scene_of(const TrackList& list, std::string_view frame_id, Duration lifetime) {
  sensors::log::SceneUpdate scene{{list.stamp_ns}, frame_id, lifetime, {}};
  for (std::uint32_t i = 0; i < std::min(list.count, kMaxTracks); ++i) {
    const Track& t = list.tracks[i];
    scene.boxes.push_back(scene_box(t, "track-" + std::to_string(t.id),
                                    std::string(name_of(t.object_class)) + " " + std::to_string(t.id)));
  }
  return scene;
}

sensors::log::ImageAnnotations annotations_of(const ObjectList& list) {
  sensors::log::ImageAnnotations out{{list.stamp_ns}, {}};
  for (std::uint32_t i = 0; i < std::min(list.count, kMaxObjects); ++i) {
    const Object& o = list.objects[i];
    if ((o.flags & kHasImageBox) == 0) continue;
    sensors::log::ImageBox box{static_cast<double>(o.u0),
                               static_cast<double>(o.v0),
                               static_cast<double>(o.u1),
                               static_cast<double>(o.v1),
                               std::string(name_of(o.object_class)) + " " + two_digits(o.score),
                               color_of(o.object_class)};
    box.color.a = 1;
    out.boxes.push_back(std::move(box));
  }
  return out;
}

Result<ObjectList> decode_object_list(std::span<const std::byte> bytes) {
  ObjectList list;
  Reader reader(bytes);
  while (reader.next()) {
    switch (reader.field()) {
      case 1: list.stamp_ns = reader.time_ns(); break;
      case 2: list.sensor = reader.unsigned32(); break;
      case 3: {
        const Object object = read_object(reader);
        if (list.count == kMaxObjects) {
          reader.fail("more than " + std::to_string(kMaxObjects) + " objects");
        } else {
          list.objects[list.count++] = object;
        }
        break;
      }
      case 4: list.dropped = reader.unsigned32(); break;
      case 5: list.input_points = reader.unsigned32(); break;
      case 6: list.invalid_points = reader.unsigned32(); break;
    }
  }
  if (auto status = reader.status(); !status) return fail(std::move(status).error().with_context("takt.ObjectList"));
  return list;
}

Result<TrackList> decode_track_list(std::span<const std::byte> bytes) {
  TrackList list;
  Reader reader(bytes);
  while (reader.next()) {
    switch (reader.field()) {
      case 1: list.stamp_ns = reader.time_ns(); break;
      case 2: {
        const Track track = read_track(reader);
        if (list.count == kMaxTracks) {
          reader.fail("more than " + std::to_string(kMaxTracks) + " tracks");
        } else {
          list.tracks[list.count++] = track;
        }
        break;
      }
      case 3: list.dropped = reader.unsigned32(); break;
      case 4: list.missing_inputs = reader.unsigned32(); break;
      case 5: list.repeat_inputs = reader.unsigned32(); break;
    }
  }
  if (auto status = reader.status(); !status) return fail(std::move(status).error().with_context("takt.TrackList"));
  return list;
}

}  // namespace takt::pipeline
