#include "sensors/rig/rig_estimate.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <map>
#include <optional>

#include "runtime/transport/chunk.h"
#include "sensors/rig/message_probe.h"
#include "sensors/sync/clock_estimate.h"

namespace takt::sensors {
namespace {

constexpr int kProbed = 12;                    // clouds whose points are looked at
constexpr Duration kOtherClock = seconds(10);  // stamps further from their arrival are of another clock
constexpr std::int64_t kDelayStep = 10'000;    // delays are rounded outwards to 10 us
constexpr double kMaxDriftPpm = 10'000;        // what a rig file may say

struct Topic {
  const LogChannel* channel = nullptr;
  Evidence evidence;
  std::vector<std::int64_t> stamps;
  std::vector<StampPair> pairs;  // as long as stamps
  std::int64_t delay_min = std::numeric_limits<std::int64_t>::max();
  std::int64_t delay_max = std::numeric_limits<std::int64_t>::min();
};

std::string sensor_name(const std::string& topic) {
  std::vector<std::string> words;
  std::string word;
  const auto flush = [&] {
    if (!word.empty()) words.push_back(word);
    word.clear();
  };
  for (const char c : topic) {
    if (c == '/') {
      flush();
    } else {
      const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
      word += plain ? c : '_';
    }
  }
  flush();
  // What the data is, not which sensor it comes from.
  static const std::vector<std::string> kPayloadWords{"image", "image_raw", "image_rect", "image_color", "compressed",
                                                      "raw",   "points",    "pointcloud", "point_cloud", "returns",
                                                      "takt",  "packets",   "scan",       "data",        "points_raw"};
  while (words.size() > 1 &&
         std::find(kPayloadWords.begin(), kPayloadWords.end(), words.back()) != kPayloadWords.end()) {
    words.pop_back();
  }
  std::string name;
  for (const std::string& part : words) name += (name.empty() ? "" : "_") + part;
  return name.empty() ? "sensor" : name;
}

std::string folder_of(const std::string& topic) {
  const std::size_t slash = topic.rfind('/');
  return slash == std::string::npos ? "" : topic.substr(0, slash);
}

// Frames and how they hang together: the first transform of each child counts.
class FrameTree {
 public:
  void add(const log::FrameTransform& t) {
    links_.try_emplace(t.child, Link{t.parent, Transform::from_quaternion(t.pose.orientation, t.pose.position)});
  }
  [[nodiscard]] bool knows(const std::string& frame) const {
    if (links_.count(frame) != 0) return true;
    return std::any_of(links_.begin(), links_.end(), [&](const auto& link) { return link.second.parent == frame; });
  }
  // T_to_from where a path exists.
  [[nodiscard]] std::optional<Transform> between(const std::string& to, const std::string& from) const {
    const auto up_to = path(to), up_from = path(from);
    for (const Step& a : up_from) {
      for (const Step& b : up_to) {
        if (a.frame == b.frame) return b.ancestor_from_start.inverse() * a.ancestor_from_start;
      }
    }
    return std::nullopt;
  }
  // The frame that has parents but whose own parent moves over ground: named by convention only.
  [[nodiscard]] std::string root_of(const std::string& frame) const { return path(frame).back().frame; }

 private:
  struct Link {
    std::string parent;
    Transform parent_from_child;
  };
  struct Step {
    std::string frame;
    Transform ancestor_from_start;
  };
  [[nodiscard]] std::vector<Step> path(const std::string& frame) const {
    std::vector<Step> steps{{frame, {}}};
    while (steps.size() <= links_.size()) {  // longer paths are circles
      const auto link = links_.find(steps.back().frame);
      if (link == links_.end()) break;
      steps.push_back({link->second.parent, link->second.parent_from_child * steps.back().ancestor_from_start});
    }
    return steps;
  }
  std::map<std::string, Link> links_;
};

std::string pick_vehicle_frame(const FrameTree& frames, const std::string& of_ego, const std::string& asked) {
  if (!asked.empty()) return asked;
  if (!of_ego.empty()) return of_ego;
  for (const char* name : {"base_link", "base_footprint", "vehicle", "ego_vehicle", "ego", "body", "rear_axle"}) {
    if (frames.knows(name)) return name;
  }
  return "vehicle";
}

Transform default_mount(SensorKind kind) {
  Transform mount;
  switch (kind) {
    case SensorKind::kCamera: return Transform::from_quaternion({0.5, -0.5, 0.5, -0.5}, {1.5, 0, 1.5});
    case SensorKind::kLidar: mount.translation = {0.9, 0, 1.8}; break;
    case SensorKind::kRadar: mount.translation = {3.6, 0, 0.5}; break;
    case SensorKind::kEgo: break;
  }
  return mount;
}

std::uint32_t with_headroom(std::uint64_t largest, double factor, std::uint32_t step) {
  const auto wanted = static_cast<std::uint64_t>(static_cast<double>(largest) * factor) + 1;
  return static_cast<std::uint32_t>((wanted + step - 1) / step * step);
}

std::string ms_text(Duration d) {
  char text[40];
  std::snprintf(text, sizeof text, "%.1f ms", d.ms());
  return text;
}

class Estimate {
 public:
  explicit Estimate(const EstimateOptions& options) : options_(options) {}

  Status read(LogReader& log) {
    for (const LogChannel& channel : log.channels()) topics_[channel.id].channel = &channel;
    for (;;) {
      TAKT_ASSIGN(const std::optional<LogMessage> message, log.next());
      if (!message) break;
      Topic& topic = topics_[message->channel->id];
      topic.channel = message->channel;
      topic.stamps.push_back(message->capture.ns);
      topic.pairs.push_back({message->capture.ns, message->arrival.ns});
      const std::int64_t delay = (message->arrival - message->capture).ns;
      topic.delay_min = std::min(topic.delay_min, delay);
      topic.delay_max = std::max(topic.delay_max, delay);
      probe(*message->channel, message->bytes, kProbed, topic.evidence);
    }
    for (const LogMetadata& entry : log.metadata()) {
      const auto drive = entry.entries.find("drive");
      if (entry.name == "takt.drive" && drive != entry.entries.end()) simulated_ = drive->second == "simulated";
    }
    return {};
  }

  Result<EstimatedRig> finish(const std::string& log_path) {
    std::vector<const Topic*> used = pick_topics();
    if (used.empty()) return fail(Code::kInput, log_path + ": no topic that takt can use. " + list_topics());
    for (const auto& [id, topic] : topics_) {
      for (const log::FrameTransform& t : topic.evidence.transforms) frames_.add(t);
    }
    std::string ego_world, ego_vehicle;
    for (const Topic* topic : used) {
      if (topic->evidence.kind != SensorKind::kEgo) continue;
      ego_world = topic->evidence.world_frame;
      ego_vehicle = topic->evidence.frame_id;
    }
    Rig& rig = out_.rig;
    rig.name = options_.name.empty() ? std::filesystem::path(log_path).stem().string() : options_.name;
    rig.drive = simulated_ ? "simulated" : "recorded";
    rig.vehicle_frame = pick_vehicle_frame(frames_, ego_vehicle, options_.vehicle_frame);
    rig.world_frame = !ego_world.empty()                 ? ego_world
                      : frames_.knows(rig.vehicle_frame) ? frames_.root_of(rig.vehicle_frame)
                                                         : "world";
    if (rig.world_frame == rig.vehicle_frame) rig.world_frame = "world";
    for (const Topic* topic : used) add_sensor(*topic);
    lock_phases(used);
    return std::move(out_);
  }

 private:
  std::vector<const Topic*> pick_topics() {
    std::vector<const Topic*> picked;
    for (const SensorKind kind : {SensorKind::kCamera, SensorKind::kLidar, SensorKind::kRadar, SensorKind::kEgo}) {
      std::vector<const Topic*> of_kind;
      for (const auto& [id, topic] : topics_) {
        if (topic.evidence.kind == kind && !topic.stamps.empty()) of_kind.push_back(&topic);
      }
      std::stable_sort(of_kind.begin(), of_kind.end(), [](const Topic* a, const Topic* b) {
        if (a->evidence.preference != b->evidence.preference) return a->evidence.preference > b->evidence.preference;
        return a->channel->topic < b->channel->topic;
      });
      for (const Topic* topic : of_kind) {
        const bool again = std::any_of(picked.begin(), picked.end(),
                                       [&](const Topic* p) { return p->channel->topic == topic->channel->topic; });
        if (again) continue;
        if (kind == SensorKind::kEgo && picked.size() > 0 && picked.back()->evidence.kind == SensorKind::kEgo) {
          note("'" + topic->channel->topic + "' is a second source of ego motion: left out");
        } else if (picked.size() == transport::kMaxSources) {
          note("'" + topic->channel->topic + "' is more than a rig of " + std::to_string(transport::kMaxSources) +
               " sensors holds: left out");
        } else {
          picked.push_back(topic);
        }
      }
    }
    return picked;
  }

  std::string list_topics() const {
    std::string text = "Topics:";
    for (const auto& [id, topic] : topics_) {
      if (topic.channel == nullptr) continue;
      text += "\n  " + topic.channel->topic + "  " + topic.channel->schema + " (" + topic.channel->encoding + "), " +
              std::to_string(topic.stamps.size()) + " messages";
      if (!topic.evidence.problem.empty()) text += ": " + topic.evidence.problem;
    }
    return text;
  }

  void note(std::string text) { out_.notes.push_back(std::move(text)); }

  void add_sensor(const Topic& topic) {
    const Evidence& seen = topic.evidence;
    RigSensor sensor;
    sensor.kind = *seen.kind;
    sensor.topic = topic.channel->topic;
    sensor.name = sensor_name(sensor.topic);
    for (int n = 2; out_.rig.find(sensor.name); ++n) sensor.name = sensor_name(sensor.topic) + "_" + std::to_string(n);
    sensor.frame_id = seen.frame_id.empty() ? sensor.name : seen.frame_id;
    if (sensor.kind == SensorKind::kEgo && seen.frame_id.empty()) sensor.frame_id = out_.rig.vehicle_frame;
    if (sensor.kind != SensorKind::kEgo) {
      const auto mount = frames_.between(out_.rig.vehicle_frame, sensor.frame_id);
      sensor.vehicle_from_sensor = mount ? *mount : default_mount(sensor.kind);
      if (!mount) {
        sensor.assumed.push_back("extrinsics");
        note("sensor '" + sensor.name + "': no transform leads from frame '" + sensor.frame_id + "' to '" +
             out_.rig.vehicle_frame + "': its place on the vehicle is assumed; measure it, then run `takt rig check`");
      }
    }
    switch (sensor.kind) {
      case SensorKind::kCamera: describe_camera(topic, sensor); break;
      case SensorKind::kLidar:
        sensor.capacity = with_headroom(seen.largest, 1.1, 1000);
        sensor.intensity_scale = seen.intensity_max <= 1.0F       ? 1
                                 : seen.intensity_max <= 255.0F   ? 1.0 / 255
                                 : seen.intensity_max <= 65535.0F ? 1.0 / 65535
                                                                  : 1.0 / static_cast<double>(seen.intensity_max);
        sensor.assumed.push_back("motion_compensated");
        sensor.assumed.push_back("ray_origin_m");  // that the frame of the points is the LiDAR's own
        break;
      case SensorKind::kRadar: sensor.capacity = with_headroom(seen.largest, 1.25, 64); break;
      case SensorKind::kEgo: break;
    }
    time(topic, sensor);
    if (!seen.problem.empty()) note("sensor '" + sensor.name + "': " + seen.problem);
    out_.rig.sensors.push_back(std::move(sensor));
  }

  void describe_camera(const Topic& topic, RigSensor& sensor) {
    const log::CameraCalibration* found = nullptr;
    const std::string folder = folder_of(sensor.topic);
    for (const auto& [id, other] : topics_) {
      if (!other.evidence.calibration) continue;
      const bool beside =
          folder_of(other.channel->topic) == folder || folder_of(folder) == folder_of(other.channel->topic);
      const bool same_frame = other.evidence.frame_id == sensor.frame_id;
      // The frame decides; names of topics break the tie between several cameras of one frame.
      if (same_frame && (found == nullptr || beside)) found = &*other.evidence.calibration;
      if (found == nullptr && beside && folder_of(other.channel->topic) == folder) found = &*other.evidence.calibration;
    }
    CameraModel model;
    model.width = topic.evidence.width;
    model.height = topic.evidence.height;
    if (found != nullptr && found->fx > 0 && found->fy > 0) {
      model.fx = found->fx;
      model.fy = found->fy;
      model.cx = found->cx;
      model.cy = found->cy;
      model.distortion = found->distortion;
      if (found->width != model.width || found->height != model.height) {
        note("sensor '" + sensor.name + "': its calibration is for " + std::to_string(found->width) + "x" +
             std::to_string(found->height) + ", its pictures are " + std::to_string(model.width) + "x" +
             std::to_string(model.height) + "; focal lengths were scaled");
        if (found->width > 0 && found->height > 0) {
          const double sx = static_cast<double>(model.width) / found->width;
          const double sy = static_cast<double>(model.height) / found->height;
          model.fx *= sx;
          model.cx = (model.cx + 0.5) * sx - 0.5;
          model.fy *= sy;
          model.cy = (model.cy + 0.5) * sy - 0.5;
        }
      }
    } else {
      model.fx = model.fy = std::max(1.0, 0.8 * model.width);  // 64 degrees across
      model.cx = (model.width - 1.0) / 2;
      model.cy = (model.height - 1.0) / 2;
      sensor.assumed.push_back("camera");
      note("sensor '" + sensor.name + "': no calibration in the log: 64 degrees across are assumed");
    }
    sensor.camera = model;
  }

  void time(const Topic& topic, RigSensor& sensor) {
    const StampFit fit = fit_stamps(topic.stamps);
    sensor.period = fit.period;
    if (fit.period.ns <= 0) {
      sensor.period = milliseconds(100);
      sensor.assumed.push_back("timing.rate_hz");
      note("sensor '" + sensor.name + "': one message only: 10 Hz are assumed");
    }
    sensor.drift_ppm = fit.on_grid ? 0 : std::ceil(std::min(kMaxDriftPpm, fit.drift_ppm * 1.1));
    if (fit.drift_ppm > kMaxDriftPpm) {
      note("sensor '" + sensor.name + "': its stamps are up to " + std::to_string(std::lround(fit.drift_ppm * 1e-4)) +
           " % of a period off an even rate; the bounds of this rig cannot hold there");
    }
    if (fit.missing > 0) {
      note("sensor '" + sensor.name + "': " + std::to_string(fit.missing) + " frame(s) missing in the log");
    }
    if (sensor.kind == SensorKind::kEgo) {
      sensor.stamp = StampReference::kSweepStart;  // an instant, as load_rig() says it
    } else {
      describe_capture(topic, sensor);
    }

    const Duration captured = sensor.captured();
    const Duration least{topic.delay_min}, most{topic.delay_max};
    if (topic.delay_min == 0 && topic.delay_max == 0) {
      const Duration assumed = milliseconds(sensor.kind == SensorKind::kEgo ? 5 : 10);
      sensor.declared_delay = captured + assumed;
      sensor.assumed.push_back("timing.declared_delay_ms");
      note("sensor '" + sensor.name + "': the log has no arrival times: " + ms_text(*sensor.declared_delay) +
           " after the stamp are assumed");
    } else if (most > kOtherClock || least < -kOtherClock) {
      own_clock(topic, sensor);
    } else {
      if (least < captured) {
        note("sensor '" + sensor.name + "': messages arrive " + ms_text(least) + " after the stamp, before the last " +
             "captured byte (" + ms_text(captured) +
             "): their arrival is moved, or the stamp refers to something else");
      }
      const std::int64_t fixed = std::max<std::int64_t>(0, (least - captured).ns) / kDelayStep * kDelayStep;
      const std::int64_t spread = std::max<std::int64_t>(0, (most - captured).ns - fixed);
      sensor.driver_delay = {fixed};
      sensor.jitter = {(spread + kDelayStep - 1) / kDelayStep * kDelayStep};
    }
  }

  // Stamps of another clock than the arrivals: mapped where they follow a line, else replaced by the arrivals'
  // distance. How long a message takes at least cannot be seen through an unknown offset.
  void own_clock(const Topic& topic, RigSensor& sensor) {
    const std::string stamps = "sensor '" + sensor.name + "': stamps lie " + ms_text({topic.delay_min}) + " to " +
                               ms_text({topic.delay_max}) + " before the arrivals: two clocks; ";
    const Duration captured = sensor.captured();
    sensor.driver_delay = milliseconds(sensor.kind == SensorKind::kEgo ? 5 : 10);
    const auto map = estimate_clock(topic.pairs, captured + sensor.driver_delay, {});
    if (!map) {
      sensor.driver_delay = {};
      sensor.declared_delay = captured + milliseconds(10);
      sensor.assumed.push_back("timing.declared_delay_ms");
      note(stamps + "they cannot be mapped (" + map.error().message +
           "), arrivals are replaced by an assumed delay of " + ms_text(*sensor.declared_delay));
      return;
    }
    Duration late;
    for (const StampPair& pair : topic.pairs) {
      late = std::max(late, SensorTime{pair.arrival_ns} - map->map_unchecked({pair.capture_ns}));
    }
    const std::int64_t spread = std::max<std::int64_t>(0, (late - sensor.delay_min()).ns);
    sensor.jitter = {(spread + kDelayStep - 1) / kDelayStep * kDelayStep};
    sensor.device_clock = true;
    sensor.assumed.push_back("timing.driver_delay_ms");
    note(stamps + "they are mapped, under an assumed shortest delay of " + ms_text(sensor.delay_min()));
  }

  // What the stamp refers to, and how long capturing takes.
  void describe_capture(const Topic& topic, RigSensor& sensor) {
    const auto assume = [&](const char* key) { sensor.assumed.push_back(std::string("timing.") + key); };
    const Evidence& seen = topic.evidence;
    if (sensor.kind == SensorKind::kCamera) {
      sensor.stamp = StampReference::kExposureMid;
      assume("stamp");
      assume("exposure_ms");
      return;
    }
    sensor.stamp = StampReference::kSweepEnd;
    const std::int64_t span = seen.time_max_ns - seen.time_min_ns;
    if (sensor.kind == SensorKind::kLidar && span > 1'000'000) {
      const std::int64_t slack = span / 10;
      if (seen.time_min_ns >= -slack) {
        sensor.stamp = StampReference::kSweepStart;
      } else if (seen.time_max_ns > slack) {
        assume("stamp");
        note("sensor '" + sensor.name + "': the stamp lies inside the sweep (points from " +
             ms_text({seen.time_min_ns}) + " to " + ms_text({seen.time_max_ns}) + "): taken as its end");
      }
      const std::int64_t whole_ms = (span + 500'000) / 1'000'000 * 1'000'000;
      sensor.duration = {std::min(whole_ms, sensor.period.ns)};
    } else {
      sensor.duration = {
          std::min<std::int64_t>(sensor.kind == SensorKind::kLidar ? 100'000'000 : 20'000'000, sensor.period.ns)};
      assume("stamp");
      assume("sweep_ms");
    }
  }

  // Stamps that all lie on one grid, to the nanosecond, are locked to the table: exact bounds instead of waiting for a
  // whole period. Phases count from the whole tenth of a second before the first of them.
  void lock_phases(const std::vector<const Topic*>& used) {
    std::vector<std::int64_t> first(used.size());
    std::int64_t origin = std::numeric_limits<std::int64_t>::max();
    for (std::size_t i = 0; i < used.size(); ++i) {
      if (out_.rig.sensors[i].device_clock) continue;
      first[i] = *std::min_element(used[i]->stamps.begin(), used[i]->stamps.end());
      origin = std::min(origin, first[i]);
    }
    constexpr std::int64_t kGrid = 100'000'000;
    origin -= ((origin % kGrid) + kGrid) % kGrid;
    for (std::size_t i = 0; i < used.size(); ++i) {
      const StampFit fit = fit_stamps(used[i]->stamps);
      RigSensor& sensor = out_.rig.sensors[i];
      if (!fit.on_grid || std::llround(fit.rate_hz) % 10 != 0 || sensor.device_clock) continue;
      // From the origin in exact steps: k periods of 1/rate s, not k rounded periods.
      const double steps = std::floor(static_cast<double>(first[i] - origin) * fit.rate_hz * 1e-9 + 1e-6);
      const std::int64_t phase = first[i] - origin - std::llround(steps * 1e9 / fit.rate_hz);
      sensor.phase = Duration{std::clamp<std::int64_t>(phase, 0, sensor.period.ns - 1)};
    }
  }

  EstimateOptions options_;
  std::map<std::uint32_t, Topic> topics_;
  FrameTree frames_;
  bool simulated_ = false;
  EstimatedRig out_;
};

}  // namespace

StampFit fit_stamps(std::vector<std::int64_t> stamps) {
  StampFit fit;
  std::sort(stamps.begin(), stamps.end());
  stamps.erase(std::unique(stamps.begin(), stamps.end()), stamps.end());
  if (stamps.size() < 2) return fit;
  std::vector<std::int64_t> steps;
  for (std::size_t i = 1; i < stamps.size(); ++i) steps.push_back(stamps[i] - stamps[i - 1]);
  std::vector<std::int64_t> sorted = steps;
  std::nth_element(sorted.begin(), sorted.begin() + static_cast<std::ptrdiff_t>(sorted.size() / 2), sorted.end());
  const auto typical = static_cast<double>(sorted[sorted.size() / 2]);

  // Frame numbers, so that missing frames do not stretch the period.
  std::vector<double> number{0};
  for (const std::int64_t step : steps) {
    const double frames = std::max(1.0, std::round(static_cast<double>(step) / typical));
    number.push_back(number.back() + frames);
    fit.missing += static_cast<std::uint64_t>(frames) - 1;
  }
  double mean_n = 0, mean_t = 0;
  for (std::size_t i = 0; i < stamps.size(); ++i) {
    mean_n += number[i] / static_cast<double>(stamps.size());
    mean_t += static_cast<double>(stamps[i] - stamps[0]) / static_cast<double>(stamps.size());
  }
  double nt = 0, nn = 0;
  for (std::size_t i = 0; i < stamps.size(); ++i) {
    nt += (number[i] - mean_n) * (static_cast<double>(stamps[i] - stamps[0]) - mean_t);
    nn += (number[i] - mean_n) * (number[i] - mean_n);
  }
  double period = nt / nn;
  fit.rate_hz = 1e9 / period;
  const double whole = std::round(fit.rate_hz);
  if (whole >= 1 && std::fabs(fit.rate_hz / whole - 1) < 5e-4) {
    fit.rate_hz = whole;
    period = 1e9 / whole;
    fit.on_grid = true;
    for (std::size_t i = 0; i < stamps.size() && fit.on_grid; ++i) {
      fit.on_grid = std::llabs(stamps[i] - stamps[0] - std::llround(number[i] * period)) <= 1;
    }
  }
  fit.period = {std::llround(period)};
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const double frames = number[i + 1] - number[i];
    fit.drift_ppm = std::max(fit.drift_ppm, std::fabs(static_cast<double>(steps[i]) / (frames * period) - 1) * 1e6);
  }
  return fit;
}

Result<EstimatedRig> estimate_rig(const std::string& log_path, const EstimateOptions& options) {
  TAKT_ASSIGN(const auto log, open_log(log_path));
  Estimate estimate(options);
  TAKT_RETURN_IF_ERROR(estimate.read(*log));
  return estimate.finish(log_path);
}

}  // namespace takt::sensors
