// Solid shapes of the scene's objects: unions of convex polyhedra, cylinders and ellipsoids, with a surface for every
// point. Object frame: x forward, y left, z up, origin on the ground under the centre of the footprint.
#pragma once

#include <cstdint>
#include <vector>

#include "sensors/sim/scene.h"
#include "sensors/sim/vector.h"

namespace takt::sensors::sim {

enum class Surface : std::uint8_t {
  kSky,
  kAsphalt,
  kMarking,
  kPavement,
  kKerb,
  kPaint,
  kGlass,
  kTyre,
  kRim,
  kTrim,  // dark plastic: bumpers, grille, wheel arches, underbody
  kHeadlight,
  kTaillight,
  kPlate,
  kWall,
  kWindow,
  kShopfront,
  kRoof,
  kBark,
  kFoliage,
  kMetal,
  kCloth,
  kTrousers,
  kSkin,
  kHair,
};

struct Plane {  // inside: dot(normal, p) <= distance
  Vec3 normal;
  double distance = 0;
};

struct Part {
  enum class Kind : std::uint8_t { kConvex, kCylinder, kEllipsoid } kind = Kind::kConvex;
  Surface surface = Surface::kPaint;
  bool glazed = false;        // convex: faces other than roof and floor are panes in a painted frame
  std::uint8_t axis = 2;      // cylinder: 1 = along y, 2 = along z
  double swing = 0;           // amplitude of a walking limb along x, m; its sign is its phase
  std::vector<Plane> planes;  // convex
  Vec3 centre, radii;         // ellipsoid radii; cylinder: radii.x = radius, radii.z = half length
  Vec3 low, high;             // bounds, swing included
};

enum class ShapeKind : std::uint8_t { kCar, kVan, kTruck, kPedestrian, kBuilding, kTree, kLamp };

struct Shape {
  ShapeKind kind = ShapeKind::kCar;
  std::vector<Part> parts;
  Vec3 low, high;  // bounds of all parts
  Vec3 size;       // length, width, height
  Vec3 colour;     // of paint, wall, cloth or foliage
  std::uint64_t look = 0;
  double wheel_radius = 0, front_axle = 0, rear_axle = 0;  // vehicles
};

Shape shape_of(const Actor& actor);
Shape shape_of(const Building& building);
Shape shape_of(const Plant& plant);
Shape shape_of(const Lamp& lamp);

// Nearest crossing of a ray with a shape, all in the object frame.
struct ShapeHit {
  double range = 1e300;
  Vec3 point, normal;
  std::uint32_t part = 0;
  std::uint32_t face = 0;  // plane of a convex part
};
// Improves `best` when the shape is nearer. `gait` is the phase of a walker's legs, rad.
bool cast(const Shape& shape, const Ray& ray, double gait, ShapeHit* best);

// What is seen at a hit: windows, lights, plates and arches are drawn onto the faces of the parts.
Surface surface_at(const Shape& shape, const ShapeHit& hit);

}  // namespace takt::sensors::sim
