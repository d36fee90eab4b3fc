#include "sensors/sim/shape.h"

#include <algorithm>
#include <cmath>

#include "kernels/reference/elementary.h"

namespace takt::sensors::sim {
namespace {

Vec3 minimum(Vec3 a, Vec3 b) { return {std::min(a.x, b.x), std::min(a.y, b.y), std::min(a.z, b.z)}; }
Vec3 maximum(Vec3 a, Vec3 b) { return {std::max(a.x, b.x), std::max(a.y, b.y), std::max(a.z, b.z)}; }

Part box(Surface surface, Vec3 low, Vec3 high) {
  Part part;
  part.surface = surface;
  part.low = low;
  part.high = high;
  part.planes = {{{1, 0, 0}, high.x},  {{-1, 0, 0}, -low.x}, {{0, 1, 0}, high.y},
                 {{0, -1, 0}, -low.y}, {{0, 0, 1}, high.z},  {{0, 0, -1}, -low.z}};
  return part;
}

// Replaces a face of a box by the plane through two points of its profile in the x-z plane (walls of any y), or adds
// one. The outside lies to the left of a -> b seen from -y, so profiles run counter-clockwise from nose over roof.
Plane slope_xz(double ax, double az, double bx, double bz) {
  const Vec3 normal = unit({bz - az, 0, ax - bx});
  return {normal, normal.x * ax + normal.z * az};
}
// A side wall that leans inwards: at height z0 it stands at y = side * half0, at z1 at side * half1.
Plane lean_yz(double side, double half0, double z0, double half1, double z1) {
  const Vec3 normal = unit({0, side * (z1 - z0), half0 - half1});
  return {normal, normal.y * side * half0 + normal.z * z0};
}

Part cylinder(Surface surface, std::uint8_t axis, Vec3 centre, double radius, double half_length) {
  Part part;
  part.kind = Part::Kind::kCylinder;
  part.surface = surface;
  part.axis = axis;
  part.centre = centre;
  part.radii = {radius, radius, half_length};
  const Vec3 half = axis == 1 ? Vec3{radius, half_length, radius} : Vec3{radius, radius, half_length};
  part.low = centre - half;
  part.high = centre + half;
  return part;
}

Part ellipsoid(Surface surface, Vec3 centre, Vec3 radii, double swing = 0) {
  Part part;
  part.kind = Part::Kind::kEllipsoid;
  part.surface = surface;
  part.centre = centre;
  part.radii = radii;
  part.swing = swing;
  const Vec3 reach{std::fabs(swing), 0, 0};
  part.low = centre - radii - reach;
  part.high = centre + radii + reach;
  return part;
}

void add_wheels(Shape* shape, std::initializer_list<double> axles, double radius, double width) {
  shape->wheel_radius = radius;
  shape->front_axle = *axles.begin();
  shape->rear_axle = *(axles.end() - 1);
  const double y = shape->size.y / 2 - width / 2;
  for (const double x : axles) {
    for (const double side : {-1.0, 1.0}) {
      shape->parts.push_back(cylinder(Surface::kTyre, 1, {x, side * y, radius}, radius, width / 2));
    }
  }
}

void finish(Shape* shape) {
  shape->low = shape->parts.front().low;
  shape->high = shape->parts.front().high;
  for (const Part& part : shape->parts) {
    shape->low = minimum(shape->low, part.low);
    shape->high = maximum(shape->high, part.high);
  }
}

void build_car(Shape* shape) {
  const double l = shape->size.x / 2;
  const double w = shape->size.y / 2;
  const double h = shape->size.z;
  const double belt = 0.61 * h;
  Part body = box(Surface::kPaint, {-l, -w, 0.20}, {l, w, belt});
  body.planes.push_back(slope_xz(l, 0.50 * h, 0.42 * l, belt));    // bonnet
  body.planes.push_back(slope_xz(l - 0.10, 0.20, l, 0.30 * h));    // chin
  body.planes.push_back(slope_xz(-l + 0.06, belt, -l, 0.38 * h));  // tail
  body.planes.push_back(lean_yz(1, w, 0.30 * h, w - 0.07, belt));
  body.planes.push_back(lean_yz(-1, w, 0.30 * h, w - 0.07, belt));
  shape->parts.push_back(body);
  // The rear end tells a hatchback from a saloon.
  const bool saloon = (shape->look & 1) != 0;
  const double rear_foot = saloon ? -0.72 * l : -0.97 * l;
  const double rear_roof = saloon ? -0.34 * l : -0.76 * l;
  const double seam = belt - 0.02;  // a little below the body's top, so that no gap shows
  Part cabin = box(Surface::kPaint, {rear_foot, -w, seam}, {0.46 * l, w, h});
  cabin.glazed = true;
  cabin.planes[0] = slope_xz(0.46 * l, seam, 0.10 * l, h);
  cabin.planes[1] = slope_xz(rear_roof, h, rear_foot, seam);
  cabin.planes[2] = lean_yz(1, w - 0.08, seam, w - 0.30, h);
  cabin.planes[3] = lean_yz(-1, w - 0.08, seam, w - 0.30, h);
  shape->parts.push_back(cabin);
  add_wheels(shape, {0.62 * l, -0.60 * l}, 0.32, 0.22);
}

void build_van(Shape* shape) {
  const double l = shape->size.x / 2;
  const double w = shape->size.y / 2;
  const double h = shape->size.z;
  Part body = box(Surface::kPaint, {-l, -w, 0.24}, {l, w, 0.50 * h});
  body.planes.push_back(slope_xz(l, 0.40 * h, l - 0.55, 0.50 * h));
  shape->parts.push_back(body);
  const double seam = 0.50 * h - 0.02;
  Part cabin = box(Surface::kPaint, {-l, -w, seam}, {l - 0.45, w, h});
  cabin.glazed = true;
  cabin.planes[0] = slope_xz(l - 0.45, seam, l - 1.15, h);
  cabin.planes[2] = lean_yz(1, w, seam, w - 0.12, h);
  cabin.planes[3] = lean_yz(-1, w, seam, w - 0.12, h);
  shape->parts.push_back(cabin);
  add_wheels(shape, {0.66 * l, -0.62 * l}, 0.35, 0.24);
}

void build_truck(Shape* shape) {
  const double l = shape->size.x / 2;
  const double w = shape->size.y / 2;
  const double h = shape->size.z;
  const double cab_back = l - 1.9;
  shape->parts.push_back(box(Surface::kTrim, {-l, -w * 0.8, 0.45}, {cab_back, w * 0.8, 0.95}));  // frame
  shape->parts.push_back(box(Surface::kPaint, {cab_back, -w, 0.35}, {l, w, 0.52 * h}));
  const double seam = 0.52 * h - 0.02;
  Part cab = box(Surface::kPaint, {cab_back, -w, seam}, {l, w, 0.82 * h});
  cab.glazed = true;
  cab.planes[0] = slope_xz(l, seam, l - 0.25, 0.82 * h);
  shape->parts.push_back(cab);
  shape->parts.push_back(box(Surface::kWall, {-l, -w, 0.95}, {cab_back - 0.15, w, h}));  // cargo
  add_wheels(shape, {l - 0.95, -0.30 * l, -0.66 * l}, 0.48, 0.30);
}

void build_pedestrian(Shape* shape) {
  const double h = shape->size.z;
  const double hip = 0.50 * h;
  shape->parts.push_back(ellipsoid(Surface::kTrousers, {0, 0.09, hip / 2}, {0.085, 0.085, hip / 2}, 0.13));
  shape->parts.push_back(ellipsoid(Surface::kTrousers, {0, -0.09, hip / 2}, {0.085, 0.085, hip / 2}, -0.13));
  shape->parts.push_back(ellipsoid(Surface::kCloth, {0, 0, 0.66 * h}, {0.14, 0.21, 0.20 * h}));
  shape->parts.push_back(ellipsoid(Surface::kCloth, {0, 0.23, 0.64 * h}, {0.06, 0.055, 0.17 * h}, -0.09));
  shape->parts.push_back(ellipsoid(Surface::kCloth, {0, -0.23, 0.64 * h}, {0.06, 0.055, 0.17 * h}, 0.09));
  shape->parts.push_back(ellipsoid(Surface::kSkin, {0.01, 0, 0.925 * h}, {0.095, 0.08, 0.075 * h}));
  shape->parts.push_back(ellipsoid(Surface::kHair, {-0.02, 0, 0.945 * h}, {0.095, 0.09, 0.055 * h}));
}

// Crossing of the local ray with the slab box; false when it misses or lies behind `limit`.
bool crosses_bounds(Vec3 low, Vec3 high, const Ray& ray, double limit) {
  double enter = 0;
  double leave = limit;
  const double origin[3] = {ray.origin.x, ray.origin.y, ray.origin.z};
  const double direction[3] = {ray.direction.x, ray.direction.y, ray.direction.z};
  const double lower[3] = {low.x, low.y, low.z};
  const double upper[3] = {high.x, high.y, high.z};
  for (int axis = 0; axis < 3; ++axis) {
    if (direction[axis] == 0) {
      if (origin[axis] < lower[axis] || origin[axis] > upper[axis]) return false;
      continue;
    }
    const double inverse = 1.0 / direction[axis];
    double a = (lower[axis] - origin[axis]) * inverse;
    double b = (upper[axis] - origin[axis]) * inverse;
    if (a > b) std::swap(a, b);
    enter = std::max(enter, a);
    leave = std::min(leave, b);
    if (enter > leave) return false;
  }
  return true;
}

bool cast_convex(const Part& part, const Ray& ray, std::uint32_t index, ShapeHit* best) {
  double enter = -1e300;
  double leave = 1e300;
  std::uint32_t face = 0;
  for (std::uint32_t i = 0; i < part.planes.size(); ++i) {
    const Plane& plane = part.planes[i];
    const double rate = dot(plane.normal, ray.direction);
    const double gap = plane.distance - dot(plane.normal, ray.origin);
    if (rate == 0) {
      if (gap < 0) return false;
    } else if (rate < 0) {
      const double t = gap / rate;
      if (t > enter) {
        enter = t;
        face = i;
      }
    } else {
      leave = std::min(leave, gap / rate);
    }
    if (enter > leave) return false;
  }
  if (enter <= 1e-6 || enter >= best->range) return false;
  best->range = enter;
  best->point = ray.origin + ray.direction * enter;
  best->normal = part.planes[face].normal;
  best->part = index;
  best->face = face;
  return true;
}

bool cast_cylinder(const Part& part, const Ray& ray, std::uint32_t index, ShapeHit* best) {
  const Vec3 o = ray.origin - part.centre;
  const Vec3 d = ray.direction;
  const bool along_y = part.axis == 1;
  const double ou = o.x, ov = along_y ? o.z : o.y, oa = along_y ? o.y : o.z;
  const double du = d.x, dv = along_y ? d.z : d.y, da = along_y ? d.y : d.z;
  const double radius = part.radii.x;
  const double half = part.radii.z;
  double range = best->range;
  Vec3 normal;
  bool found = false;
  const double a = du * du + dv * dv;
  if (a > 0) {
    const double b = ou * du + ov * dv;
    const double c = ou * ou + ov * ov - radius * radius;
    const double discriminant = b * b - a * c;
    if (discriminant >= 0) {
      const double t = (-b - std::sqrt(discriminant)) / a;
      if (t > 1e-6 && t < range && std::fabs(oa + t * da) <= half) {
        const double nu = (ou + t * du) / radius;
        const double nv = (ov + t * dv) / radius;
        normal = along_y ? Vec3{nu, 0, nv} : Vec3{nu, nv, 0};
        range = t;
        found = true;
      }
    }
  }
  if (da != 0) {
    const double side = da > 0 ? -1.0 : 1.0;
    const double t = (side * half - oa) / da;
    const double u = ou + t * du;
    const double v = ov + t * dv;
    if (t > 1e-6 && t < range && u * u + v * v <= radius * radius) {
      normal = along_y ? Vec3{0, side, 0} : Vec3{0, 0, side};
      range = t;
      found = true;
    }
  }
  if (!found) return false;
  *best = {range, ray.origin + ray.direction * range, normal, index, 0};
  return true;
}

bool cast_ellipsoid(const Part& part, const Ray& ray, double gait, std::uint32_t index, ShapeHit* best) {
  Vec3 centre = part.centre;
  if (part.swing != 0) centre.x += part.swing * kernels::sin(gait);
  const Vec3 scale{1 / part.radii.x, 1 / part.radii.y, 1 / part.radii.z};
  const Vec3 o = (ray.origin - centre) * scale;
  const Vec3 d = ray.direction * scale;
  const double a = dot(d, d);
  const double b = dot(o, d);
  const double c = dot(o, o) - 1;
  const double discriminant = b * b - a * c;
  if (discriminant < 0) return false;
  const double t = (-b - std::sqrt(discriminant)) / a;
  if (t <= 1e-6 || t >= best->range) return false;
  const Vec3 point = ray.origin + ray.direction * t;
  *best = {t, point, unit((point - centre) * scale * scale), index, 0};
  return true;
}

// Least distance of a point on a face from the part's other faces: the frame of a pane is where this is small.
double distance_to_edge(const Part& part, Vec3 point, std::uint32_t face) {
  double least = 1e300;
  for (std::uint32_t i = 0; i < part.planes.size(); ++i) {
    if (i != face) least = std::min(least, part.planes[i].distance - dot(part.planes[i].normal, point));
  }
  return least;
}

Surface vehicle_face(const Shape& shape, const Part& part, const ShapeHit& hit) {
  const Vec3 p = hit.point;
  const Vec3 n = hit.normal;
  const double w = shape.size.y / 2;
  if (part.glazed) {
    if (std::fabs(n.z) > 0.9) return Surface::kPaint;
    if (distance_to_edge(part, p, hit.face) < 0.07) return Surface::kPaint;
    if (std::fabs(n.y) > 0.8) {
      if (shape.kind == ShapeKind::kVan) {  // side windows at the front only, unless it carries people
        const bool bus = (shape.look & 2) != 0;
        if (!bus && p.x < shape.size.x * 0.12) return Surface::kPaint;
      }
      if (std::fabs(p.x + 0.09 * shape.size.x) < 0.045) return Surface::kPaint;  // pillar
    }
    return Surface::kGlass;
  }
  const double scale = shape.kind == ShapeKind::kCar ? 1.0 : 1.25;
  if (part.surface == Surface::kWall) {  // cargo box of a truck
    if (n.x < -0.9 && (std::fabs(p.y) < 0.02 || std::fabs(p.y) > w - 0.07)) return Surface::kTrim;
    return Surface::kWall;
  }
  if (part.surface == Surface::kTrim) {
    if (n.x < -0.9 && std::fabs(p.y) > w * 0.8 - 0.35 && p.z > 0.6 && p.z < 0.8) return Surface::kTaillight;
    return Surface::kTrim;
  }
  if (std::fabs(n.y) > 0.8) {
    const double arch = shape.wheel_radius + 0.06;
    for (const double axle : {shape.front_axle, shape.rear_axle}) {
      const double dx = p.x - axle;
      const double dz = p.z - shape.wheel_radius;
      if (dx * dx + dz * dz < arch * arch) return Surface::kTrim;
    }
    if (p.z < 0.29 * scale) return Surface::kTrim;
    return Surface::kPaint;
  }
  if (n.x > 0.8) {
    if (p.z < 0.36 * scale) return Surface::kTrim;
    if (std::fabs(p.y) < 0.26 && p.z > 0.40 * scale && p.z < 0.51 * scale) return Surface::kPlate;
    if (std::fabs(p.y) > w - 0.48 && std::fabs(p.y) < w - 0.06 && p.z > 0.54 * scale && p.z < 0.69 * scale) {
      return Surface::kHeadlight;
    }
    if (std::fabs(p.y) < w - 0.55 && p.z > 0.42 * scale && p.z < 0.64 * scale) return Surface::kTrim;
    return Surface::kPaint;
  }
  if (n.x < -0.8) {
    if (p.z < 0.38 * scale) return Surface::kTrim;
    if (std::fabs(p.y) < 0.26 && p.z > 0.50 * scale && p.z < 0.62 * scale) return Surface::kPlate;
    if (std::fabs(p.y) > w - 0.36 && p.z > 0.60 * scale && p.z < 0.80 * scale) return Surface::kTaillight;
    return Surface::kPaint;
  }
  return n.z < -0.5 ? Surface::kTrim : Surface::kPaint;
}

Surface building_face(const Shape& shape, const ShapeHit& hit) {
  const Vec3 p = hit.point;
  if (hit.normal.z > 0.5) return Surface::kRoof;
  const bool gable = std::fabs(hit.normal.x) > 0.5;
  const double half = gable ? shape.size.y / 2 : shape.size.x / 2;
  const double u = gable ? p.y : p.x;
  if (std::fabs(u) > half - 0.5 || p.z > shape.size.z - 0.8) return Surface::kWall;
  constexpr double kGroundFloor = 3.6;
  const double bays = std::floor(2 * half / (2.2 + static_cast<double>(shape.look >> 8 & 7) * 0.12));
  const double pitch = 2 * half / std::max(1.0, bays);
  const double bay = (u + half) / pitch - std::floor((u + half) / pitch);
  if (p.z < kGroundFloor) {
    if (gable) return Surface::kWall;
    return p.z > 0.5 && p.z < 3.0 && bay > 0.10 && bay < 0.90 ? Surface::kShopfront : Surface::kWall;
  }
  const double floor_height = 3.1;
  const double storey = (p.z - kGroundFloor) / floor_height - std::floor((p.z - kGroundFloor) / floor_height);
  if (p.z + (1 - storey) * floor_height > shape.size.z) return Surface::kWall;
  return storey > 0.26 && storey < 0.80 && bay > 0.24 && bay < 0.76 ? Surface::kWindow : Surface::kWall;
}

}  // namespace

Shape shape_of(const Actor& actor) {
  Shape shape;
  shape.size = {actor.length, actor.width, actor.height};
  shape.colour = actor.colour;
  shape.look = actor.id;
  switch (actor.kind) {
    case ActorKind::kCar:
      shape.kind = ShapeKind::kCar;
      build_car(&shape);
      break;
    case ActorKind::kVan:
      shape.kind = ShapeKind::kVan;
      build_van(&shape);
      break;
    case ActorKind::kTruck:
      shape.kind = ShapeKind::kTruck;
      build_truck(&shape);
      break;
    case ActorKind::kPedestrian:
      shape.kind = ShapeKind::kPedestrian;
      build_pedestrian(&shape);
      break;
  }
  finish(&shape);
  return shape;
}

Shape shape_of(const Building& building) {
  static constexpr Vec3 kWalls[] = {{0.36, 0.17, 0.12}, {0.55, 0.46, 0.34}, {0.42, 0.42, 0.43}, {0.62, 0.60, 0.56},
                                    {0.50, 0.36, 0.20}, {0.28, 0.13, 0.10}, {0.34, 0.36, 0.33}, {0.58, 0.50, 0.44}};
  Shape shape;
  shape.kind = ShapeKind::kBuilding;
  shape.size = {building.length, building.depth, building.height};
  shape.look = building.look;
  shape.colour = kWalls[building.look & 7];
  shape.parts.push_back(box(Surface::kWall, {-building.length / 2, -building.depth / 2, 0},
                            {building.length / 2, building.depth / 2, building.height}));
  finish(&shape);
  return shape;
}

Shape shape_of(const Plant& plant) {
  Shape shape;
  shape.kind = ShapeKind::kTree;
  const double r = plant.crown_radius;
  shape.size = {2 * r, 2 * r, plant.height};
  shape.look = plant.look;
  const double shade = static_cast<double>(plant.look & 15) / 15.0;
  shape.colour = lerp(Vec3{0.06, 0.13, 0.03}, Vec3{0.14, 0.20, 0.05}, shade);
  const double trunk = std::max(0.4 * plant.height, plant.height - 2.1 * r);
  shape.parts.push_back(cylinder(Surface::kBark, 2, {0, 0, trunk / 2}, 0.05 + 0.016 * plant.height, trunk / 2));
  const double z = plant.height - 0.95 * r;
  shape.parts.push_back(ellipsoid(Surface::kFoliage, {0, 0, z}, {0.85 * r, 0.85 * r, 0.95 * r}));
  shape.parts.push_back(ellipsoid(Surface::kFoliage, {0.45 * r, 0.2 * r, z - 0.4 * r}, {0.6 * r, 0.6 * r, 0.5 * r}));
  shape.parts.push_back(ellipsoid(Surface::kFoliage, {-0.4 * r, 0.35 * r, z - 0.3 * r}, {0.6 * r, 0.6 * r, 0.55 * r}));
  shape.parts.push_back(ellipsoid(Surface::kFoliage, {-0.1 * r, -0.5 * r, z - 0.35 * r}, {0.6 * r, 0.55 * r, 0.5 * r}));
  finish(&shape);
  return shape;
}

Shape shape_of(const Lamp& lamp) {
  Shape shape;
  shape.kind = ShapeKind::kLamp;
  shape.size = {0.5, 2.2, lamp.height};
  shape.colour = {0.30, 0.31, 0.32};
  shape.parts.push_back(cylinder(Surface::kMetal, 2, {0, 0, lamp.height / 2}, 0.075, lamp.height / 2));
  // The arm reaches over the road: towards smaller |offset|.
  const double side = lamp.offset > 0 ? -1.0 : 1.0;
  shape.parts.push_back(cylinder(Surface::kMetal, 1, {0, side * 0.8, lamp.height - 0.1}, 0.04, 0.8));
  const double head = side * 1.5;
  shape.parts.push_back(
      box(Surface::kMetal, {-0.12, head - 0.35, lamp.height - 0.15}, {0.12, head + 0.35, lamp.height - 0.03}));
  finish(&shape);
  return shape;
}

bool cast(const Shape& shape, const Ray& ray, double gait, ShapeHit* best) {
  if (!crosses_bounds(shape.low, shape.high, ray, best->range)) return false;
  bool found = false;
  for (std::uint32_t i = 0; i < shape.parts.size(); ++i) {
    const Part& part = shape.parts[i];
    if (shape.parts.size() > 1 && !crosses_bounds(part.low, part.high, ray, best->range)) continue;
    switch (part.kind) {
      case Part::Kind::kConvex: found |= cast_convex(part, ray, i, best); break;
      case Part::Kind::kCylinder: found |= cast_cylinder(part, ray, i, best); break;
      case Part::Kind::kEllipsoid: found |= cast_ellipsoid(part, ray, gait, i, best); break;
    }
  }
  return found;
}

Surface surface_at(const Shape& shape, const ShapeHit& hit) {
  const Part& part = shape.parts[hit.part];
  switch (shape.kind) {
    case ShapeKind::kBuilding: return building_face(shape, hit);
    case ShapeKind::kCar:
    case ShapeKind::kVan:
    case ShapeKind::kTruck: {
      if (part.kind != Part::Kind::kCylinder) return vehicle_face(shape, part, hit);
      const double dx = hit.point.x - part.centre.x;
      const double dz = hit.point.z - part.centre.z;
      const double rim = 0.64 * part.radii.x;
      return std::fabs(hit.normal.y) > 0.9 && dx * dx + dz * dz < rim * rim ? Surface::kRim : Surface::kTyre;
    }
    default: return part.surface;
  }
}

}  // namespace takt::sensors::sim
