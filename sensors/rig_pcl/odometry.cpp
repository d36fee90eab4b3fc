#include <pcl/features/normal_3d.h>
#include <pcl/filters/voxel_grid.h>
#include <pcl/kdtree/kdtree_flann.h>

#include <Eigen/Cholesky>
#include <Eigen/Geometry>

#include <algorithm>
#include <cmath>
#include <deque>
#include <vector>

#include "sensors/rig_pcl/cloud.h"
#include "sensors/rig_pcl/rig_pcl.h"

namespace takt::sensors {
namespace {

using Cloud = pcl::PointCloud<pcl::PointXYZ>;
using Pose = Eigen::Isometry3d;

constexpr std::size_t kSweepsKept = 10;  // in the map: long enough for structure, short enough to forget traffic
constexpr float kSourceVoxel = 0.5F;     // m
constexpr float kMapVoxel = 0.25F;       // m
constexpr int kNeighbours = 10;          // of a normal
constexpr float kFlat = 0.04F;           // surface variation up to which a neighbourhood counts as a plane
constexpr std::size_t kFewest = 100;     // matches
constexpr int kIterations = 40;
constexpr double kReachLeast = 0.6, kReachMost = 3;  // m
constexpr double kFastest = 45;                      // m/s, tried for the second sweep

struct Motion {
  Eigen::Vector3d velocity = Eigen::Vector3d::Zero();  // m/s, vehicle frame
  Eigen::Vector3d turn = Eigen::Vector3d::Zero();      // rad/s
  // The vehicle after `s` seconds, in its frame now.
  [[nodiscard]] Pose after(double s) const {
    Pose out = Pose::Identity();
    const double angle = turn.norm() * s;
    if (turn.norm() > 0) out.linear() = Eigen::AngleAxisd(angle, turn.normalized()).toRotationMatrix();
    out.translation() = velocity * s;
    return out;
  }
};

// What carries the vehicle through `moved` in `s` seconds at constant speed.
Motion motion_of(const Pose& moved, double s) {
  const Eigen::AngleAxisd turn(moved.rotation());
  return {moved.translation() / s, turn.axis() * (turn.angle() / s)};
}

// As seen from the vehicle at the stamp.
Cloud::Ptr deskewed(const std::vector<SweepPoint>& sweep, const Motion& motion) {
  Cloud::Ptr out(new Cloud);
  out->reserve(sweep.size());
  for (const SweepPoint& p : sweep) {
    const Eigen::Vector3d at = motion.after(static_cast<double>(p.after_s)) * Eigen::Vector3d(p.x, p.y, p.z);
    out->push_back({static_cast<float>(at.x()), static_cast<float>(at.y()), static_cast<float>(at.z())});
  }
  return out;
}

Cloud::Ptr thinned(const Cloud::Ptr& cloud, float voxel) {
  Cloud::Ptr out(new Cloud);
  pcl::VoxelGrid<pcl::PointXYZ> grid;
  grid.setLeafSize(voxel, voxel, voxel);
  grid.setInputCloud(cloud);
  grid.filter(*out);
  return out;
}

Cloud::Ptr moved(const Cloud& cloud, const Pose& pose) {
  Cloud::Ptr out(new Cloud);
  out->reserve(cloud.size());
  for (const pcl::PointXYZ& p : cloud) {
    const Eigen::Vector3d at = pose * p.getVector3fMap().cast<double>();
    out->push_back({static_cast<float>(at.x()), static_cast<float>(at.y()), static_cast<float>(at.z())});
  }
  return out;
}

struct Fit {
  Pose pose = Pose::Identity();
  double score = 0;  // sum of weights: how much of the sweep lies on the map
  std::size_t matched = 0;
};

// The last sweeps in the world, with a tree and normals.
class Map {
 public:
  void add(const Cloud::Ptr& sweep, const Pose& pose) {
    sweeps_.push_back(moved(*thinned(sweep, kMapVoxel), pose));
    if (sweeps_.size() > kSweepsKept) sweeps_.pop_front();
    Cloud::Ptr all(new Cloud);
    for (const Cloud::Ptr& each : sweeps_) *all += *each;
    points_ = thinned(all, kMapVoxel);
    tree_.setInputCloud(points_);
    pcl::NormalEstimation<pcl::PointXYZ, pcl::Normal> estimation;
    estimation.setInputCloud(points_);
    estimation.setKSearch(kNeighbours);
    estimation.compute(normals_);
  }
  void clear() { sweeps_.clear(); }

  // Robust Gauss-Newton from `start`: distances to planes where the map is flat, to points elsewhere. Planes let the
  // road hold height and tilt without holding the vehicle in place. Weights of Geman and McClure: what moves on its own
  // has no say.
  [[nodiscard]] Fit fit(const Cloud& source, const Pose& start, double reach) const {
    Fit best;
    best.pose = start;
    std::vector<int> found(1);
    std::vector<float> squared(1);
    for (int i = 0; i < kIterations; ++i) {
      Eigen::Matrix<double, 6, 6> left = Eigen::Matrix<double, 6, 6>::Zero();
      Eigen::Matrix<double, 6, 1> right = Eigen::Matrix<double, 6, 1>::Zero();
      best.score = 0;
      best.matched = 0;
      const double kernel = reach * reach / 9;
      for (const pcl::PointXYZ& p : source) {
        const Eigen::Vector3d at = best.pose * p.getVector3fMap().cast<double>();
        const pcl::PointXYZ query{static_cast<float>(at.x()), static_cast<float>(at.y()), static_cast<float>(at.z())};
        if (tree_.nearestKSearch(query, 1, found, squared) != 1 || squared[0] > reach * reach) continue;
        const auto index = static_cast<std::size_t>(found[0]);
        const Eigen::Vector3d apart = at - points_->points[index].getVector3fMap().cast<double>();
        const pcl::Normal& normal = normals_.points[index];
        const bool flat = normal.curvature < kFlat;
        const Eigen::Vector3d n = normal.getNormalVector3fMap().cast<double>();
        const double residual = flat ? apart.dot(n) : apart.norm();
        const double down = kernel / (kernel + residual * residual);
        const double weight = down * down;
        ++best.matched;
        best.score += weight;
        if (flat) {
          Eigen::Matrix<double, 6, 1> row;
          row << at.cross(n), n;
          left += weight * row * row.transpose();
          right -= weight * residual * row;
        } else {
          Eigen::Matrix<double, 3, 6> rows;
          rows << 0, at.z(), -at.y(), 1, 0, 0, -at.z(), 0, at.x(), 0, 1, 0, at.y(), -at.x(), 0, 0, 0, 1;
          left += weight * rows.transpose() * rows;
          right -= weight * rows.transpose() * apart;
        }
      }
      if (best.matched < kFewest) return best;
      left.diagonal().array() += 1e-6;
      const Eigen::Matrix<double, 6, 1> step = left.ldlt().solve(right);
      const Eigen::Vector3d turn = step.head<3>();
      Pose change = Pose::Identity();
      if (turn.norm() > 0) change.linear() = Eigen::AngleAxisd(turn.norm(), turn.normalized()).toRotationMatrix();
      change.translation() = step.tail<3>();
      best.pose = change * best.pose;
      if (step.norm() < 1e-4) break;
    }
    return best;
  }

 private:
  std::deque<Cloud::Ptr> sweeps_;
  Cloud::Ptr points_;
  pcl::PointCloud<pcl::Normal> normals_;
  pcl::KdTreeFLANN<pcl::PointXYZ> tree_;
};

Transform transform_of(const Pose& pose) {
  const Eigen::Quaterniond q(pose.rotation());
  const Eigen::Vector3d& t = pose.translation();
  return Transform::from_quaternion({q.w(), q.x(), q.y(), q.z()}, {t.x(), t.y(), t.z()});
}

}  // namespace

struct SweepOdometry::State {
  Map map;
  Pose pose = Pose::Identity();
  Motion motion;
  SensorTime stamp;
  std::size_t sweeps = 0;
  std::vector<SweepPoint> first;
  double surprise = 0.25;  // m^2: how far the constant motion was off, on average
};

SweepOdometry::SweepOdometry() : state_(std::make_unique<State>()) {}
SweepOdometry::SweepOdometry(SweepOdometry&&) noexcept = default;
SweepOdometry::~SweepOdometry() = default;

Result<SweepPose> SweepOdometry::add(std::vector<SweepPoint> sweep, SensorTime stamp) {
  State& s = *state_;
  if (sweep.size() < kFewest) return fail(Code::kInput, "too few points in a sweep");
  if (s.sweeps > 0 && stamp <= s.stamp) return fail(Code::kInput, "a sweep that is not later than the one before");
  SweepPose out;
  if (s.sweeps == 0) {
    s.map.add(deskewed(sweep, {}), s.pose);
    s.first = std::move(sweep);
    out.registered = true;
  } else {
    const double seconds = (stamp - s.stamp).seconds();
    Fit fit;
    const auto source = [&](const Motion& motion) { return thinned(deskewed(sweep, motion), kSourceVoxel); };
    if (s.sweeps == 1) {
      // Nothing is known of the speed yet: several are tried, each with both sweeps deskewed accordingly.
      for (double speed = 0; speed <= kFastest; speed += 5) {
        Motion motion;
        motion.velocity.x() = speed;
        for (int pass = 0; pass < 3; ++pass) {
          s.map.clear();
          s.map.add(deskewed(s.first, motion), s.pose);
          const Fit tried = s.map.fit(*source(motion), s.pose * motion.after(seconds), kReachMost / 2);
          motion = motion_of(s.pose.inverse() * tried.pose, seconds);
          if (pass == 2 && tried.score > fit.score) fit = tried;
        }
      }
      const Motion motion = motion_of(s.pose.inverse() * fit.pose, seconds);
      s.map.clear();
      s.map.add(deskewed(s.first, motion), s.pose);
      s.first.clear();
    } else {
      const Pose guess = s.pose * s.motion.after(seconds);
      const double reach = std::clamp(3 * std::sqrt(s.surprise), kReachLeast, kReachMost);
      Motion motion = s.motion;
      fit.pose = guess;
      for (int pass = 0; pass < 2; ++pass) {
        fit = s.map.fit(*source(motion), fit.pose, reach);
        if (fit.matched < kFewest) break;
        motion = motion_of(s.pose.inverse() * fit.pose, seconds);
      }
      const double off = (guess.inverse() * fit.pose).translation().norm();
      s.surprise = 0.8 * s.surprise + 0.2 * off * off;
      if (fit.matched < kFewest) fit.pose = guess;
    }
    out.registered = fit.matched >= kFewest;
    s.motion = motion_of(s.pose.inverse() * fit.pose, seconds);
    s.pose = fit.pose;
    s.map.add(deskewed(sweep, s.motion), s.pose);
    out.matched = fit.matched;
  }
  s.stamp = stamp;
  ++s.sweeps;
  out.world_from_vehicle = transform_of(s.pose);
  return out;
}

}  // namespace takt::sensors
