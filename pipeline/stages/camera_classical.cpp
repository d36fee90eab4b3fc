#include "pipeline/stages/camera_classical.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <vector>

#include "kernels/reference/elementary.h"
#include "pipeline/stages/adversarial.h"
#include "pipeline/stages/camera_view.h"
#include "pipeline/stages/object_output.h"
#include "pipeline/stages/parameter.h"
#include "pipeline/stages/share.h"

namespace takt::pipeline {

namespace {

// Colour of the road in one image.
struct RoadModel {
  int luma = 0;       // most frequent luminance
  int tolerance = 0;  // luminance within it is road
  int red = 128;      // medians of (R - G) / 2 + 128 and (B - G) / 2 + 128
  int blue = 128;
  bool valid = false;  // enough samples lay in the image
};

// Consecutive columns whose obstacles stand on nearly one row.
struct Foot {
  std::uint32_t first = 0, last = 0;  // columns
  float row = 0;                      // mean
};

class CameraClassical final : public Stage {
 public:
  CameraClassical(const StageSpec& spec, const DetectionInputs& inputs, const CameraConfig& config,
                  std::uint32_t scale);

  [[nodiscard]] int phases() const override { return 4; }
  [[nodiscard]] bool parallel(int phase) const override { return phase % 2 == 0; }
  [[nodiscard]] std::uint32_t output_schema() const override { return kObjectListSchema; }
  [[nodiscard]] std::uint64_t output_bytes() const override { return sizeof(ObjectList); }

  void run(int phase, int part, int parts, StageJob& job) override {
    switch (phase) {
      case 0: shrink(job, part, parts); break;
      case 1: learn_road(job); break;
      case 2: find_feet(part, parts); break;
      default:
        group_columns();
        judge_and_write(job);
        break;
    }
  }

  void adversarial_input(std::size_t input, std::uint32_t seed, transport::ChunkHeader& header,
                         std::span<std::byte> payload) const override;

 private:
  static constexpr std::uint32_t kTileBytes = 1536;  // of one image row
  static constexpr std::uint32_t kNoFoot = 0;        // row 0 lies above every horizon that can be used

  [[nodiscard]] const sensors::Image* usable_image(const StageJob& job) const;
  void shrink(const StageJob& job, int part, int parts);
  void learn_road(const StageJob& job);
  void find_feet(int part, int parts);
  void group_columns();
  void judge_and_write(StageJob& job);
  [[nodiscard]] bool judge(const Foot& foot, Object& object) const;
  [[nodiscard]] bool is_road(std::size_t pixel) const;
  [[nodiscard]] float side_edge(std::uint32_t column, std::uint32_t reach, std::uint32_t top,
                                std::uint32_t bottom) const;
  [[nodiscard]] float asymmetry(const Foot& foot, std::uint32_t top, std::uint32_t bottom) const;
  [[nodiscard]] std::size_t at(std::uint32_t column, std::uint32_t row) const {
    return std::size_t{row} * width_ + column;
  }

  CameraConfig config_;
  std::vector<StageConnection> connections_;
  DetectionInputs inputs_;
  std::uint32_t scale_;
  std::uint32_t image_width_, image_height_;  // of the rig
  std::uint32_t width_, height_;              // working pixels
  CameraView view_;
  std::vector<std::size_t> road_samples_;   // working pixels
  std::vector<std::uint32_t> lowest_row_;   // per column: first row of the scan, upward
  std::vector<std::uint32_t> horizon_row_;  // per column: last row of the scan
  std::vector<float> row_scale_;            // per row: working pixels per metre at the ground there; 0 above horizon

  std::vector<std::uint8_t> luma_, red_, blue_;
  std::vector<std::uint32_t> foot_row_;  // per column
  std::vector<Foot> feet_;
  std::vector<Object> objects_;
  std::uint32_t foot_count_ = 0;
  RoadModel road_;
  bool have_image_ = false;
};

CameraClassical::CameraClassical(const StageSpec& spec, const DetectionInputs& inputs, const CameraConfig& config,
                                 std::uint32_t scale)
    : config_(config),
      connections_(spec.inputs),
      inputs_(inputs),
      scale_(scale),
      image_width_(spec.inputs[inputs.sample].sensor->camera->width),
      image_height_(spec.inputs[inputs.sample].sensor->camera->height),
      width_(image_width_ / scale),
      height_(image_height_ / scale),
      view_(*spec.inputs[inputs.sample].sensor->camera, spec.inputs[inputs.sample].sensor->vehicle_from_sensor, scale) {
  const std::size_t pixels = std::size_t{width_} * height_;
  luma_.resize(pixels);
  red_.resize(pixels);
  blue_.resize(pixels);
  foot_row_.resize(width_);
  feet_.resize(width_);
  objects_.resize(width_);

  const Point3 eye = view_.origin();
  for (float x = config.road_near_m; x <= config.road_far_m; x += 0.1F) {
    for (float y = -config.road_half_width_m; y <= config.road_half_width_m; y += 0.1F) {
      const auto p = view_.pixel({x + eye.x, y, 0});
      if (!p || p->u < 0 || p->v < 0) continue;
      const auto u = static_cast<std::uint32_t>(p->u);
      const auto v = static_cast<std::uint32_t>(p->v);
      if (u < width_ && v < height_) road_samples_.push_back(at(u, v));
    }
  }
  std::sort(road_samples_.begin(), road_samples_.end());
  road_samples_.erase(std::unique(road_samples_.begin(), road_samples_.end()), road_samples_.end());

  // Rows between the nearest and the farthest ground, for each column.
  row_scale_.assign(height_, 0);
  for (std::uint32_t v = 0; v < height_; ++v) {
    const auto g = view_.ground(static_cast<float>(width_) / 2, static_cast<float>(v), config.range_max_m);
    if (!g) continue;
    const auto p = view_.pixel(*g);
    if (p) row_scale_[v] = view_.focal() / p->depth;
  }
  lowest_row_.assign(width_, 0);
  horizon_row_.assign(width_, height_);
  for (std::uint32_t u = 0; u < width_; ++u) {
    for (std::uint32_t v = height_; v-- > 0;) {
      const auto g = view_.ground(static_cast<float>(u), static_cast<float>(v), config.range_max_m);
      if (!g || row_scale_[v] <= 0) break;
      const float dx = g->x - eye.x, dy = g->y - eye.y;
      if (dx * dx + dy * dy < config.range_min_m * config.range_min_m) continue;
      if (lowest_row_[u] == 0) lowest_row_[u] = v;
      horizon_row_[u] = v;
    }
  }
}

// The image when it is the one that the rig promises; another size is left out.
const sensors::Image* CameraClassical::usable_image(const StageJob& job) const {
  const sensors::Image* image = image_of(job.inputs[inputs_.sample]);
  if (image == nullptr || image->width != image_width_ || image->height != image_height_) return nullptr;
  switch (image->format) {
    case sensors::PixelFormat::kRgb8:
    case sensors::PixelFormat::kBgr8:
    case sensors::PixelFormat::kMono8: return image;
    default: return nullptr;
  }
}

// Mean over scale x scale pixels, split into luminance (ITU-R BT.601 weights of 256) and two colour differences. Tiles
// of columns, so that the sums over rows stay on the stack and their loop is one of bytes.
void CameraClassical::shrink(const StageJob& job, int part, int parts) {
  const sensors::Image* image = usable_image(job);
  if (image == nullptr) return;
  const std::uint32_t channels = image->format == sensors::PixelFormat::kMono8 ? 1 : 3;
  const std::uint32_t red = image->format == sensors::PixelFormat::kBgr8 ? 2 : 0;
  const std::uint32_t area = scale_ * scale_;
  const std::uint32_t per_area = (65536 + area - 1) / area;  // sum * per_area >> 16 = mean
  const Share rows = share_of(height_, part, parts);
  std::array<std::uint16_t, kTileBytes> sums;
  const std::uint32_t tile = kTileBytes / (scale_ * channels);  // working pixels
  for (std::uint32_t v = rows.begin; v < rows.end; ++v) {
    for (std::uint32_t u0 = 0; u0 < width_; u0 += tile) {
      const std::uint32_t count = std::min(tile, width_ - u0);
      const std::uint32_t bytes = count * scale_ * channels;
      std::fill_n(sums.begin(), bytes, std::uint16_t{0});
      for (std::uint32_t dv = 0; dv < scale_; ++dv) {
        const std::uint8_t* row = image->row(v * scale_ + dv) + std::size_t{u0} * scale_ * channels;
        for (std::uint32_t i = 0; i < bytes; ++i) sums[i] = static_cast<std::uint16_t>(sums[i] + row[i]);
      }
      for (std::uint32_t u = 0; u < count; ++u) {
        std::uint32_t mean[3];
        for (std::uint32_t c = 0; c < 3; ++c) {
          const std::uint16_t* first = &sums[u * scale_ * channels + (channels == 1 ? 0 : c)];
          std::uint32_t sum = 0;
          for (std::uint32_t du = 0; du < scale_; ++du) sum += first[du * channels];
          mean[c] = std::min(255U, sum * per_area >> 16);  // rounding up may exceed a white mean
        }
        const auto r = static_cast<int>(mean[red]);
        const auto g = static_cast<int>(mean[1]);
        const auto b = static_cast<int>(mean[2 - red]);
        luma_[at(u0 + u, v)] = static_cast<std::uint8_t>((77 * r + 150 * g + 29 * b) >> 8);
        red_[at(u0 + u, v)] = static_cast<std::uint8_t>(128 + (r - g) / 2);
        blue_[at(u0 + u, v)] = static_cast<std::uint8_t>(128 + (b - g) / 2);
      }
    }
  }
}

int median_of(const std::array<std::uint32_t, 256>& histogram, std::uint32_t count) {
  std::uint32_t below = 0;
  for (int i = 0; i < 256; ++i) {
    below += histogram[static_cast<std::size_t>(i)];
    if (2 * below >= count) return i;
  }
  return 255;
}

// The mode of the luminance (smoothed over 9 levels) survives markings and a vehicle in the sampled area; the
// deviation comes from the samples near it.
void CameraClassical::learn_road(const StageJob& job) {
  have_image_ = usable_image(job) != nullptr;
  road_ = {};
  if (!have_image_ || road_samples_.size() < 64) return;
  std::array<std::uint32_t, 256> luma{}, red{}, blue{};
  for (const std::size_t p : road_samples_) ++luma[luma_[p]];
  std::uint32_t most = 0;
  for (int i = 4; i < 252; ++i) {
    std::uint32_t sum = 0;
    for (int d = -4; d <= 4; ++d) sum += luma[static_cast<std::size_t>(i + d)];
    if (sum > most) {
      most = sum;
      road_.luma = i;
    }
  }
  std::uint32_t near = 0;
  std::uint64_t squares = 0;
  for (const std::size_t p : road_samples_) {
    const int d = luma_[p] - road_.luma;
    if (std::abs(d) > 24) continue;
    ++near;
    squares += static_cast<std::uint64_t>(d * d);
    ++red[red_[p]];
    ++blue[blue_[p]];
  }
  const float deviation = std::sqrt(static_cast<float>(squares) / static_cast<float>(std::max(near, 1U)));
  road_.tolerance = static_cast<int>(std::max(config_.road_luma_floor, config_.road_sigmas * deviation));
  road_.red = median_of(red, near);
  road_.blue = median_of(blue, near);
  road_.valid = 2 * std::size_t{near} >= road_samples_.size();
}

bool CameraClassical::is_road(std::size_t pixel) const {
  const int chroma = static_cast<int>(config_.road_chroma);
  return std::abs(luma_[pixel] - road_.luma) <= road_.tolerance && std::abs(red_[pixel] - road_.red) <= chroma &&
         std::abs(blue_[pixel] - road_.blue) <= chroma;
}

// Upward in each column: the first run of other colours that is higher than any marking stands on the road. A bumper
// as grey as the road may interrupt it.
void CameraClassical::find_feet(int part, int parts) {
  const Share columns = share_of(width_, part, parts);
  for (std::uint32_t u = columns.begin; u < columns.end; ++u) {
    foot_row_[u] = kNoFoot;
    if (!road_.valid || lowest_row_[u] == 0) continue;
    std::uint32_t foot = 0;   // where the run began
    std::uint32_t other = 0;  // pixels of other colours in it
    std::uint32_t gap = 0;    // road pixels since the last one
    for (std::uint32_t v = lowest_row_[u]; v > 0; --v) {
      if (is_road(at(u, v))) {
        ++gap;
        if (other > 0 && static_cast<float>(gap) > std::max(1.0F, config_.run_gap_m * row_scale_[foot])) other = 0;
        if (other == 0 && v < horizon_row_[u]) break;
        continue;
      }
      if (other == 0) {
        if (v < horizon_row_[u]) break;
        foot = v;
      }
      ++other;
      gap = 0;
      if (static_cast<float>(foot - v + 1) >= std::max(2.0F, config_.obstacle_height_m * row_scale_[foot])) {
        // A run that begins in the first row has no road below it: the column never saw the road.
        foot_row_[u] = foot == lowest_row_[u] ? kNoFoot : foot;
        break;
      }
    }
  }
}

// Runs of columns whose feet lie on one row within the slack. A few columns that see something else (a plate, a lamp)
// do not end a run that goes on behind them.
void CameraClassical::group_columns() {
  foot_count_ = 0;
  const float camera_height = view_.origin().z;
  std::uint32_t u = 0;
  while (u < width_) {
    if (foot_row_[u] == kNoFoot) {
      ++u;
      continue;
    }
    Foot foot{u, u, static_cast<float>(foot_row_[u])};
    const float scale = row_scale_[foot_row_[u]];
    const float slack = std::max(1.5F, config_.foot_slope * camera_height * scale);
    const auto reach = static_cast<std::uint32_t>(std::max(2.0F, config_.column_gap_m * scale));
    float sum = foot.row;
    std::uint32_t count = 1;
    for (std::uint32_t next = u + 1; next < width_ && next - foot.last <= reach; ++next) {
      if (foot_row_[next] == kNoFoot) continue;
      const auto row = static_cast<float>(foot_row_[next]);
      if (std::fabs(row - foot.row) > slack) continue;
      foot.last = next;
      sum += row;
      ++count;
      foot.row = sum / static_cast<float>(count);
    }
    feet_[foot_count_++] = foot;
    u = foot.last + 1;
  }
}

// Largest mean luminance step across a column within `reach` columns of `column`.
float CameraClassical::side_edge(std::uint32_t column, std::uint32_t reach, std::uint32_t top,
                                 std::uint32_t bottom) const {
  float best = 0;
  const std::uint32_t first = column > reach ? column - reach : 1;
  for (std::uint32_t u = std::max(first, 1U); u <= column + reach && u + 1 < width_; ++u) {
    int sum = 0;
    for (std::uint32_t v = top; v < bottom; ++v) sum += std::abs(luma_[at(u + 1, v)] - luma_[at(u - 1, v)]);
    best = std::max(best, static_cast<float>(sum) / static_cast<float>(bottom - top));
  }
  return best;
}

// Mean difference of mirrored pixels.
float CameraClassical::asymmetry(const Foot& foot, std::uint32_t top, std::uint32_t bottom) const {
  int sum = 0, count = 0;
  for (std::uint32_t v = top; v < bottom; ++v) {
    for (std::uint32_t i = 0; 2 * i < foot.last - foot.first; ++i, ++count) {
      sum += std::abs(luma_[at(foot.first + i, v)] - luma_[at(foot.last - i, v)]);
    }
  }
  return count == 0 ? 255.0F : static_cast<float>(sum) / static_cast<float>(count);
}

// False: no vehicle.
bool CameraClassical::judge(const Foot& foot, Object& o) const {
  const float middle = static_cast<float>(foot.first + foot.last) / 2;
  const auto ground = view_.ground(middle, foot.row, config_.range_max_m);
  if (!ground) return false;
  const auto depth = view_.pixel(*ground);
  if (!depth) return false;
  const float pixels_per_m = view_.focal() / depth->depth;
  const float width = static_cast<float>(foot.last - foot.first + 1) / pixels_per_m;
  if (width < config_.width_min_m || width > config_.side_width_max_m) return false;
  if (foot.first == 0 || foot.last + 1 == width_) return false;  // cut by the border: its width is unknown
  const bool from_side = width > config_.width_max_m;

  const auto bottom = static_cast<std::uint32_t>(foot.row + 0.5F);
  const auto rows = static_cast<std::uint32_t>(config_.vehicle_height_m * pixels_per_m);
  const std::uint32_t top = bottom > rows ? bottom - rows : 0;
  const std::uint32_t belt = bottom - std::min(bottom, (2 * rows) / 3);  // below the windows: the body itself
  if (bottom < belt + 3) return false;
  const auto reach = static_cast<std::uint32_t>(std::max(2.0F, config_.edge_reach_m * pixels_per_m));
  const float edge = (side_edge(foot.first, reach, belt, bottom) + side_edge(foot.last, reach, belt, bottom)) / 2;
  const float mirror = asymmetry(foot, belt, bottom);

  std::uint32_t dark = 0;  // of the lowest fifth of the height: shadow, tyres
  std::uint32_t low = 0;
  for (std::uint32_t v = bottom - std::min(bottom, rows / 5); v <= bottom && v < height_; ++v) {
    for (std::uint32_t u = foot.first; u <= foot.last; ++u, ++low) {
      if (luma_[at(u, v)] < road_.luma - road_.tolerance) ++dark;
    }
  }
  const float dark_share = low == 0 ? 0 : static_cast<float>(dark) / static_cast<float>(low);

  const float edge_cue = std::min(1.0F, edge / (2 * config_.edge_min));
  const float mirror_cue = from_side ? 0.5F : std::max(0.0F, 1 - mirror / config_.symmetry_max);
  o = {};
  o.score = 0.3F * edge_cue + 0.3F * mirror_cue + 0.4F * std::min(1.0F, 2 * dark_share);
  if (edge < config_.edge_min || o.score < config_.score_min) return false;

  o.object_class = ObjectClass::kVehicle;
  o.flags = kHasImageBox | kHasPosition;
  const auto scale = static_cast<float>(scale_);
  o.u0 = static_cast<float>(foot.first) * scale;
  o.u1 = static_cast<float>(foot.last + 1) * scale;
  o.v0 = static_cast<float>(top) * scale;
  o.v1 = static_cast<float>(bottom + 1) * scale;

  // The foot is the nearest side; the centre lies half of the hidden extent further along the ray.
  const Point3 eye = view_.origin();
  const float rx = ground->x - eye.x, ry = ground->y - eye.y;
  const float range = std::sqrt(rx * rx + ry * ry);
  const float hidden = (from_side ? config_.vehicle_width_m : config_.vehicle_length_m) / 2;
  o.x = ground->x + rx / range * hidden;
  o.y = ground->y + ry / range * hidden;
  o.z = config_.vehicle_height_m / 2;
  o.length = from_side ? width : config_.vehicle_length_m;
  o.width = from_side ? config_.vehicle_width_m : width;
  o.height = config_.vehicle_height_m;
  // One row is range^2 / (focal length * camera height) deep, one column range / focal length wide.
  const float along = range * range / (view_.focal() * eye.z) * config_.sigma_px;
  const float across = range / view_.focal() * config_.sigma_px;
  o.position_variance = (along * along + across * across) / 2 + hidden * hidden / 16;
  return true;
}

void CameraClassical::judge_and_write(StageJob& job) {
  std::size_t count = 0;
  for (std::uint32_t i = 0; i < foot_count_; ++i) {
    if (judge(feet_[i], objects_[count])) ++count;
  }
  job.repaired = !have_image_ && job.inputs[inputs_.sample].chunk;
  const std::uint32_t pixels = have_image_ ? width_ * height_ : 0;
  write_objects(job, {objects_.data(), count}, {pixels, 0, 0}, connections_, inputs_.sample, inputs_.ego);
}

// Road everywhere up to alternating posts: every column is scanned far up, every foot is judged.
void CameraClassical::adversarial_input(std::size_t input, std::uint32_t seed, transport::ChunkHeader& header,
                                        std::span<std::byte> payload) const {
  if (input != inputs_.sample) {
    write_ego_input(header, payload);
    return;
  }
  const std::uint64_t bytes = sensors::Image::bytes_for(image_width_, image_height_, 3);
  if (payload.size() < bytes) return;
  header.schema = sensors::kImageSchema;
  header.payload_bytes = bytes;
  header.capture_ns = header.arrival_ns = 0;
  auto& image = *reinterpret_cast<sensors::Image*>(payload.data());
  image = {};
  image.width = image_width_;
  image.height = image_height_;
  image.row_pitch = sensors::Image::pitch_for(image_width_, 3);
  SplitMix noise(seed);
  for (std::uint32_t v = 0; v < image_height_; ++v) {
    std::uint8_t* row = image.row(v);
    std::fill_n(row, image.row_pitch, std::uint8_t{0});
    const std::uint32_t work = std::min(v / scale_, height_ - 1);
    const float post = std::max(4.0F, 1.6F * row_scale_[work]);  // as wide as a vehicle
    for (std::uint32_t u = 0; u < image_width_; ++u) {
      const bool dark = row_scale_[work] > 0 && row_scale_[work] < view_.focal() / 12 &&
                        static_cast<std::uint32_t>(static_cast<float>(u / scale_) / post) % 2 == 0;
      const auto grey = static_cast<std::uint8_t>((dark ? 10 : 110) + noise.next() % 8);
      for (std::uint32_t c = 0; c < 3; ++c) row[3 * u + c] = grey;
    }
  }
}

}  // namespace

CameraConfig read_camera_config(const YamlNode& params) {
  CameraConfig c;
  read_parameter(params, "work_width_px", c.work_width_px, 64, 4096);
  read_parameter(params, "range_min_m", c.range_min_m, 1, 50);
  read_parameter(params, "range_max_m", c.range_max_m, 5, 200);
  read_parameter(params, "road_near_m", c.road_near_m, 1, 50);
  read_parameter(params, "road_far_m", c.road_far_m, 2, 100);
  read_parameter(params, "road_half_width_m", c.road_half_width_m, 0.2, 5);
  read_parameter(params, "road_sigmas", c.road_sigmas, 0.5, 20);
  read_parameter(params, "road_luma_floor", c.road_luma_floor, 1, 100);
  read_parameter(params, "road_chroma", c.road_chroma, 1, 100);
  read_parameter(params, "obstacle_height_m", c.obstacle_height_m, 0.1, 2);
  read_parameter(params, "run_gap_m", c.run_gap_m, 0, 1);
  read_parameter(params, "column_gap_m", c.column_gap_m, 0, 2);
  read_parameter(params, "edge_reach_m", c.edge_reach_m, 0, 2);
  read_parameter(params, "foot_slope", c.foot_slope, 0, 1);
  read_parameter(params, "width_min_m", c.width_min_m, 0.3, 5);
  read_parameter(params, "width_max_m", c.width_max_m, 0.5, 8);
  read_parameter(params, "side_width_max_m", c.side_width_max_m, 0.5, 30);
  read_parameter(params, "vehicle_height_m", c.vehicle_height_m, 0.5, 5);
  read_parameter(params, "vehicle_length_m", c.vehicle_length_m, 1, 20);
  read_parameter(params, "vehicle_width_m", c.vehicle_width_m, 0.5, 5);
  read_parameter(params, "edge_min", c.edge_min, 0, 255);
  read_parameter(params, "symmetry_max", c.symmetry_max, 1, 255);
  read_parameter(params, "score_min", c.score_min, 0, 1);
  read_parameter(params, "sigma_px", c.sigma_px, 0.1, 20);
  return c;
}

Result<std::unique_ptr<Stage>> create_camera_classical(const StageSpec& spec, const CameraConfig& config) {
  TAKT_ASSIGN(const DetectionInputs inputs, find_inputs(spec, sensors::SensorKind::kCamera));
  const sensors::RigSensor& sensor = *spec.inputs[inputs.sample].sensor;
  if (!sensor.camera || sensor.camera->width == 0 || sensor.camera->height == 0) {
    return fail(Code::kConfiguration, "stage '" + spec.name + "': camera '" + sensor.name +
                                          "' has no model; give its size and focal lengths");
  }
  std::uint32_t scale = std::max(1U, (sensor.camera->width + config.work_width_px / 2) / config.work_width_px);
  if (spec.variant == "lite") scale *= 2;
  if (sensor.camera->width < 32 * scale || sensor.camera->height < 32 * scale) {
    return fail(Code::kConfiguration, "stage '" + spec.name + "': camera '" + sensor.name +
                                          "' is smaller than 32 working pixels; use a larger image");
  }
  if (scale > 128) {
    return fail(Code::kConfiguration,
                "stage '" + spec.name + "': camera '" + sensor.name + "' is too large for work_width_px; raise it");
  }
  return std::make_unique<CameraClassical>(spec, inputs, config, scale);
}

}  // namespace takt::pipeline
