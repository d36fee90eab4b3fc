// Inputs for `takt profile`: deterministic noise and the ego motion that makes every stage take its longest way.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "runtime/transport/chunk.h"
#include "sensors/messages/messages.h"

namespace takt::pipeline {

// splitmix64 (Steele, Lea, Flood 2014, "Fast splittable pseudorandom number generators").
class SplitMix {
 public:
  explicit SplitMix(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next() {
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15ULL);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31);
  }
  // Uniform in [low, high).
  float uniform(float low, float high) {
    const float unit = static_cast<float>(next() >> 40) * 0x1p-24F;
    return low + (high - low) * unit;
  }

 private:
  std::uint64_t state_;
};

// 15 m/s in a curve. Does nothing when the payload is too small.
inline void write_ego_input(transport::ChunkHeader& header, std::span<std::byte> payload) {
  if (payload.size() < sensors::EgoMotion::bytes_for()) return;
  header.schema = sensors::kEgoMotionSchema;
  header.payload_bytes = sensors::EgoMotion::bytes_for();
  header.capture_ns = header.arrival_ns = 0;
  auto& ego = *reinterpret_cast<sensors::EgoMotion*>(payload.data());
  ego = {};
  ego.velocity[0] = 15;
  ego.angular_velocity[2] = 0.3;
}

}  // namespace takt::pipeline
