#include "pipeline/rig/draft.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "scheduler/dispatch/record.h"

namespace takt::pipeline {
namespace {

using sensors::RigSensor;
using sensors::SensorKind;

constexpr std::size_t kFusionInputs = sched::kMaxInputs - 1;  // one is ego motion

double rate_of(const RigSensor& sensor) { return 1e9 / static_cast<double>(sensor.period.ns); }

// The hyperperiod must hold a whole number of jobs of every stage: the slowest sensor decides.
int hyperperiod_ms(const std::vector<const RigSensor*>& used) {
  double slowest = 10;
  for (const RigSensor* sensor : used) slowest = std::min(slowest, rate_of(*sensor));
  for (const int ms : {100, 200, 500}) {
    if (slowest >= 0.95 * 1000 / ms) return ms;
  }
  return 1000;
}

// Rates to try, best first: whole jobs per hyperperiod, not faster than the data comes.
std::vector<int> rates(double data_rate, int most, int ms) {
  const int grid = 1000 / ms;
  const int best = std::max(grid, static_cast<int>(std::min<double>(most, data_rate * 1.02)) / grid * grid);
  std::vector<int> out{best};
  for (const int part : {2, 3}) {
    const int slower = std::max(grid, best / part / grid * grid);
    if (slower < out.back()) out.push_back(slower);
  }
  return out;
}

std::string joined(const std::vector<int>& values) {
  std::string text;
  for (const int v : values) text += (text.empty() ? "" : ", ") + std::to_string(v);
  return text;
}

std::string quoted(const std::string& text) { return '"' + text + '"'; }

// How much the camera looks ahead: the stage knows the road in front of the vehicle.
double looks_ahead(const RigSensor& camera) { return camera.vehicle_from_sensor.rotation[2]; }

const char* stage_type(SensorKind kind) {
  switch (kind) {
    case SensorKind::kCamera: return "camera_classical";
    case SensorKind::kLidar: return "lidar_classical";
    case SensorKind::kRadar: return "radar_cluster";
    case SensorKind::kEgo: break;
  }
  return "";
}

class Draft {
 public:
  Draft(const sensors::Rig& rig, std::size_t stages) {
    for (const RigSensor& sensor : rig.sensors) {
      if (sensor.kind == SensorKind::kEgo) {
        ego_ = &sensor;
      } else {
        used_.push_back(&sensor);
      }
    }
    // LiDARs, the camera that looks ahead most, radars, further cameras.
    const RigSensor* front = nullptr;
    for (const RigSensor* s : used_) {
      if (s->kind == SensorKind::kCamera && (front == nullptr || looks_ahead(*s) > looks_ahead(*front))) front = s;
    }
    const auto rank = [front](const RigSensor* s) {
      if (s->kind == SensorKind::kLidar) return 0;
      if (s == front) return 1;
      return s->kind == SensorKind::kRadar ? 2 : 3;
    };
    std::stable_sort(used_.begin(), used_.end(),
                     [&](const RigSensor* a, const RigSensor* b) { return rank(a) < rank(b); });
    const std::size_t most = std::min(stages, kFusionInputs);
    while (used_.size() > most) {
      out_.notes.push_back("sensor '" + used_.back()->name + "' gets no stage: " +
                           (most == kFusionInputs ? "the fusion stage takes " + std::to_string(most) + " inputs"
                                                  : std::string("the board has no time for it")));
      used_.pop_back();
    }
  }

  Result<PipelineDraft> write(const sensors::Rig& rig, const std::string& rig_file, const std::string& board_file,
                              const std::string& heading) {
    if (used_.empty()) {
      return fail(Code::kConfiguration, "rig '" + rig.name + "' has no camera, LiDAR or radar to make stages for");
    }
    ms_ = hyperperiod_ms(used_);
    comment(heading);
    line("name: " + quoted(rig.name));
    line("board: " + quoted(board_file));
    line("rig: " + quoted(rig_file));
    line("hyperperiod_ms: " + std::to_string(ms_));
    line("");
    line("stages:");
    for (const RigSensor* sensor : used_) stage(*sensor);
    fusion();
    line("chains:");
    for (const RigSensor* sensor : used_) chain(*sensor);
    for (const RigSensor* sensor : used_) out_.sensors.push_back(sensor->name);
    return std::move(out_);
  }

 private:
  void line(const std::string& text) { out_.yaml += text + "\n"; }
  void comment(const std::string& text) {
    for (std::size_t begin = 0; begin < text.size();) {
      const std::size_t end = std::min(text.find('\n', begin), text.size());
      line("# " + text.substr(begin, end - begin));
      begin = end + 1;
    }
  }
  static std::string stage_name(const RigSensor& sensor) { return sensor.name + "_detect"; }

  void end_of_stage(int slack_ms) {
    line("    overrun: continue_late");
    line("    slack_ms: " + std::to_string(slack_ms));
    line("    params: {}");
    line("");
  }
  void ego_input() {
    if (ego_ != nullptr) line("      - { name: ego, sensor: " + quoted(ego_->name) + ", required: false }");
  }

  void stage(const RigSensor& sensor) {
    const int most = sensor.kind == SensorKind::kCamera ? 30 : 20;
    const std::vector<int> list = rates(rate_of(sensor), most, ms_);
    fastest_ = std::max(fastest_, list.front());
    line("  - name: " + quoted(stage_name(sensor)));
    line(std::string("    type: ") + stage_type(sensor.kind));
    line("    rates_hz: [" + joined(list) + "]");
    line("    inputs:");
    const char* input = sensor.kind == SensorKind::kCamera  ? "image"
                        : sensor.kind == SensorKind::kLidar ? "cloud"
                                                            : "scan";
    line(std::string("      - { name: ") + input + ", sensor: " + quoted(sensor.name) + " }");
    if (sensor.kind != SensorKind::kCamera) ego_input();
    line("    variants:");
    // Straight lines through what the stages take on the shipped drive and on a 2 Mpx, 110,000 point one.
    if (sensor.kind == SensorKind::kCamera) {
      const double mpx = sensor.camera ? 1e-6 * sensor.camera->width * sensor.camera->height : 1;
      const int full = std::max(6, static_cast<int>(std::ceil(4 + 7.7 * mpx)));
      line("      - { name: full, budgets: [{ cores: 1, ms: " + std::to_string(full) + " }] }");
      line("      - { name: lite, budgets: [{ cores: 1, ms: " + std::to_string((full + 1) / 2) + " }] }");
    } else {
      const int ms = sensor.kind == SensorKind::kLidar ? static_cast<int>(std::ceil(8 + 2e-4 * sensor.capacity)) : 2;
      line("      - { name: full, budgets: [{ cores: 1, ms: " + std::to_string(ms) + " }] }");
    }
    end_of_stage(5);
  }

  void fusion() {
    line("  - name: fusion");
    line("    type: fusion_tracker");
    line("    rates_hz: [" + joined(rates(fastest_, 20, ms_)) + "]");
    line("    inputs:  # any may be missing: the tracker predicts");
    for (const RigSensor* sensor : used_) {
      line("      - { name: " + quoted(sensor->name) + ", stage: " + quoted(stage_name(*sensor)) +
           ", hold: 1, required: false }");
    }
    ego_input();
    line("    variants:");
    line("      - { name: full, budgets: [{ cores: 1, ms: " + std::to_string(3 + used_.size()) + " }] }");
    end_of_stage(5);
  }

  // The wait for a free-running sample, then at most two hyperperiods per stage: tighten it once `takt schedule` has
  // printed the bound.
  void chain(const RigSensor& sensor) {
    const double wanted = sensor.delay_max().ms() + 2 * sensor.period.ms() + 4.0 * ms_;
    const auto limit = static_cast<std::int64_t>(std::ceil(wanted / 50)) * 50;
    line("  - name: " + quoted(sensor.name));
    line("    path: [" + quoted(sensor.name) + ", " + quoted(stage_name(sensor)) + ", fusion]");
    line("    limit_ms: { latency: " + std::to_string(limit) + " }");
  }

  std::vector<const RigSensor*> used_;
  const RigSensor* ego_ = nullptr;
  int ms_ = 100;
  int fastest_ = 0;
  PipelineDraft out_;
};

}  // namespace

Result<PipelineDraft> draft_pipeline(const sensors::Rig& rig, const std::string& rig_file,
                                     const std::string& board_file, const std::string& heading, std::size_t stages) {
  return Draft(rig, stages).write(rig, rig_file, board_file, heading);
}

}  // namespace takt::pipeline
