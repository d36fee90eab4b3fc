#include "sensors/sim/world.h"

#include <algorithm>
#include <cmath>

#include "kernels/reference/elementary.h"

namespace takt::sensors::sim {
namespace {

void turn(Motion* motion, double yaw) {
  motion->yaw = kernels::wrap_angle(yaw);
  motion->cosine = kernels::cos(motion->yaw);
  motion->sine = kernels::sin(motion->yaw);
}

// Distance covered and speed after t of constant acceleration, standing still once the speed has reached zero.
struct Travel {
  double distance = 0, speed = 0;
};
Travel travel(double speed, double acceleration, double t) {
  if (acceleration < 0) t = std::min(t, speed / -acceleration);
  return {speed * t + 0.5 * acceleration * t * t, speed + acceleration * t};
}

// Motion along the road: heading relative to it, `rate` = signed speed of the station's own direction.
Motion along_road(const Road& road, double station, double offset, double heading, double forward, double across) {
  const RoadPoint point = road.at(station);
  Motion motion;
  const double c = kernels::cos(point.heading);
  const double s = kernels::sin(point.heading);
  motion.position = {point.x - offset * s, point.y + offset * c, 0};
  motion.velocity = {forward * c - across * s, forward * s + across * c, 0};
  motion.yaw_rate = point.curvature * forward / (1 - point.curvature * offset);
  turn(&motion, point.heading + heading);
  return motion;
}

double ground_height(const Road& road, double offset) { return std::fabs(offset) > road.edge() ? Road::kKerb : 0.0; }

Motion place(const Road& road, double station, double offset) {
  Motion motion = along_road(road, station, offset, 0, 0, 0);
  motion.position.z = ground_height(road, offset);
  return motion;
}

Surface ground_surface(const Road& road, RoadCoordinates at) {
  const double d = std::fabs(at.offset);
  if (d > road.edge()) return Surface::kPavement;
  for (const double crossing : road.crossings) {
    if (std::fabs(at.station - crossing) < 1.6) {
      const double stripe = at.offset - std::floor(at.offset);
      return stripe < 0.5 ? Surface::kMarking : Surface::kAsphalt;
    }
  }
  if (d < 0.07) {
    const double dash = at.station / 7.5 - std::floor(at.station / 7.5);
    return dash < 0.45 ? Surface::kMarking : Surface::kAsphalt;
  }
  return std::fabs(d - road.lane_width) < 0.06 ? Surface::kMarking : Surface::kAsphalt;
}

}  // namespace

World::World(const Scene& scene) : scene_(scene) {
  for (const Actor& item : scene_.actors) shapes_.push_back(shape_of(item));
  for (const Building& item : scene_.buildings) {
    shapes_.push_back(shape_of(item));
    Motion motion = place(scene_.road, item.station, item.offset);
    motion.position.z = 0;
    fixed_.push_back(motion);
  }
  for (const Plant& item : scene_.plants) {
    shapes_.push_back(shape_of(item));
    fixed_.push_back(place(scene_.road, item.station, item.offset));
  }
  for (const Lamp& item : scene_.lamps) {
    shapes_.push_back(shape_of(item));
    fixed_.push_back(place(scene_.road, item.station, item.offset));
  }
}

Motion World::ego(double t) const {
  const Travel way = travel(scene_.ego_speed, scene_.ego_acceleration, t);
  const RoadPoint start = scene_.road.at(scene_.ego_station);
  // The station moves faster than the vehicle on the inside of a bend. Exact while the bend's curvature is constant.
  const double stretch = 1 - start.curvature * scene_.ego_offset;
  return along_road(scene_.road, scene_.ego_station + way.distance / stretch, scene_.ego_offset, 0, way.speed, 0);
}

Motion World::actor(std::size_t index, double t) const {
  const Actor& actor = scene_.actors[index];
  const Travel way = travel(actor.speed, actor.acceleration, t);
  const RoadPoint start = scene_.road.at(actor.station);
  const double stretch = 1 - start.curvature * actor.offset;
  const double direction = kernels::cos(actor.heading);  // of the station
  const double offset = actor.offset + actor.across_speed * t;
  double heading = actor.heading;
  if (actor.kind == ActorKind::kPedestrian && actor.across_speed != 0) {
    heading = kernels::atan2(actor.across_speed, actor.speed * direction);
  }
  Motion motion = along_road(scene_.road, actor.station + direction * way.distance / stretch, offset, heading,
                             direction * way.speed, actor.across_speed);
  motion.position.z = actor.kind == ActorKind::kPedestrian ? ground_height(scene_.road, offset) : 0.0;
  constexpr double kStride = 1.5;  // m per full cycle of the legs
  const double walked = std::sqrt(way.distance * way.distance + actor.across_speed * t * actor.across_speed * t);
  motion.gait = 2 * kernels::kPi * (walked / kStride + 0.37 * static_cast<double>(actor.id));
  return motion;
}

void World::pose(double t, std::vector<Motion>* out) const {
  out->resize(shapes_.size());
  for (std::size_t i = 0; i < scene_.actors.size(); ++i) (*out)[i] = actor(i, t);
  std::copy(fixed_.begin(), fixed_.end(), out->begin() + static_cast<std::ptrdiff_t>(scene_.actors.size()));
}

bool cast_object(const World& world, std::int32_t object, const Motion& motion, const Ray& ray, Hit* hit) {
  const Ray local{motion.to_local(ray.origin), motion.rotate_back(ray.direction)};
  ShapeHit best;
  best.range = hit->range;
  if (!cast(world.shapes()[static_cast<std::size_t>(object)], local, motion.gait, &best)) return false;
  hit->range = best.range;
  hit->object = object;
  hit->local = best;
  return true;
}

bool cast_ground(const World& world, const Ray& ray, Hit* hit) {
  if (ray.direction.z >= 0) return false;
  const Road& road = world.scene().road;
  const double high = (ray.origin.z - Road::kKerb) / -ray.direction.z;  // where it meets the pavement's height
  const double low = ray.origin.z / -ray.direction.z;                   // and the road's
  if (high <= 0 || high >= hit->range) return false;
  auto at = [&](double range) {
    const Vec3 p = ray.origin + ray.direction * range;
    return road.locate(p.x, p.y);
  };
  const RoadCoordinates on_high = at(high);
  if (std::fabs(on_high.offset) > road.edge()) {
    hit->range = high;
    hit->road = on_high;
    hit->surface = Surface::kPavement;
    hit->normal = {0, 0, 1};
  } else {
    if (low >= hit->range) return false;
    const RoadCoordinates on_low = at(low);
    if (std::fabs(on_low.offset) <= road.edge()) {
      hit->range = low;
      hit->road = on_low;
      hit->surface = ground_surface(road, on_low);
      hit->normal = {0, 0, 1};
    } else {  // between both heights it crossed the kerb's face
      const double a = road.edge() - std::fabs(on_high.offset);
      const double b = std::fabs(on_low.offset) - road.edge();
      hit->range = high + (low - high) * a / (a + b);
      if (hit->range >= low) hit->range = low;
      hit->road = at(hit->range);
      hit->surface = Surface::kKerb;
      const RoadPoint point = road.at(hit->road.station);
      const double inward = hit->road.offset > 0 ? -1.0 : 1.0;
      hit->normal = {-inward * kernels::sin(point.heading), inward * kernels::cos(point.heading), 0};
    }
  }
  hit->object = Hit::kGround;
  return true;
}

Hit cast_all(const World& world, const std::vector<Motion>& motions, const Ray& ray, double maximum) {
  Hit hit;
  hit.range = maximum;
  cast_ground(world, ray, &hit);
  for (std::size_t i = 0; i < motions.size(); ++i) {
    cast_object(world, static_cast<std::int32_t>(i), motions[i], ray, &hit);
  }
  if (hit.object != Hit::kNothing) hit.point = ray.origin + ray.direction * hit.range;
  return hit;
}

void resolve(const World& world, const std::vector<Motion>& motions, Hit* hit) {
  if (hit->object < 0) return;
  const auto index = static_cast<std::size_t>(hit->object);
  hit->surface = surface_at(world.shapes()[index], hit->local);
  hit->normal = motions[index].rotate(hit->local.normal);
}

double reflectivity(const World& world, const Hit& hit) {
  switch (hit.surface) {
    case Surface::kSky: return 0;
    case Surface::kAsphalt: return 0.14;
    case Surface::kMarking: return 0.75;
    case Surface::kPavement: return 0.28;
    case Surface::kKerb: return 0.32;
    case Surface::kGlass: return 0.03;
    case Surface::kTyre: return 0.05;
    case Surface::kRim: return 0.5;
    case Surface::kTrim: return 0.08;
    case Surface::kHeadlight: return 0.9;
    case Surface::kTaillight: return 1.2;
    case Surface::kPlate: return 2.0;
    case Surface::kWindow: return 0.05;
    case Surface::kShopfront: return 0.05;
    case Surface::kRoof: return 0.2;
    case Surface::kBark: return 0.3;
    case Surface::kFoliage: return 0.45;
    case Surface::kMetal: return 0.5;
    case Surface::kTrousers: return 0.3;
    case Surface::kSkin: return 0.5;
    case Surface::kHair: return 0.2;
    case Surface::kPaint:
    case Surface::kWall:
    case Surface::kCloth: {
      const Vec3 c = world.shapes()[static_cast<std::size_t>(hit.object)].colour;
      return 0.10 + 0.75 * (c.x + c.y + c.z) / 3;
    }
  }
  return 0;
}

SensorPose sensor_pose(const Motion& vehicle, const Transform& mount) {
  SensorPose pose;
  pose.origin = vehicle.to_world({mount.translation[0], mount.translation[1], mount.translation[2]});
  const std::array<double, 9>& r = mount.rotation;
  for (std::size_t column = 0; column < 3; ++column) {
    const Vec3 v = vehicle.rotate({r[column], r[3 + column], r[6 + column]});
    pose.rotation[column] = v.x;
    pose.rotation[3 + column] = v.y;
    pose.rotation[6 + column] = v.z;
  }
  return pose;
}

}  // namespace takt::sensors::sim
