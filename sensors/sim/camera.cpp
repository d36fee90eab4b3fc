#include "sensors/sim/camera.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "kernels/reference/elementary.h"
#include "sensors/sim/random.h"

namespace takt::sensors::sim {
namespace {

constexpr std::uint64_t kPixelNoise = 401;
constexpr double kHaze = 1.0 / 700.0;  // 1/m
constexpr double kFarthest = 600.0;    // m
constexpr std::uint32_t kTile = 16;    // pixels

// Smooth noise in [0, 1) from random values on a unit lattice.
double value_noise(double x, double y, std::uint64_t seed) {
  const double fx = std::floor(x);
  const double fy = std::floor(y);
  const auto ix = static_cast<std::uint64_t>(static_cast<std::int64_t>(fx));
  const auto iy = static_cast<std::uint64_t>(static_cast<std::int64_t>(fy));
  auto corner = [&](std::uint64_t dx, std::uint64_t dy) {
    return to_unit(mix((ix + dx) * 0x9E3779B97F4A7C15ULL + mix((iy + dy) * 0xC2B2AE3D27D4EB4FULL + seed)));
  };
  double u = x - fx;
  double v = y - fy;
  u = u * u * (3 - 2 * u);
  v = v * v * (3 - 2 * v);
  const double bottom = corner(0, 0) + u * (corner(1, 0) - corner(0, 0));
  const double top = corner(0, 1) + u * (corner(1, 1) - corner(0, 1));
  return bottom + v * (top - bottom);
}

double fractal_noise(double x, double y, std::uint64_t seed, int octaves) {
  double sum = 0;
  double weight = 0.5;
  double total = 0;
  for (int i = 0; i < octaves; ++i) {
    sum += weight * value_noise(x, y, seed + static_cast<std::uint64_t>(i));
    total += weight;
    weight *= 0.5;
    x = 2 * x + 17.3;
    y = 2 * y + 9.1;
  }
  return sum / total;
}

double clamp01(double x) { return x < 0 ? 0 : (x > 1 ? 1 : x); }
double step(double from, double to, double x) {
  const double t = clamp01((x - from) / (to - from));
  return t * t * (3 - 2 * t);
}

// Objects by the ground cell that their shadow or their footprint covers, the shadow thrown along the sun onto z = 0:
// a point can only be shaded by what lies in the cell of its own projection.
class ShadowGrid {
 public:
  void build(const World& world, const std::vector<Motion>& motions, Vec3 centre, Vec3 sun) {
    sun_ = sun;
    origin_x_ = centre.x - kCells * kCell / 2;
    origin_y_ = centre.y - kCells * kCell / 2;
    for (auto& cell : cells_) cell.clear();
    for (std::size_t i = 0; i < motions.size(); ++i) {
      const Shape& shape = world.shapes()[i];
      double low_x = 1e300, low_y = 1e300, high_x = -1e300, high_y = -1e300;
      for (int corner = 0; corner < 8; ++corner) {
        const Vec3 local{(corner & 1) != 0 ? shape.high.x : shape.low.x, (corner & 2) != 0 ? shape.high.y : shape.low.y,
                         (corner & 4) != 0 ? shape.high.z : shape.low.z};
        const Vec3 p = project(motions[i].to_world(local));
        low_x = std::min(low_x, p.x);
        low_y = std::min(low_y, p.y);
        high_x = std::max(high_x, p.x);
        high_y = std::max(high_y, p.y);
      }
      constexpr double kMargin = 0.8;  // for the soft darkness around the footprint
      const int x0 = std::max(0, index(low_x - kMargin - origin_x_));
      const int x1 = std::min(kCells - 1, index(high_x + kMargin - origin_x_));
      const int y0 = std::max(0, index(low_y - kMargin - origin_y_));
      const int y1 = std::min(kCells - 1, index(high_y + kMargin - origin_y_));
      for (int y = y0; y <= y1; ++y) {
        for (int x = x0; x <= x1; ++x) {
          cells_[static_cast<std::size_t>(y * kCells + x)].push_back(static_cast<std::int32_t>(i));
        }
      }
    }
  }
  [[nodiscard]] const std::vector<std::int32_t>& near(Vec3 point) const {
    static const std::vector<std::int32_t> kNone;
    const Vec3 p = project(point);
    const int x = index(p.x - origin_x_);
    const int y = index(p.y - origin_y_);
    if (x < 0 || y < 0 || x >= kCells || y >= kCells) return kNone;
    return cells_[static_cast<std::size_t>(y * kCells + x)];
  }

 private:
  static constexpr int kCells = 100;
  static constexpr double kCell = 4.0;  // m
  static int index(double metres) {
    return static_cast<int>(std::floor(std::max(-1e6, std::min(1e6, metres / kCell))));
  }
  [[nodiscard]] Vec3 project(Vec3 p) const { return p - sun_ * (p.z / sun_.z); }
  Vec3 sun_{0, 0, 1};
  double origin_x_ = 0, origin_y_ = 0;
  std::vector<std::vector<std::int32_t>> cells_{static_cast<std::size_t>(kCells * kCells)};
};

// Linear radiance to 8 bits: a soft shoulder, then the display's gamma.
class ToneCurve {
 public:
  explicit ToneCurve(double exposure) {
    for (std::size_t i = 0; i < table_.size(); ++i) {
      const double x = (static_cast<double>(i) + 0.5) / kPerUnit * exposure;
      const double shoulder = 1 - kernels::exp(-1.9 * x);
      table_[i] = 255 * kernels::exp(kernels::log(std::max(shoulder, 1e-6)) / 2.2);
    }
  }
  [[nodiscard]] double operator()(double linear) const {
    const double i = std::max(0.0, linear) * kPerUnit;
    return table_[i < static_cast<double>(table_.size() - 1) ? static_cast<std::size_t>(i) : table_.size() - 1];
  }

 private:
  static constexpr double kPerUnit = 4096;
  std::array<double, 4 * 4096> table_{};
};

}  // namespace

struct Camera::State {
  State(const World& world_, const RigSensor& sensor_)
      : world(world_), sensor(sensor_), model(*sensor_.camera), tone(world_.scene().camera.exposure) {
    const Scene& scene = world.scene();
    const double c = kernels::cos(scene.sun_elevation);
    sun = {c * kernels::cos(scene.sun_azimuth), c * kernels::sin(scene.sun_azimuth), kernels::sin(scene.sun_elevation)};
    for (const double k : model.distortion) distorted = distorted || k != 0;
    tiles_x = (model.width + kTile - 1) / kTile;
    tiles_y = (model.height + kTile - 1) / kTile;
    tiles.resize(std::size_t{tiles_x} * tiles_y);
    const std::size_t pixels = std::size_t{model.width} * model.height;
    colours.resize(pixels);
    labels.resize(pixels);
    bytes.resize(pixels * 3);
  }

  // Unit ray of a picture position (pixel centres at whole numbers) in the camera frame.
  [[nodiscard]] Vec3 direction(double u, double v) const {
    const double dx = (u - model.cx) / model.fx;
    const double dy = (v - model.cy) / model.fy;
    double x = dx;
    double y = dy;
    if (distorted) {
      // Inverse of the plumb_bob model by fixed-point iteration.
      const auto& k = model.distortion;
      for (int i = 0; i < 12; ++i) {
        const double r2 = x * x + y * y;
        const double radial = 1 + r2 * (k[0] + r2 * (k[1] + r2 * k[4]));
        const double tx = 2 * k[2] * x * y + k[3] * (r2 + 2 * x * x);
        const double ty = k[2] * (r2 + 2 * y * y) + 2 * k[3] * x * y;
        x = (dx - tx) / radial;
        y = (dy - ty) / radial;
      }
    }
    return unit({x, y, 1});
  }

  // Lists the objects that each tile may show.
  void fill_tiles() {
    for (auto& tile : tiles) tile.clear();
    for (std::size_t i = 0; i < motions.size(); ++i) {
      const Shape& shape = world.shapes()[i];
      double u0 = 1e9, v0 = 1e9, u1 = -1e9, v1 = -1e9;
      int behind = 0;
      for (int corner = 0; corner < 8; ++corner) {
        const Vec3 local{(corner & 1) != 0 ? shape.high.x : shape.low.x, (corner & 2) != 0 ? shape.high.y : shape.low.y,
                         (corner & 4) != 0 ? shape.high.z : shape.low.z};
        const Vec3 p = pose.rotate_back(motions[i].to_world(local) - pose.origin);
        if (p.z < 0.05) {
          ++behind;
          continue;
        }
        const double u = model.fx * p.x / p.z + model.cx;
        const double v = model.fy * p.y / p.z + model.cy;
        u0 = std::min(u0, u);
        v0 = std::min(v0, v);
        u1 = std::max(u1, u);
        v1 = std::max(v1, v);
      }
      if (behind == 8) continue;
      if (behind > 0 || distorted) {
        u0 = v0 = 0;
        u1 = model.width;
        v1 = model.height;
      }
      if (u1 < -2 || v1 < -2 || u0 > model.width + 2 || v0 > model.height + 2) continue;
      auto tile = [](double pixel, std::uint32_t count) {
        const double t = std::floor(pixel / kTile);
        return static_cast<std::uint32_t>(std::max(0.0, std::min(t, static_cast<double>(count) - 1)));
      };
      for (std::uint32_t ty = tile(v0 - 2, tiles_y); ty <= tile(v1 + 2, tiles_y); ++ty) {
        for (std::uint32_t tx = tile(u0 - 2, tiles_x); tx <= tile(u1 + 2, tiles_x); ++tx) {
          tiles[std::size_t{ty} * tiles_x + tx].push_back(static_cast<std::int32_t>(i));
        }
      }
    }
  }

  Hit trace(const Ray& ray, std::uint32_t x, std::uint32_t y) const {
    Hit hit;
    hit.range = kFarthest;
    cast_ground(world, ray, &hit);
    for (const std::int32_t i : tiles[std::size_t{y / kTile} * tiles_x + x / kTile]) {
      cast_object(world, i, motions[static_cast<std::size_t>(i)], ray, &hit);
    }
    if (hit.object == Hit::kNothing) return hit;
    hit.point = ray.origin + ray.direction * hit.range;
    resolve(world, motions, &hit);
    return hit;
  }

  // Share of the sun that reaches a point, and of the sky (1 far from vehicles, small beneath them).
  struct Light {
    double sun = 1;
    double sky = 1;
  };
  [[nodiscard]] Light light_at(const Hit& hit) const {
    Light light;
    const double facing = dot(hit.normal, sun);
    const Ray ray{hit.point + hit.normal * 0.01, sun};
    for (const std::int32_t i : shadows.near(hit.point)) {
      const auto index = static_cast<std::size_t>(i);
      if (facing > 0 && light.sun > 0) {
        Hit blocker;
        if (cast_object(world, i, motions[index], ray, &blocker)) light.sun = 0;
      }
      const Shape& shape = world.shapes()[index];
      if (hit.object == Hit::kGround && shape.kind <= ShapeKind::kPedestrian) {
        const Vec3 local = motions[index].to_local(hit.point);
        const double scale = shape.kind == ShapeKind::kPedestrian ? 0.5 : 1.0;
        const double dx = std::max(0.0, std::fabs(local.x) - scale * (shape.size.x / 2 - 0.1));
        const double dy = std::max(0.0, std::fabs(local.y) - scale * (shape.size.y / 2 - 0.1));
        light.sky *= 1 - 0.82 / (1 + (dx * dx + dy * dy) * 9);
      }
    }
    return light;
  }

  // What a mirror would see: sky above, a street's dim fronts near the horizon, asphalt below.
  [[nodiscard]] Vec3 surroundings(Vec3 direction) const {
    const Vec3 below{0.09, 0.09, 0.09};
    const Vec3 fronts{0.22, 0.20, 0.18};
    if (direction.z < 0) return lerp(fronts, below, clamp01(-direction.z * 5));
    return lerp(fronts, sky(direction, false), step(0.22, 0.42, direction.z));
  }

  [[nodiscard]] Vec3 sky(Vec3 direction, bool clouds) const {
    const double up = clamp01(direction.z);
    Vec3 colour = lerp(Vec3{0.62, 0.70, 0.80}, Vec3{0.16, 0.32, 0.66}, step(0, 0.75, up));
    if (clouds && up > 0.01) {
      const double scale = 1.6 / (up + 0.12);
      const double density = fractal_noise(direction.x * scale + 3, direction.y * scale, 71, 5);
      colour = lerp(colour, Vec3{0.92, 0.93, 0.95}, step(0.48, 0.72, density) * step(0.01, 0.2, up));
    }
    double glow = std::max(0.0, dot(direction, sun));
    for (int i = 0; i < 5; ++i) glow *= glow;  // to the 32nd
    return colour + Vec3{0.5, 0.42, 0.3} * glow;
  }

  // Mirror share of the outermost layer (Schlick 1994) and its colour.
  [[nodiscard]] Vec3 glossy(Vec3 base, const Hit& hit, const Ray& ray, double at_normal, double shade) const {
    const double cosine = std::max(0.0, -dot(hit.normal, ray.direction));
    const double edge = 1 - cosine;
    const double share = at_normal + (1 - at_normal) * edge * edge * edge * edge * edge;
    const Vec3 mirrored = ray.direction - hit.normal * (2 * dot(hit.normal, ray.direction));
    double spot = std::max(0.0, dot(mirrored, sun));
    for (int i = 0; i < 7; ++i) spot *= spot;  // to the 128th
    return lerp(base, surroundings(mirrored), share) + Vec3{1, 0.95, 0.85} * (spot * 2.5 * shade);
  }

  // Reflectance of what is not glossy.
  [[nodiscard]] Vec3 reflectance(const Hit& hit) const {
    const Vec3 p = hit.point;
    const double near = 1 / (1 + hit.range * hit.range / 150);  // fine grain fades before it would flicker
    switch (hit.surface) {
      case Surface::kAsphalt:
      case Surface::kMarking: {
        const double patches = fractal_noise(p.x * 0.35, p.y * 0.35, 11, 3) - 0.5;
        const double grain = near * (value_noise(p.x * 28, p.y * 28, 12) - 0.5);
        const double lane = std::fabs(std::fabs(hit.road.offset) - world.scene().road.lane_width / 2);
        const double track = 0.012 * step(0.45, 0.1, std::fabs(lane - 0.8));
        if (hit.surface == Surface::kMarking) {
          const double worn = step(0.25, 0.45, fractal_noise(p.x * 1.3, p.y * 1.3, 13, 3));
          return lerp(Vec3{0.16, 0.16, 0.16}, Vec3{0.68, 0.68, 0.66}, worn) * (1 + 0.2 * grain);
        }
        const double tar = 0.115 + 0.05 * patches + 0.06 * grain - track;
        return {tar, tar, tar * 1.03};
      }
      case Surface::kPavement: {
        const double s = hit.road.station / 0.9;
        const double d = hit.road.offset / 0.9;
        const double joint = std::min(std::fabs(s - std::floor(s + 0.5)), std::fabs(d - std::floor(d + 0.5)));
        const double slab = to_unit(bits(14, static_cast<std::uint64_t>(static_cast<std::int64_t>(std::floor(s))),
                                         static_cast<std::uint64_t>(static_cast<std::int64_t>(std::floor(d)))));
        const double fade = 1 / (1 + hit.range * hit.range / 600);
        double tone_ = 0.27 + 0.05 * (slab - 0.5) * fade + 0.05 * (fractal_noise(p.x * 0.5, p.y * 0.5, 15, 3) - 0.5);
        tone_ += 0.05 * near * (value_noise(p.x * 30, p.y * 30, 16) - 0.5);
        if (joint < 0.02) tone_ *= 1 - 0.45 * fade;
        return {tone_, tone_ * 0.98, tone_ * 0.94};
      }
      case Surface::kKerb: return {0.36, 0.36, 0.35};
      case Surface::kTyre: return {0.022, 0.022, 0.024};
      case Surface::kRim: {
        const double spoke = value_noise(hit.local.point.x * 9, hit.local.point.z * 9, 17);
        return Vec3{0.38, 0.39, 0.41} * (0.55 + 0.6 * spoke);
      }
      case Surface::kTrim: return {0.03, 0.03, 0.033};
      case Surface::kPlate: return {0.75, 0.75, 0.70};
      case Surface::kRoof: return {0.2, 0.19, 0.18};
      case Surface::kBark: return {0.14, 0.10, 0.07};
      case Surface::kMetal: return {0.28, 0.29, 0.30};
      case Surface::kTrousers: {
        const std::uint64_t look = shape(hit).look;
        return look % 3 == 0 ? Vec3{0.05, 0.06, 0.11} : (look % 3 == 1 ? Vec3{0.06, 0.06, 0.06} : Vec3{0.2, 0.16, 0.1});
      }
      case Surface::kSkin: return {0.50, 0.33, 0.25};
      case Surface::kHair: return {0.06, 0.04, 0.03};
      case Surface::kCloth: return shape(hit).colour;
      case Surface::kFoliage: {
        const Vec3 q = hit.local.point;
        const double leaves = fractal_noise(q.x * 5 + q.z * 3, q.y * 5 + q.z * 4, shape(hit).look, 3);
        return shape(hit).colour * (0.35 + 1.4 * leaves);
      }
      case Surface::kWall: {
        const Vec3 q = hit.local.point;
        const double along = std::fabs(hit.local.normal.x) > 0.5 ? q.y : q.x;
        const double stain = fractal_noise(along * 0.4, q.z * 0.4, shape(hit).look, 4);
        Vec3 wall = shape(hit).colour * (0.82 + 0.36 * stain);
        if (shape(hit).kind != ShapeKind::kBuilding) {  // the cargo box of a truck, every other one white
          return (shape(hit).look & 1) != 0 ? lerp(wall, Vec3{0.68, 0.68, 0.66}, 0.9) : wall;
        }
        if (q.z < 3.6 && q.z > 3.0) {  // sign boards above the shops
          const std::uint64_t board = bits(shape(hit).look, 3);
          wall = Vec3{to_unit(mix(board)), to_unit(mix(board + 1)), to_unit(mix(board + 2))} * 0.45;
        }
        return q.z < 0.5 ? wall * 0.6 : wall;
      }
      default: return {0.5, 0.5, 0.5};
    }
  }

  [[nodiscard]] const Shape& shape(const Hit& hit) const {
    return world.shapes()[static_cast<std::size_t>(hit.object)];
  }

  [[nodiscard]] Vec3 radiance(const Ray& ray, Hit* hit) const {
    if (hit->object == Hit::kNothing) return sky(ray.direction, true);
    if (hit->surface == Surface::kFoliage) {  // leaves stand in all directions
      const Vec3 q = hit->local.point;
      hit->normal =
          unit(hit->normal + Vec3{value_noise(q.x * 6, q.z * 6, 21) - 0.5, value_noise(q.y * 6, q.z * 6, 22) - 0.5,
                                  value_noise(q.x * 6, q.y * 6, 23) - 0.5} *
                                 1.6);
    }
    const Light light = light_at(*hit);
    const Vec3 sunlight = Vec3{1.70, 1.55, 1.28} * (light.sun * std::max(0.0, dot(hit->normal, sun)));
    const Vec3 skylight = Vec3{0.30, 0.35, 0.43} * (light.sky * (0.62 + 0.38 * hit->normal.z)) +
                          Vec3{0.07, 0.065, 0.06} * (1 - hit->normal.z);
    const Vec3 incoming = sunlight + skylight;
    Vec3 colour;
    switch (hit->surface) {
      case Surface::kPaint: colour = glossy(shape(*hit).colour * incoming, *hit, ray, 0.05, light.sun); break;
      case Surface::kGlass: colour = glossy(Vec3{0.018, 0.022, 0.024} * incoming, *hit, ray, 0.10, light.sun); break;
      case Surface::kWindow: {
        const Vec3 q = hit->local.point;
        const auto cell = [](double v) { return static_cast<std::uint64_t>(static_cast<std::int64_t>(std::floor(v))); };
        const double blind = to_unit(bits(shape(*hit).look, cell((q.x + q.y) / 2.4), cell((q.z - 3.6) / 3.1)));
        const Vec3 room = blind < 0.3 ? Vec3{0.30, 0.28, 0.24} * incoming : Vec3{0.03, 0.035, 0.04};
        colour = glossy(room, *hit, ray, 0.12, light.sun);
        break;
      }
      case Surface::kShopfront: {
        const double warm = fractal_noise(hit->local.point.x * 1.1, hit->local.point.z * 1.3, shape(*hit).look, 3);
        colour = glossy(lerp(Vec3{0.03, 0.03, 0.03}, Vec3{0.38, 0.27, 0.15}, warm * warm), *hit, ray, 0.10, light.sun);
        break;
      }
      case Surface::kHeadlight: colour = Vec3{0.55, 0.55, 0.52} * incoming + Vec3{0.35, 0.35, 0.33}; break;
      case Surface::kTaillight: colour = Vec3{0.45, 0.02, 0.02} * incoming + Vec3{0.16, 0.005, 0.005}; break;
      default: colour = reflectance(*hit) * incoming; break;
    }
    const double clear = kernels::exp(-hit->range * kHaze);
    return lerp(Vec3{0.60, 0.67, 0.76}, colour, clear);
  }

  void render(std::uint64_t index, double t) {
    world.pose(t, &motions);
    pose = sensor_pose(world.ego(t), sensor.vehicle_from_sensor);
    fill_tiles();
    shadows.build(world, motions, pose.origin, sun);
    for (std::uint32_t y = 0; y < model.height; ++y) {
      for (std::uint32_t x = 0; x < model.width; ++x) {
        const Ray ray{pose.origin, pose.rotate(direction(x, y))};
        Hit hit = trace(ray, x, y);
        const std::size_t i = std::size_t{y} * model.width + x;
        // Neighbours with different labels get more rays: another object, part, face or surface.
        labels[i] = (static_cast<std::uint32_t>(hit.object + 2) << 16 | hit.local.part << 12 | hit.local.face << 8 |
                     static_cast<std::uint32_t>(hit.surface));
        colours[i] = radiance(ray, &hit);
      }
    }
    for (std::uint32_t y = 0; y < model.height; ++y) {
      for (std::uint32_t x = 0; x < model.width; ++x) {
        const std::size_t i = std::size_t{y} * model.width + x;
        const bool edge = (x > 0 && labels[i - 1] != labels[i]) ||
                          (x + 1 < model.width && labels[i + 1] != labels[i]) ||
                          (y > 0 && labels[i - model.width] != labels[i]) ||
                          (y + 1 < model.height && labels[i + model.width] != labels[i]);
        write_pixel(index, i, edge ? refined(x, y) : display(colours[i]));
      }
    }
  }

  // 8-bit levels of a linear colour, still as real numbers.
  [[nodiscard]] Vec3 display(Vec3 linear) const { return {tone(linear.x), tone(linear.y), tone(linear.z)}; }

  // Mean of four rays on a rotated grid, taken in display space so that bright edges stay smooth.
  [[nodiscard]] Vec3 refined(std::uint32_t x, std::uint32_t y) const {
    static constexpr double kOffsets[4][2] = {{-0.125, -0.375}, {0.375, -0.125}, {0.125, 0.375}, {-0.375, 0.125}};
    Vec3 sum;
    for (const auto& offset : kOffsets) {
      const Ray ray{pose.origin, pose.rotate(direction(x + offset[0], y + offset[1]))};
      Hit hit = trace(ray, x, y);
      sum = sum + display(radiance(ray, &hit));
    }
    return sum * 0.25;
  }

  void write_pixel(std::uint64_t index, std::size_t i, Vec3 levels) {
    // Sums of three 7-bit numbers are close enough to normal noise: mean 190.5, standard deviation 63.998.
    const std::uint64_t random = bits(world.scene().seed, kPixelNoise, index, i);
    const double channels[3] = {levels.x, levels.y, levels.z};
    for (std::size_t c = 0; c < 3; ++c) {
      const std::uint64_t r = random >> (21 * c);
      const double sum = static_cast<double>((r & 127) + (r >> 7 & 127) + (r >> 14 & 127));
      const double level = channels[c] + world.scene().camera.noise * (sum - 190.5) / 63.998;
      bytes[3 * i + c] = static_cast<std::uint8_t>(std::max(0.0, std::min(255.0, std::floor(level + 0.5))));
    }
  }

  const World& world;
  const RigSensor& sensor;
  const CameraModel& model;
  ToneCurve tone;
  Vec3 sun;
  bool distorted = false;
  std::uint32_t tiles_x = 0, tiles_y = 0;
  std::vector<std::vector<std::int32_t>> tiles;
  std::vector<Vec3> colours;
  std::vector<std::uint32_t> labels;
  std::vector<std::uint8_t> bytes;
  std::vector<Motion> motions;
  SensorPose pose;
  ShadowGrid shadows;
};

Camera::Camera(const World& world, const RigSensor& sensor) : state_(std::make_unique<State>(world, sensor)) {}
Camera::~Camera() = default;

const std::vector<std::uint8_t>& Camera::render(std::uint64_t index, double t) {
  state_->render(index, t);
  return state_->bytes;
}

}  // namespace takt::sensors::sim
