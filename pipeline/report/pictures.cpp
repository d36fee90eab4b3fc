#include "pipeline/report/pictures.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "pipeline/report/breakdown.h"
#include "pipeline/report/html.h"
#include "pipeline/report/log_frames.h"
#include "pipeline/report/score.h"
#include "pipeline/report/text.h"
#include "sensors/camera/jpeg_encoder.h"

namespace takt::pipeline {
namespace {

constexpr std::uint32_t kMostWidth = 960;  // pixels of an embedded picture
constexpr int kQuality = 78;
constexpr double kFront = 55, kBack = 9, kSide = 24;  // m shown by the bird's-eye view
constexpr double kNear = 0.5;                         // m before the camera: nothing nearer is drawn
constexpr std::size_t kMostPoints = 7000;

using Point3 = std::array<double, 3>;

// Corners of a box: 0-3 the floor counter-clockwise from front left, 4-7 the roof above them.
std::array<Point3, 8> corners(double x, double y, double z, double length, double width, double height, double yaw) {
  std::array<Point3, 8> out;
  const double c = std::cos(yaw), s = std::sin(yaw);
  constexpr int kSigns[4][2] = {{1, 1}, {-1, 1}, {-1, -1}, {1, -1}};
  for (std::size_t i = 0; i < 8; ++i) {
    const double dx = kSigns[i % 4][0] * length / 2, dy = kSigns[i % 4][1] * width / 2;
    out[i] = {x + c * dx - s * dy, y + s * dx + c * dy, z + (i < 4 ? -height / 2 : height / 2)};
  }
  return out;
}

// Pinhole with the plumb_bob distortion (k1 k2 p1 p2 k3; OpenCV, "Camera Calibration and 3D Reconstruction").
std::optional<std::pair<double, double>> project(const sensors::CameraModel& camera, const Point3& p) {
  const double x = p[0] / p[2], y = p[1] / p[2], r2 = x * x + y * y;
  if (r2 > 4) return std::nullopt;  // far outside the picture, where the polynomial folds back
  const auto& k = camera.distortion;
  const double radial = 1 + r2 * (k[0] + r2 * (k[1] + r2 * k[4]));
  const double u = x * radial + 2 * k[2] * x * y + k[3] * (r2 + 2 * x * x);
  const double v = y * radial + k[2] * (r2 + 2 * y * y) + 2 * k[3] * x * y;
  return std::pair(camera.fx * u + camera.cx, camera.fy * v + camera.cy);
}

// A chosen output and why it was chosen.
struct Choice {
  const TrackFrame* frame = nullptr;
  std::string why;
};

class Pictures {
 public:
  Pictures(const RunData& run, const Judgement& judgement) : run_(run), judgement_(judgement) {}

  std::string html() {
    choose();
    if (choices_.empty()) return "<p>No track list was published: there is nothing to show.</p>";
    std::vector<Moment> moments;
    for (const Choice& choice : choices_) moments.push_back({choice.frame->list.stamp(), {}, {}});
    std::string text =
        "<p class=\"lead small\">" + said_drive() +
        " Left: tracks as boxes projected with the rig's camera model, dashed: detections of the camera "
        "stage in the picture they came from. Right: seen from above, forward is up, rings every 20 m.</p>\n" +
        legend();
    if (run_.log_path.empty()) {
      text += "<p class=\"warning\">No log is known: without camera and LiDAR.</p>";
    } else if (const Status read = read_frames(run_, moments); !read) {
      text += "<p class=\"warning\">Without camera and LiDAR: " + escaped(read.error().message) + "</p>";
    }
    for (std::size_t i = 0; i < choices_.size(); ++i) text += moment_html(choices_[i], moments[i]);
    return text;
  }

 private:
  [[nodiscard]] std::string said_drive() const {
    if (run_.rig.drive == "simulated") return "<b>Simulated drive:</b> rendered pictures, ray-cast LiDAR.";
    if (run_.rig.drive == "recorded") return "<b>Recorded drive.</b>";
    return "<b>Drive of unknown origin.</b>";
  }

  static std::string legend() {
    return "<p class=\"legend\"><span><i class=\"key\" style=\"background:var(--track)\"></i>track, line: where it "
           "will be "
           "in 1 s</span> <span><i class=\"key\" style=\"background:none;border:2px solid "
           "var(--truth)\"></i>truth</span> "
           "<span><i class=\"key\" style=\"background:none;border:2px dashed #7cc4ff\"></i>camera box</span> "
           "<span><i class=\"key\" style=\"background:var(--muted)\"></i>LiDAR 0.3 to 4 m above ground</span></p>\n";
  }

  [[nodiscard]] const TrackFrame* frame_of(std::uint64_t job) const {
    const auto at =
        std::find_if(run_.tracks.begin(), run_.tracks.end(), [&](const TrackFrame& f) { return f.job == job; });
    return at == run_.tracks.end() ? nullptr : &*at;
  }

  void choose() {
    const WorstFrame worst = worst_frame(judgement_);
    if (worst.instance != nullptr) add(typical(judgement_.chains[worst.chain].latency()), "typical latency");
    const auto most = std::max_element(run_.tracks.begin(), run_.tracks.end(),
                                       [](const auto& a, const auto& b) { return a.list.count() < b.list.count(); });
    if (most != run_.tracks.end()) add(&*most, "most objects");
    if (worst.instance != nullptr) add(frame_of(worst.instance->output), "worst latency");
  }

  // The output with the median latency; of several, the one nearest to the middle of the drive.
  [[nodiscard]] const TrackFrame* typical(const QuantityJudgement& latency) const {
    std::vector<Duration> values;
    for (const Instance& i : latency.instances) {
      if (i.reached && i.state != InstanceState::kFill) values.push_back(i.published);
    }
    if (values.empty()) return nullptr;
    std::sort(values.begin(), values.end());
    const Duration median = values[values.size() / 2];
    const auto middle = static_cast<std::int64_t>(run_.tracks.empty() ? 0 : run_.tracks[run_.tracks.size() / 2].job);
    const auto off = [&](const Instance& i) {
      // Latencies within a tenth of a millisecond count as equal.
      return std::pair(std::abs((i.published - median).ns) / 100'000,
                       std::abs(static_cast<std::int64_t>(i.output) - middle));
    };
    const Instance* best = nullptr;
    for (const Instance& i : latency.instances) {
      if (!i.reached || i.state == InstanceState::kFill) continue;
      if (best == nullptr || off(i) < off(*best)) best = &i;
    }
    return best == nullptr ? nullptr : frame_of(best->output);
  }

  void add(const TrackFrame* frame, const std::string& why) {
    if (frame == nullptr) return;
    for (Choice& choice : choices_) {
      if (choice.frame != frame) continue;
      choice.why += ", " + why;
      return;
    }
    choices_.push_back({frame, why});
  }

  std::string moment_html(const Choice& choice, const Moment& moment) const {
    const TrackList list = choice.frame->list.get();
    const double at = static_cast<double>(table_time(run_.sensor_from_table, SensorTime{list.stamp_ns}).ns) * 1e-9;
    std::string why = choice.why;
    why[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(why[0])));
    std::string text = fmt::format("<h3>{}: {} job {}, {:.3f} s, {}</h3>\n<div class=\"pair\">", why,
                                   escaped(run_.problem.stages[choice.frame->stage].name), choice.frame->job, at,
                                   plural(list.count, "track", "tracks"));
    if (moment.camera) text += camera_html(*moment.camera, list);
    return text + bird_html(moment, list) + "</div>\n";
  }

  // "captured 12 ms before the tracks' instant".
  static std::string offset_text(SensorTime stamp, SensorTime wanted) {
    const Duration apart = stamp - wanted;
    if (apart.ns == 0) return "at the tracks' instant";
    return fmt::format("{:.0f} ms {} the tracks' instant", std::fabs(apart.ms()), apart.ns < 0 ? "before" : "after");
  }

  std::string camera_html(const CameraFrame& frame, const TrackList& list) const {
    const sensors::RigSensor& sensor = run_.rig.sensors[frame.sensor];
    const RgbPicture small = shrunk(frame.picture, kMostWidth);
    const auto jpeg = sensors::encode_jpeg(small.pixels, small.width, small.height, kQuality);
    if (!jpeg || !sensor.camera) return "";
    const double width = sensor.camera->width, height = sensor.camera->height;
    Svg svg(width, height, fmt::format("Camera {} with {} projected tracks", sensor.name, list.count), "scene");
    svg.raw(fmt::format("<image width=\"{}\" height=\"{}\" preserveAspectRatio=\"none\" href=\"{}\"/>",
                        coordinate(width), coordinate(height), data_uri("image/jpeg", *jpeg)));
    // Line widths and letters are meant for a picture 640 units wide.
    svg.raw(fmt::format("<g style=\"--u:{}px\">", coordinate(width / 640)));
    draw_tracks(svg, sensor, list);
    const std::size_t boxes = draw_detections(svg, frame);
    svg.raw("</g>");
    return "<figure><figcaption><b>" + escaped(sensor.name) + "</b>, captured " +
           offset_text(frame.stamp, SensorTime{list.stamp_ns}) + ", " + plural(boxes, "camera box", "camera boxes") +
           "</figcaption>" + svg.str() + "</figure>\n";
  }

  // What the camera stage made of this very picture; how many boxes that was.
  std::size_t draw_detections(Svg& svg, const CameraFrame& frame) const {
    std::size_t drawn = 0;
    for (const ObjectFrame& objects : run_.objects) {
      if (objects.list.stamp() != frame.stamp) continue;
      const ObjectList list = objects.list.get();
      if (list.sensor != frame.sensor) continue;
      for (std::uint32_t i = 0; i < std::min(list.count, kMaxObjects); ++i) {
        const Object& o = list.objects[i];
        if ((o.flags & kHasImageBox) == 0) continue;
        svg.rect(o.u0, o.v0, o.u1 - o.u0, o.v1 - o.v0, "box2",
                 fmt::format("{} {:.2f}", name_of(o.object_class), o.score));
        ++drawn;
      }
      return drawn;
    }
    return drawn;
  }

  void draw_tracks(Svg& svg, const sensors::RigSensor& sensor, const TrackList& list) const {
    const sensors::Transform sensor_from_vehicle = sensor.vehicle_from_sensor.inverse();
    std::vector<const Track*> order;  // nearest first, so that its label wins the space
    for (std::uint32_t i = 0; i < std::min(list.count, kMaxTracks); ++i) order.push_back(&list.tracks[i]);
    std::stable_sort(order.begin(), order.end(), [](const Track* a, const Track* b) {
      return a->x * a->x + a->y * a->y < b->x * b->x + b->y * b->y;
    });
    const double unit = sensor.camera->width / 640.0;
    std::vector<std::pair<double, double>> labels;
    constexpr int kEdges[12][2] = {{0, 1}, {1, 2}, {2, 3}, {3, 0}, {4, 5}, {5, 6},
                                   {6, 7}, {7, 4}, {0, 4}, {1, 5}, {2, 6}, {3, 7}};
    for (const Track* track : order) {
      const Track& t = *track;
      auto box = corners(t.x, t.y, t.z, t.length, t.width, t.height, t.yaw);
      for (Point3& p : box) p = sensor_from_vehicle.apply(p);
      std::string data;
      double top = 1e9, top_u = 0;
      for (const auto& edge : kEdges) {
        Point3 a = box[static_cast<std::size_t>(edge[0])], b = box[static_cast<std::size_t>(edge[1])];
        if (!clip_near(a, b)) continue;
        const auto from = project(*sensor.camera, a), to = project(*sensor.camera, b);
        if (!from || !to) continue;
        data += fmt::format("M{} {}L{} {}", coordinate(from->first), coordinate(from->second), coordinate(to->first),
                            coordinate(to->second));
        for (const auto& end : {*from, *to}) {
          if (end.second < top) {
            top = end.second;
            top_u = end.first;
          }
        }
      }
      if (data.empty()) continue;
      svg.path(data, "box3");
      const bool inside = top_u > 0 && top_u < sensor.camera->width && top > 0 && top < sensor.camera->height;
      const bool covered = std::any_of(labels.begin(), labels.end(), [&](const auto& label) {
        return std::fabs(label.first - top_u) < 52 * unit && std::fabs(label.second - top) < 13 * unit;
      });
      if (!inside || covered) continue;
      labels.emplace_back(top_u, top);
      svg.text(top_u, top - 3 * unit, fmt::format("{} {:.0f} m", t.id, std::sqrt(t.x * t.x + t.y * t.y)), "tag-text");
    }
  }

  // Cuts the part of a-b that lies behind the near plane; false when nothing is left.
  static bool clip_near(Point3& a, Point3& b) {
    if (a[2] < kNear && b[2] < kNear) return false;
    if (a[2] >= kNear && b[2] >= kNear) return true;
    Point3& behind = a[2] < kNear ? a : b;
    const Point3& before = a[2] < kNear ? b : a;
    const double share = (kNear - before[2]) / (behind[2] - before[2]);
    for (std::size_t k = 0; k < 3; ++k) behind[k] = before[k] + share * (behind[k] - before[k]);
    return true;
  }

  // ---- bird's-eye view: drawing units are metres, x right = -y of the vehicle, y down = -x -------------------------

  static double u(double y) { return kSide - y; }
  static double v(double x) { return kFront - x; }

  static std::vector<std::pair<double, double>> footprint(double x, double y, double length, double width, double yaw) {
    const auto box = corners(x, y, 0, length, width, 0, yaw);
    std::vector<std::pair<double, double>> out;
    for (std::size_t i = 0; i < 4; ++i) out.emplace_back(u(box[i][1]), v(box[i][0]));
    return out;
  }
  static bool in_view(double x, double y) { return x > -kBack && x < kFront && std::fabs(y) < kSide; }

  std::string bird_html(const Moment& moment, const TrackList& list) const {
    Svg svg(2 * kSide, kFront + kBack, fmt::format("Bird's-eye view of {} tracks", list.count), "scene");
    for (const int range : {20, 40}) {
      svg.circle(u(0), v(0), range, "ring");
      svg.text(u(0) + 0.4, v(range) + 1.9, std::to_string(range) + " m", "ring-label");
    }
    if (moment.lidar) svg.path(points_path(*moment.lidar), "points");
    svg.polygon(footprint(1.4, 0, 4.6, 1.9, 0), "ego", "the vehicle itself");
    const TruthAt truth = truth_at(run_.truth, SensorTime{list.stamp_ns}, ScoreRule{}.truth_gap);
    for (const TruthBox& box : truth.boxes) {
      if (!in_view(box.x, box.y)) continue;
      svg.polygon(footprint(box.x, box.y, box.length, box.width, box.yaw), "truth",
                  fmt::format("truth {}: {}, {} LiDAR points", box.id, name_of(box.object_class), box.lidar_points));
    }
    for (std::uint32_t i = 0; i < std::min(list.count, kMaxTracks); ++i) draw_track(svg, list.tracks[i]);
    std::string caption = "<b>Bird's-eye view</b>";
    if (moment.lidar) {
      caption += ", sweep " + offset_text(moment.lidar->stamp, SensorTime{list.stamp_ns});
    }
    if (!truth.found) caption += ", no truth near this instant";
    return "<figure><figcaption>" + caption + "</figcaption>" + svg.str() + "</figure>\n";
  }

  static void draw_track(Svg& svg, const Track& t) {
    if (!in_view(t.x, t.y)) return;
    svg.polygon(footprint(t.x, t.y, t.length, t.width, t.yaw), "track-box",
                fmt::format("track {}: {}, {:.1f} m/s, existence {:.2f}", t.id, name_of(t.object_class),
                            std::sqrt(t.vx * t.vx + t.vy * t.vy), t.score));
    if (t.vx * t.vx + t.vy * t.vy > 0.25F) svg.line(u(t.y), v(t.x), u(t.y + t.vy), v(t.x + t.vx), "arrow");
    svg.text(u(t.y) + 0.5 * t.width + 0.6, v(t.x) + 0.6, std::to_string(t.id), "id");
  }

  // Points as dots of one path, on a 0.2 m raster so that the file stays small.
  static std::string points_path(const LidarFrame& frame) {
    std::set<std::pair<int, int>> cells;
    for (const auto& p : frame.points) {
      if (p[2] < 0.3F || p[2] > 4.0F || !in_view(p[0], p[1])) continue;
      cells.emplace(static_cast<int>(std::lround(v(p[0]) * 5)), static_cast<int>(std::lround(u(p[1]) * 5)));
      if (cells.size() >= kMostPoints) break;
    }
    std::string data;
    for (const auto& [y, x] : cells) data += fmt::format("M{:g} {:g}h0", x * 0.2, y * 0.2);
    return data;
  }

  const RunData& run_;
  const Judgement& judgement_;
  std::vector<Choice> choices_;
};

}  // namespace

std::string pictures_html(const RunData& run, const Judgement& judgement) { return Pictures(run, judgement).html(); }

}  // namespace takt::pipeline
