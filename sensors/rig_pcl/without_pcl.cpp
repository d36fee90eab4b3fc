#include "sensors/rig_pcl/rig_pcl.h"

namespace takt::sensors {
namespace {

constexpr const char* kRemedy =
    "needs the Point Cloud Library: apt-get install libpcl-dev, configure again (cmake -DTAKT_WITH_PCL=ON), build";

}  // namespace

bool has_pcl() { return false; }

Result<GroundPlane> fit_ground(std::span<const CloudPoint>, const GroundOptions&) {
  return fail(Code::kEnvironment, kRemedy);
}

Result<Registration> register_clouds(std::span<const CloudPoint>, std::span<const CloudPoint>, const Transform&,
                                     const RegistrationOptions&) {
  return fail(Code::kEnvironment, kRemedy);
}

struct SweepOdometry::State {};
SweepOdometry::SweepOdometry() = default;
SweepOdometry::SweepOdometry(SweepOdometry&&) noexcept = default;
SweepOdometry::~SweepOdometry() = default;
Result<SweepPose> SweepOdometry::add(std::vector<SweepPoint>, SensorTime) { return fail(Code::kEnvironment, kRemedy); }

}  // namespace takt::sensors
