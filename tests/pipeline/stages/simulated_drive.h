// The shipped drive, decoded sample by sample in log order, with the truth nearest to each sample.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "detection_score.h"
#include "sensors/camera/camera_decoder.h"
#include "sensors/ego/ego_decoder.h"
#include "sensors/lidar/lidar_decoder.h"
#include "sensors/logs/decode.h"
#include "sensors/logs/log_reader.h"
#include "sensors/radar/radar_decoder.h"
#include "sensors/rig/rig.h"
#include "stage_fixture.h"

namespace takt::pipeline::testing {

struct DriveTruth {
  std::int64_t stamp_ns = 0;
  std::vector<TruthBox> vehicles;
  std::vector<float> speed;  // of each, over ground, m/s
};

class SimulatedDrive {
 public:
  // "" in error() when all is well.
  SimulatedDrive() {
    auto rig = sensors::load_rig(TAKT_SOURCE_DIR "/configs/rigs/sim.yaml");
    if (!rig) {
      error_ = rig.error().message;
      return;
    }
    rig_ = std::move(*rig);
    auto log = sensors::open_log(TAKT_SOURCE_DIR "/replay_data/city.mcap");
    if (!log) {
      error_ = log.error().message;
      return;
    }
    log_ = std::move(*log);
    for (const sensors::RigSensor& sensor : rig_.sensors) {
      Result<std::unique_ptr<sensors::Decoder>> decoder = decoder_of(sensor);
      if (!decoder) {
        error_ = decoder.error().message;
        return;
      }
      decoders_.push_back(std::move(*decoder));
    }
    read_truth();
  }
  [[nodiscard]] const std::string& error() const { return error_; }
  [[nodiscard]] const sensors::Rig& rig() const { return rig_; }
  [[nodiscard]] const sensors::RigSensor& sensor(sensors::SensorKind kind) const {
    return *std::find_if(rig_.sensors.begin(), rig_.sensors.end(), [&](const auto& s) { return s.kind == kind; });
  }

  // Calls `use` with every sample of a kind and the newest ego sample that arrived before it.
  void each(sensors::SensorKind kind, const std::function<void(const Chunk& sample, const Chunk& ego)>& use) {
    log_->rewind();
    Chunk ego = make_ego(0, 0);
    for (auto message = log_->next(); message && *message; message = log_->next()) {
      for (std::size_t i = 0; i < rig_.sensors.size(); ++i) {
        const sensors::RigSensor& s = rig_.sensors[i];
        if (s.topic != (*message)->channel->topic) continue;
        if (s.kind != kind && s.kind != sensors::SensorKind::kEgo) continue;
        Chunk chunk(decoders_[i]->payload_capacity());
        const sensors::DecodeReport report = decoders_[i]->decode((*message)->bytes, chunk.bytes());
        EXPECT_TRUE(report.ok) << report.reason;
        chunk.header.schema = decoders_[i]->schema();
        chunk.header.capture_ns = report.stamp.ns;
        chunk.header.payload_bytes = report.payload_bytes;
        if (s.kind == sensors::SensorKind::kEgo) {
          ego = std::move(chunk);
        } else {
          use(chunk, ego);
        }
      }
    }
  }

  // The truth with the nearest stamp. It comes every 50 ms: at 10 m/s of relative speed half a period is 0.25 m, well
  // inside the matching distance.
  [[nodiscard]] const DriveTruth& truth_at(std::int64_t stamp_ns) const {
    return *std::min_element(truth_.begin(), truth_.end(), [&](const DriveTruth& a, const DriveTruth& b) {
      return std::abs(a.stamp_ns - stamp_ns) < std::abs(b.stamp_ns - stamp_ns);
    });
  }

 private:
  static Result<std::unique_ptr<sensors::Decoder>> decoder_of(const sensors::RigSensor& sensor) {
    switch (sensor.kind) {
      case sensors::SensorKind::kCamera: return sensors::make_camera_decoder(sensor);
      case sensors::SensorKind::kLidar: return sensors::make_lidar_decoder(sensor);
      case sensors::SensorKind::kRadar: return sensors::make_radar_decoder(sensor);
      case sensors::SensorKind::kEgo: return sensors::make_ego_decoder(sensor);
    }
    return fail(Code::kInternal, "unknown sensor kind");
  }

  void read_truth() {
    for (auto message = log_->next(); message && *message; message = log_->next()) {
      if ((*message)->channel->topic != "/truth/takt") continue;
      const auto truth = sensors::decode_truth((*message)->bytes);
      if (!truth) {
        error_ = truth.error().message;
        return;
      }
      DriveTruth frame;
      frame.stamp_ns = truth->stamp.ns;
      for (const sensors::log::TruthBox& box : truth->boxes) {
        if (box.object_class != static_cast<std::uint32_t>(ObjectClass::kVehicle)) continue;
        const auto& q = box.pose.orientation;
        TruthBox out;
        out.x = static_cast<float>(box.pose.position[0]);
        out.y = static_cast<float>(box.pose.position[1]);
        out.yaw = static_cast<float>(2 * std::atan2(q[3], q[0]));
        out.length = static_cast<float>(box.size[0]);
        out.width = static_cast<float>(box.size[1]);
        out.points = box.lidar_points;
        frame.vehicles.push_back(out);
        frame.speed.push_back(static_cast<float>(std::hypot(box.velocity[0], box.velocity[1])));
      }
      truth_.push_back(std::move(frame));
    }
    if (truth_.empty()) error_ = "the drive has no truth";
  }

  std::string error_;
  sensors::Rig rig_;
  std::unique_ptr<sensors::LogReader> log_;
  std::vector<std::unique_ptr<sensors::Decoder>> decoders_;
  std::vector<DriveTruth> truth_;
};

}  // namespace takt::pipeline::testing
