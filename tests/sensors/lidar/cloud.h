// A point cloud with memory of its own, for tests.
#pragma once

#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>

#include "sensors/messages/messages.h"

namespace takt::sensors {

struct TestPoint {
  float x = 0, y = 0, z = 0, intensity = 0;
  std::int32_t time_ns = 0;
  std::uint16_t ring = 0;
};

class Cloud {
 public:
  explicit Cloud(std::uint32_t capacity) {
    const std::uint64_t bytes = (PointCloud::bytes_for(capacity) + 63) / 64 * 64;
    storage_.reset(static_cast<std::byte*>(std::aligned_alloc(64, bytes)));
    std::memset(storage_.get(), 0xEE, bytes);
    new (storage_.get()) PointCloud{};
    (*this)->capacity = capacity;
  }
  void add(const TestPoint& p) {
    PointCloud& cloud = **this;
    const std::uint32_t i = cloud.count++;
    cloud.x()[i] = p.x;
    cloud.y()[i] = p.y;
    cloud.z()[i] = p.z;
    cloud.intensity()[i] = p.intensity;
    cloud.time_ns()[i] = p.time_ns;
    cloud.ring()[i] = p.ring;
  }
  [[nodiscard]] TestPoint at(std::uint32_t i) const {
    const PointCloud& c = **this;
    return {c.x()[i], c.y()[i], c.z()[i], c.intensity()[i], c.time_ns()[i], c.ring()[i]};
  }
  PointCloud& operator*() { return *reinterpret_cast<PointCloud*>(storage_.get()); }
  const PointCloud& operator*() const { return *reinterpret_cast<const PointCloud*>(storage_.get()); }
  PointCloud* operator->() { return &**this; }
  const PointCloud* operator->() const { return &**this; }

 private:
  struct Free {
    void operator()(std::byte* p) const { std::free(p); }
  };
  std::unique_ptr<std::byte, Free> storage_;
};

}  // namespace takt::sensors
