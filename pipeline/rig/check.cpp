#include "pipeline/rig/check.h"

#include <algorithm>
#include <cmath>
#include <cstdarg>
#include <cstdio>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "pipeline/rig/doppler.h"
#include "pipeline/rig/labels.h"
#include "pipeline/rig/samples.h"
#include "sensors/logs/log_tools.h"
#include "sensors/rig_pcl/rig_pcl.h"

namespace takt::pipeline {
namespace {

using sensors::EgoMotion;
using sensors::RigSensor;
using sensors::SensorKind;

constexpr double kDegrees = 180 / 3.14159265358979323846;
constexpr std::size_t kFar = 4;    // sweeps apart: far enough to tell a direction at walking pace
constexpr double kMoved = 0.3;     // m between two sweeps: enough to tell a direction
constexpr double kFastEnough = 2;  // m/s: enough to tell the direction of a velocity

__attribute__((format(printf, 1, 2))) std::string format(const char* pattern, ...) {
  char text[400];
  va_list arguments;
  va_start(arguments, pattern);
  std::vsnprintf(text, sizeof text, pattern, arguments);
  va_end(arguments);
  return text;
}

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

SensorTime nearest(const std::vector<SensorTime>& stamps, SensorTime to) {
  const auto after = std::lower_bound(stamps.begin(), stamps.end(), to);
  if (after == stamps.end()) return stamps.back();
  if (after == stamps.begin()) return *after;
  return *after - to < to - *std::prev(after) ? *after : *std::prev(after);
}

class Check {
 public:
  Check(const sensors::Rig& rig, const CheckOptions& options) : rig_(rig), options_(options) {}

  Result<RigCheck> run() {
    TAKT_ASSIGN(stamps_, read_stamps(options_.log_path, rig_));
    TAKT_ASSIGN(samples_, read_samples(options_.log_path, rig_, choose()));
    TAKT_RETURN_IF_ERROR(sensors::for_each_truth(options_.log_path, [&](const sensors::log::Truth& truth) {
      labels_.push_back({truth.stamp, {}, truth.boxes});
    }));
    for (std::size_t s = 0; s < rig_.sensors.size(); ++s) {
      if (stamps_[s].empty()) {
        add(s, "samples", CheckState::kWrong, "the log has no messages on " + rig_.sensors[s].topic);
        continue;
      }
      if (samples_[s].empty()) {
        add(s, "samples", CheckState::kWrong, "none of its messages could be decoded: run a replay to see why");
        continue;
      }
      switch (rig_.sensors[s].kind) {
        case SensorKind::kLidar: check_lidar(s); break;
        case SensorKind::kRadar: check_radar(s); break;
        case SensorKind::kCamera: break;
        case SensorKind::kEgo: check_ego(s); break;
      }
    }
    for (std::size_t a = 0; a < rig_.sensors.size(); ++a) {
      for (std::size_t b = a + 1; b < rig_.sensors.size(); ++b) check_skew(a, b);
    }
    TAKT_RETURN_IF_ERROR(draw());
    return std::move(out_);
  }

 private:
  void add(std::string sensor, const char* check, CheckState state, std::string text,
           std::vector<std::pair<std::string, double>> figures = {}) {
    out_.lines.push_back({std::move(sensor), check, state, std::move(text), std::move(figures)});
  }
  void add(std::size_t sensor, const char* check, CheckState state, std::string text,
           std::vector<std::pair<std::string, double>> figures = {}) {
    add(rig_.sensors[sensor].name, check, state, std::move(text), std::move(figures));
  }

  // LiDARs: sweeps in pairs spread over the log. Radars and ego motion: everything. Cameras: beside three LiDAR sweeps.
  std::vector<std::vector<SensorTime>> choose() {
    std::vector<std::vector<SensorTime>> wanted(rig_.sensors.size());
    std::vector<SensorTime> moments;
    for (std::size_t s = 0; s < rig_.sensors.size(); ++s) {
      const auto& stamps = stamps_[s];
      if (rig_.sensors[s].kind == SensorKind::kLidar && !stamps.empty()) {
        const std::size_t n = std::min(options_.sweeps, stamps.size());
        for (std::size_t i = 0; i < n; ++i) {
          // The middles of n equal parts of the log.
          const std::size_t at = (2 * i + 1) * stamps.size() / (2 * n);
          wanted[s].push_back(stamps[at]);
          if (at + 1 < stamps.size()) wanted[s].push_back(stamps[at + 1]);
          if (at + kFar < stamps.size()) wanted[s].push_back(stamps[at + kFar]);
          if (moments.size() < n && (i == n / 4 || i == n / 2 || i == 3 * n / 4)) moments.push_back(stamps[at]);
        }
        std::sort(wanted[s].begin(), wanted[s].end());
        wanted[s].erase(std::unique(wanted[s].begin(), wanted[s].end()), wanted[s].end());
      }
      if (rig_.sensors[s].kind == SensorKind::kRadar || rig_.sensors[s].kind == SensorKind::kEgo) wanted[s] = stamps;
    }
    for (std::size_t s = 0; s < rig_.sensors.size(); ++s) {
      if (rig_.sensors[s].kind != SensorKind::kCamera || stamps_[s].empty()) continue;
      if (moments.empty()) wanted[s] = {stamps_[s][stamps_[s].size() / 2]};
      for (const SensorTime moment : moments) wanted[s].push_back(nearest(stamps_[s], moment));
    }
    return wanted;
  }

  // Ego motion at a time; standing still where the rig has none.
  [[nodiscard]] EgoMotion ego_at(SensorTime at) const {
    for (std::size_t s = 0; s < rig_.sensors.size(); ++s) {
      if (rig_.sensors[s].kind != SensorKind::kEgo || samples_[s].empty()) continue;
      const auto& samples = samples_[s];
      const auto closer = [at](const Sample& a, const Sample& b) {
        return std::llabs((a.stamp - at).ns) < std::llabs((b.stamp - at).ns);
      };
      return std::min_element(samples.begin(), samples.end(), closer)->payload->as<EgoMotion>();
    }
    return {};
  }
  [[nodiscard]] bool has_ego() const {
    for (std::size_t s = 0; s < rig_.sensors.size(); ++s) {
      if (rig_.sensors[s].kind == SensorKind::kEgo && !samples_[s].empty()) return true;
    }
    return false;
  }

  void check_lidar(std::size_t s) {
    check_ground(s);
    check_forward(s);
    check_intensity(s);
    check_own_vehicle(s);
    check_labels(s);
  }

  // The lowest point of every half-metre cell near the vehicle: feet of walls and vehicles instead of their sides, and
  // as many points far away as nearby.
  [[nodiscard]] std::vector<VehiclePoint> lowest_points(std::size_t s, const Sample& sweep) const {
    constexpr float kAhead = 25, kSide = 10, kCell = 0.5F;
    std::map<std::pair<int, int>, VehiclePoint> cells;
    for (const VehiclePoint& p : vehicle_points(sweep.payload->as<sensors::PointCloud>(), rig_.sensors[s])) {
      if (std::fabs(p[0]) > kAhead || std::fabs(p[1]) > kSide || options_.box.contains(p)) continue;
      const std::pair cell{static_cast<int>(std::floor(p[0] / kCell)), static_cast<int>(std::floor(p[1] / kCell))};
      const auto [known, first] = cells.try_emplace(cell, p);
      if (!first && p[2] < known->second[2]) known->second = p;
    }
    std::vector<VehiclePoint> points;
    for (const auto& [cell, point] : cells) points.push_back(point);
    return points;
  }

  void check_ground(std::size_t s) {
    std::vector<double> nose, side, height, rms;
    std::string problem;
    for (const Sample& sweep : samples_[s]) {
      const std::vector<VehiclePoint> near = lowest_points(s, sweep);
      const auto plane = sensors::fit_ground(near);
      if (!plane) {
        problem = plane.error().message;
        continue;
      }
      nose.push_back(std::atan2(plane->normal[0], plane->normal[2]) * kDegrees);
      side.push_back(std::atan2(plane->normal[1], plane->normal[2]) * kDegrees);
      height.push_back(plane->offset / plane->normal[2]);
      rms.push_back(plane->rms_m);
    }
    if (nose.empty()) {
      const bool absent = !sensors::has_pcl();
      add(s, "ground", absent ? CheckState::kNotChecked : CheckState::kWrong,
          absent ? problem : "no ground found within 25 m (" + problem + "): is z up in the rig's frames?");
      return;
    }
    const double n = median(nose), r = median(side), h = median(height);
    const double tilt = std::hypot(n, r);
    const bool wrong = tilt > options_.limits.ground_tilt_deg || std::fabs(h) > options_.limits.ground_height_m;
    std::string text = format(
        "tilted by %.2f deg (%.2f along, %.2f across), %.3f m above the rig's ground, scatter %.3f m, "
        "%zu sweeps",
        tilt, n, r, h, median(rms), nose.size());
    if (tilt > options_.limits.ground_tilt_deg) text += "; correct the rotation of its extrinsics";
    if (std::fabs(h) > options_.limits.ground_height_m) {
      text += format("; correct its height: translation_m z by %.2f", -h);
    }
    add(s, "ground", wrong ? CheckState::kWrong : CheckState::kOk, text,
        {{"tilt_deg", tilt}, {"along_deg", n}, {"across_deg", r}, {"height_m", h}, {"scatter_m", median(rms)}});
  }

  // The way from one sweep to the next points along x, whatever the vehicle does: its rear axle does not slide.
  void check_forward(std::size_t s) {
    const RigSensor& lidar = rig_.sensors[s];
    const auto& sweeps = samples_[s];
    std::vector<double> direction, moved;
    std::string problem = "no two sweeps follow each other";
    for (std::size_t i = 0; i + 1 < sweeps.size(); ++i) {
      if (periods_between(s, i, i + 1) != 1) continue;
      const auto target = landmarks(sweeps[i], lidar, options_.box);
      auto motion = sensors::register_clouds(target, landmarks(sweeps[i + 1], lidar, options_.box), {});
      // A step further with the first motion as guess, where the log was sampled for it.
      for (std::size_t far = i + 2; motion && far < sweeps.size() && periods_between(s, i, far) <= kFar; ++far) {
        if (periods_between(s, i, far) != kFar) continue;
        sensors::Transform guess;
        for (std::size_t k = 0; k < kFar; ++k) guess = guess * motion->target_from_source;
        motion = sensors::register_clouds(target, landmarks(sweeps[far], lidar, options_.box), guess);
        break;
      }
      if (!motion) {
        problem = motion.error().message;
        continue;
      }
      const auto& t = motion->target_from_source.translation;
      const double length = std::hypot(t[0], t[1]);
      moved.push_back(length);
      if (length < kMoved) continue;
      // The chord of an arc lies half a turn off its tangent.
      const auto& m = motion->target_from_source.rotation;
      direction.push_back((std::atan2(t[1], t[0]) - std::atan2(m[3], m[0]) / 2) * kDegrees);
    }
    if (direction.empty()) {
      if (!moved.empty())
        problem = format("the vehicle stands (%.2f m between sweeps): drive some metres", median(moved));
      add(s, "forward axis", CheckState::kNotChecked, problem);
      return;
    }
    const double off = median(direction);
    const bool wrong = std::fabs(off) > options_.limits.forward_deg;
    std::string text = format("the world moves past %.2f deg off the x axis (%zu pairs of sweeps, %.2f m each)", off,
                              direction.size(), median(moved));
    if (wrong) {
      text += std::fabs(off) > 150 ? "; the sensor looks backwards, or the vehicle reversed"
                                   : format("; turn its extrinsics by %.1f deg about z", -off);
    }
    add(s, "forward axis", wrong ? CheckState::kWrong : CheckState::kOk, text,
        {{"off_deg", off}, {"pairs", static_cast<double>(direction.size())}, {"moved_m", median(moved)}});
  }

  [[nodiscard]] std::size_t periods_between(std::size_t s, std::size_t i, std::size_t j) const {
    const Duration step = samples_[s][j].stamp - samples_[s][i].stamp;
    return static_cast<std::size_t>(std::lround(step.seconds() / rig_.sensors[s].period.seconds()));
  }

  void check_intensity(std::size_t s) {
    std::vector<double> values;
    for (const Sample& sweep : samples_[s]) {
      const auto& cloud = sweep.payload->as<sensors::PointCloud>();
      for (std::uint32_t i = 0; i < cloud.count; ++i) values.push_back(static_cast<double>(cloud.intensity()[i]));
    }
    if (values.empty()) {
      add(s, "intensity", CheckState::kNotChecked, "its sweeps are empty");
      return;
    }
    std::sort(values.begin(), values.end());
    const double middle = values[values.size() / 2], high = values[values.size() * 99 / 100];
    const auto full = static_cast<double>(values.end() - std::lower_bound(values.begin(), values.end(), 1.0)) /
                      static_cast<double>(values.size());
    const bool wrong = high < 0.02 || full > 0.2;
    std::string text = format("median %.3f, 99 %% below %.3f, %.1f %% at full scale", middle, high, 100 * full);
    if (high == 0) {
      text += "; the points carry none";
    } else if (high < 0.02) {
      text += "; intensity_scale is too small";
    } else if (wrong) {
      text += "; intensity_scale is too large";
    }
    add(s, "intensity", wrong ? CheckState::kWrong : CheckState::kOk, text,
        {{"median", middle}, {"p99", high}, {"full_scale_share", full}});
  }

  void check_own_vehicle(std::size_t s) {
    std::size_t inside = 0, all = 0;
    for (const Sample& sweep : samples_[s]) {
      for (const VehiclePoint& p : vehicle_points(sweep.payload->as<sensors::PointCloud>(), rig_.sensors[s])) {
        inside += options_.box.contains(p) ? 1 : 0;
        ++all;
      }
    }
    const double share = all == 0 ? 0 : static_cast<double>(inside) / static_cast<double>(all);
    const bool wrong = share > options_.limits.own_vehicle_share;
    std::string text = format("%.2f %% of the points lie inside the own vehicle", 100 * share);
    if (wrong) text += ": the sensor sees the vehicle itself, or its place is wrong";
    add(s, "own vehicle", wrong ? CheckState::kWrong : CheckState::kOk, text, {{"share", share}});
  }

  // Labels read in the right convention hold more points than in any other.
  void check_labels(std::size_t s) {
    if (labels_.empty()) return;
    constexpr Duration kTogether = milliseconds(5);
    std::array<std::size_t, kBoxReadings.size()> points{};
    std::size_t boxes = 0, sweeps = 0;
    for (const Sample& sweep : samples_[s]) {
      const auto frame = std::find_if(labels_.begin(), labels_.end(), [&](const sensors::log::Truth& labels) {
        return std::llabs((labels.stamp - sweep.stamp).ns) <= kTogether.ns;
      });
      if (frame == labels_.end()) continue;
      const auto found =
          points_in_boxes(vehicle_points(sweep.payload->as<sensors::PointCloud>(), rig_.sensors[s]), frame->boxes);
      for (std::size_t i = 0; i < points.size(); ++i) points[i] += found[i];
      boxes += frame->boxes.size();
      ++sweeps;
    }
    const std::size_t most = *std::max_element(points.begin(), points.end());
    if (most < options_.limits.label_points) {
      add(s, "points in boxes", CheckState::kNotChecked,
          sweeps == 0 ? "no labels within 5 ms of its sampled sweeps" : "no labelled box holds points enough to tell");
      return;
    }
    const bool wrong = static_cast<double>(most) > options_.limits.label_ratio * static_cast<double>(points[0]);
    const auto best = static_cast<std::size_t>(std::find(points.begin(), points.end(), most) - points.begin());
    std::string text = format("%zu points in %zu labelled boxes of %zu sweeps", points[0], boxes, sweeps);
    if (!wrong) {
      text += ", most of all readings of them, or nearly; that says nothing of boxes that are shifted as a whole";
    } else {
      text += format("; read with %s, the boxes hold %zu: labels or cloud are in other axes", kBoxReadings[best], most);
    }
    add(s, "points in boxes", wrong ? CheckState::kWrong : CheckState::kOk, text,
        {{"points", static_cast<double>(points[0])},
         {"most", static_cast<double>(most)},
         {"boxes", static_cast<double>(boxes)}});
  }

  // Static returns say how the sensor moves; the vehicle moves along x.
  void check_radar(std::size_t s) {
    const RigSensor& radar = rig_.sensors[s];
    std::vector<double> direction, ratio;
    for (const Sample& scan : samples_[s]) {
      const auto& returns = scan.payload->as<sensors::RadarScan>();
      const auto velocity = sensor_velocity({returns.returns(), returns.count});
      if (!velocity) continue;
      sensors::Transform turn = radar.vehicle_from_sensor;
      turn.translation = {0, 0, 0};
      auto v = turn.apply({(*velocity)[0], (*velocity)[1], 0});
      const EgoMotion ego = ego_at(scan.stamp);
      v[0] += ego.angular_velocity[2] * radar.vehicle_from_sensor.translation[1];
      v[1] -= ego.angular_velocity[2] * radar.vehicle_from_sensor.translation[0];
      const double speed = std::hypot(v[0], v[1]);
      if (speed < kFastEnough) continue;
      direction.push_back(std::atan2(v[1], v[0]) * kDegrees);
      const double of_ego = std::hypot(ego.velocity[0], ego.velocity[1]);
      if (of_ego > kFastEnough) ratio.push_back(speed / of_ego);
    }
    if (direction.size() < 3) {
      add(s, "forward axis", CheckState::kNotChecked,
          "too few scans with static returns while the vehicle drives faster than 2 m/s");
      return;
    }
    const double off = median(direction), factor = median(ratio);
    const bool turned = std::fabs(off) > options_.limits.forward_deg;
    const bool scaled = !ratio.empty() && std::fabs(factor - 1) > 0.1;
    std::string text = format("static returns pass %.2f deg off the x axis (%zu scans)", off, direction.size());
    if (!ratio.empty()) text += format(", at %.3f of the speed of the ego motion", factor);
    if (std::fabs(off) > 150) {
      text += "; the sign of range_rate is turned round (positive = receding), or the radar looks backwards";
    } else if (turned) {
      text += format("; turn its extrinsics by %.1f deg about z", -off);
    }
    if (scaled) text += "; range_rate or the ego motion has a wrong unit";
    add(s, "forward axis", turned || scaled ? CheckState::kWrong : CheckState::kOk, text,
        {{"off_deg", off}, {"speed_ratio", factor}, {"scans", static_cast<double>(direction.size())}});
  }

  void check_ego(std::size_t s) {
    std::vector<double> direction;
    for (const Sample& sample : samples_[s]) {
      const auto& ego = sample.payload->as<EgoMotion>();
      if (std::hypot(ego.velocity[0], ego.velocity[1]) < kFastEnough) continue;
      direction.push_back(std::atan2(ego.velocity[1], ego.velocity[0]) * kDegrees);
    }
    if (direction.empty()) {
      add(s, "forward axis", CheckState::kNotChecked, "the vehicle never drives faster than 2 m/s");
      return;
    }
    const double off = median(direction);
    const bool wrong = std::fabs(off) > options_.limits.forward_deg;
    std::string text = format("velocity points %.2f deg off the x axis", off);
    if (wrong) text += "; velocities must be in the vehicle's axes, origin under the rear axle";
    add(s, "forward axis", wrong ? CheckState::kWrong : CheckState::kOk, text, {{"off_deg", off}});
  }

  void check_skew(std::size_t a, std::size_t b) {
    if (stamps_[a].empty() || stamps_[b].empty()) return;
    // Seen from the slower one: each of its frames should find a partner within half a period of the faster one.
    const bool a_slower = rig_.sensors[a].period >= rig_.sensors[b].period;
    const auto& slow = stamps_[a_slower ? a : b];
    const auto& fast = stamps_[a_slower ? b : a];
    const Duration period = rig_.sensors[a_slower ? b : a].period;
    std::vector<double> skews;
    double worst = 0;
    for (const SensorTime stamp : slow) {
      const double skew = (nearest(fast, stamp) - stamp).ms();
      skews.push_back(skew);
      worst = std::max(worst, std::fabs(skew));
    }
    const double middle = median(skews);
    // Ends of a log, gaps and jitter may lie a period off; more means that the clocks differ.
    const bool wrong = std::fabs(middle) > 0.6 * period.ms() + 1;
    std::string text = format("nearest stamps: median %+.2f ms, at most %.2f ms apart", middle, worst);
    if (wrong) text += "; they hardly overlap: another clock, or one of them stopped";
    add(rig_.sensors[a].name + " / " + rig_.sensors[b].name, "stamp skew", wrong ? CheckState::kWrong : CheckState::kOk,
        text, {{"median_ms", middle}, {"max_ms", worst}});
  }

  Status picture(const Picture& picture, const std::string& name) {
    if (options_.folder.empty()) return {};
    TAKT_RETURN_IF_ERROR(write_png(picture, options_.folder + "/" + name));
    out_.pictures.push_back(name);
    return {};
  }

  Status draw() {
    for (std::size_t l = 0; l < rig_.sensors.size(); ++l) {
      const RigSensor& lidar = rig_.sensors[l];
      if (lidar.kind != SensorKind::kLidar || samples_[l].empty()) continue;
      const Sample& sweep = samples_[l][samples_[l].size() / 2];
      const auto points = vehicle_points_at(sweep, lidar, ego_at(sweep.stamp), sweep.stamp);
      TAKT_RETURN_IF_ERROR(picture(draw_birdseye(points, radar_marks(sweep.stamp), options_.box,
                                                 "bird's-eye view: " + lidar.name + ", " + rig_.name),
                                   "birdseye_" + lidar.name + ".png"));
      TAKT_RETURN_IF_ERROR(picture(draw_side(points, options_.box, "side view: " + lidar.name + ", " + rig_.name),
                                   "side_" + lidar.name + ".png"));
      for (std::size_t c = 0; c < rig_.sensors.size(); ++c) {
        if (rig_.sensors[c].kind == SensorKind::kCamera) TAKT_RETURN_IF_ERROR(overlay(c, l));
      }
    }
    return {};
  }

  // The pictures beside sweeps of the LiDAR; the share of points in the image is that of the last one.
  Status overlay(std::size_t c, std::size_t l) {
    const RigSensor& camera = rig_.sensors[c];
    const RigSensor& lidar = rig_.sensors[l];
    std::size_t number = 0, seen = 0;
    const Sample* last = nullptr;
    for (const Sample& image : samples_[c]) {
      const auto closer = [&](const Sample& a, const Sample& b) {
        return std::llabs((a.stamp - image.stamp).ns) < std::llabs((b.stamp - image.stamp).ns);
      };
      const Sample& sweep = *std::min_element(samples_[l].begin(), samples_[l].end(), closer);
      const auto points = vehicle_points_at(sweep, lidar, ego_at(image.stamp), image.stamp);
      const std::string title = camera.name + " and " + lidar.name + ", stamps " +
                                format("%.1f ms apart", (sweep.stamp - image.stamp).ms()) +
                                (has_ego() ? ", points moved to the picture's time" : ", no ego motion: not moved");
      const std::string name = "overlay_" + camera.name + "_" + lidar.name + "_" + std::to_string(++number) + ".png";
      TAKT_RETURN_IF_ERROR(picture(draw_overlay(image.payload->as<sensors::Image>(), camera, points, title), name));
      last = &image;
      const sensors::Transform camera_from_vehicle = camera.vehicle_from_sensor.inverse();
      for (const VehiclePoint& p : points) {
        double u = 0, v = 0;
        const auto q = camera_from_vehicle.apply(
            {static_cast<double>(p[0]), static_cast<double>(p[1]), static_cast<double>(p[2])});
        if (project(*camera.camera, q, u, v) && u >= 0 && v >= 0 && u < camera.camera->width &&
            v < camera.camera->height) {
          ++seen;
        }
      }
    }
    if (last == nullptr) return {};
    const auto per_picture = static_cast<double>(seen) / static_cast<double>(samples_[c].size());
    add(camera.name + " / " + lidar.name, "in image", seen == 0 ? CheckState::kWrong : CheckState::kOk,
        seen == 0 ? "no LiDAR point falls into the image: the camera's extrinsics point elsewhere"
                  : format("%.0f LiDAR points fall into a picture; look at the overlay", per_picture),
        {{"points", per_picture}});
    return {};
  }

  [[nodiscard]] std::vector<RadarMark> radar_marks(SensorTime at) const {
    std::vector<RadarMark> marks;
    for (std::size_t s = 0; s < rig_.sensors.size(); ++s) {
      const RigSensor& radar = rig_.sensors[s];
      if (radar.kind != SensorKind::kRadar || samples_[s].empty()) continue;
      const auto closer = [at](const Sample& a, const Sample& b) {
        return std::llabs((a.stamp - at).ns) < std::llabs((b.stamp - at).ns);
      };
      const Sample& scan = *std::min_element(samples_[s].begin(), samples_[s].end(), closer);
      const auto& returns = scan.payload->as<sensors::RadarScan>();
      for (std::uint32_t i = 0; i < returns.count; ++i) {
        const sensors::RadarReturn& r = returns.returns()[i];
        const std::array<double, 3> p{static_cast<double>(r.x), static_cast<double>(r.y), static_cast<double>(r.z)};
        const double range = std::hypot(p[0], p[1]);
        if (range < 0.1) continue;
        const double rate = static_cast<double>(r.range_rate);
        const auto from = radar.vehicle_from_sensor.apply(p);
        const auto to = radar.vehicle_from_sensor.apply({p[0] + rate * p[0] / range, p[1] + rate * p[1] / range, p[2]});
        marks.push_back({{static_cast<float>(from[0]), static_cast<float>(from[1]), static_cast<float>(from[2])},
                         {static_cast<float>(to[0] - from[0]), static_cast<float>(to[1] - from[1])}});
      }
    }
    return marks;
  }

  const sensors::Rig& rig_;
  const CheckOptions& options_;
  std::vector<std::vector<SensorTime>> stamps_;
  std::vector<std::vector<Sample>> samples_;
  std::vector<sensors::log::Truth> labels_;
  RigCheck out_;
};

}  // namespace

const char* word_of(CheckState state) {
  switch (state) {
    case CheckState::kOk: return "ok";
    case CheckState::kWrong: return "WRONG";
    case CheckState::kNotChecked: return "NOT CHECKED";
  }
  return "";
}

bool RigCheck::wrong() const {
  return std::any_of(lines.begin(), lines.end(), [](const CheckLine& l) { return l.state == CheckState::kWrong; });
}

const CheckLine* RigCheck::find(const std::string& sensor, const std::string& check) const {
  for (const CheckLine& line : lines) {
    if (line.sensor == sensor && line.check == check) return &line;
  }
  return nullptr;
}

std::string RigCheck::text() const {
  std::string out;
  for (const CheckLine& line : lines) {
    out +=
        format("%-12s %-30s %-13s ", word_of(line.state), line.sensor.c_str(), line.check.c_str()) + line.text + "\n";
  }
  return out;
}

std::string RigCheck::json() const {
  nlohmann::ordered_json root;
  root["wrong"] = wrong();
  for (const CheckLine& line : lines) {
    nlohmann::ordered_json entry;
    entry["sensor"] = line.sensor;
    entry["check"] = line.check;
    entry["state"] = word_of(line.state);
    entry["text"] = line.text;
    for (const auto& [key, value] : line.figures) entry["figures"][key] = value;
    root["checks"].push_back(entry);
  }
  root["pictures"] = pictures;
  return root.dump(2) + "\n";
}

Result<RigCheck> check_rig(const sensors::Rig& rig, const CheckOptions& options) {
  if (!options.folder.empty()) {
    std::error_code error;
    std::filesystem::create_directories(options.folder, error);
    if (error) return fail(Code::kEnvironment, options.folder + ": the folder cannot be made: " + error.message());
  }
  return Check(rig, options).run();
}

}  // namespace takt::pipeline
