// Private to kernels/cuda: operands in kernels, blocked tensors, and kernels in which thread i computes element i.
#pragma once

#include <cstring>
#include <span>
#include <type_traits>

#include "kernels/cuda/device.h"
#include "kernels/cuda/table.h"
#include "kernels/reference/activation.h"

namespace takt::kernels::cuda {
inline namespace TAKT_BODY {

template <class T>
TAKT_DEVICE T* at(const Address& address) {
  return reinterpret_cast<T*>(address.bound != nullptr ? *address.bound + address.offset : address.fixed);
}
TAKT_DEVICE bool is_absent(const Address& address) { return address.fixed == nullptr && address.bound == nullptr; }

TAKT_DEVICE bool hold(const Conditions& conditions) {
  for (int i = 0; i < conditions.count; ++i) {
    if ((*at<const std::uint8_t>(conditions.flags[i]) != 0) != conditions.when[i]) return false;
  }
  return true;
}

// Elements of tensors that hold f32 or f16 (T: float or Half). Computed with is f32.
template <class T>
TAKT_DEVICE float widened(T value) {
  if constexpr (std::is_same_v<T, Half>) {
    return to_float(value);
  } else {
    return value;
  }
}
template <class T>
TAKT_DEVICE float read(const Address& address, std::int64_t i) {
  return widened(at<const T>(address)[i]);
}
template <class T>
TAKT_DEVICE void write(const Address& address, std::int64_t i, float value) {
  if constexpr (std::is_same_v<T, Half>) {
    at<Half>(address)[i] = to_half(value);
  } else {
    at<float>(address)[i] = value;
  }
}
// Of the two names of a kernel.
template <class T>
constexpr const char* form(const char* f32, const char* f16) {
  return std::is_same_v<T, Half> ? f16 : f32;
}

template <class Params>
Params load_params(const void* params) {
  Params p;
  std::memcpy(&p, params, sizeof(p));
  return p;
}

// A block of channels: one for each lane.
inline constexpr std::int64_t kBlock = kWarp;
TAKT_DEVICE std::int64_t blocks_of(std::int64_t channels) { return (channels + kBlock - 1) / kBlock; }
inline std::int64_t blocks_on_host(std::int64_t channels) { return (channels + kBlock - 1) / kBlock; }

// Element i of a blocked tensor [n][blocks][pixels][32].
struct Place {
  std::int64_t image, block, pixel, lane;
  std::int64_t channel;
  bool hole;
};
TAKT_DEVICE Place place_of(std::int64_t i, std::int64_t channels, std::int64_t pixels) {
  Place at{};
  at.lane = i % kBlock;
  i /= kBlock;
  at.pixel = i % pixels;
  i /= pixels;
  const std::int64_t blocks = blocks_of(channels);
  at.block = i % blocks;
  at.image = i / blocks;
  at.channel = at.block * kBlock + at.lane;
  at.hole = at.channel >= channels;
  return at;
}
// Where a channel of a pixel lies.
TAKT_DEVICE std::int64_t blocked(std::int64_t image, std::int64_t channel, std::int64_t pixel, std::int64_t channels,
                                 std::int64_t pixels) {
  return ((image * blocks_of(channels) + channel / kBlock) * pixels + pixel) * kBlock + channel % kBlock;
}

TAKT_DEVICE float activate(cpu::Activation activation, float x, float alpha, float beta) {
  return reference::activate_f32(static_cast<reference::Activation>(activation), x, alpha, beta);
}

inline constexpr std::uint32_t kThreads = 256;

template <class Element>
TAKT_KERNEL void each_kernel(Element element, std::int64_t count, Conditions conditions) {
  const std::int64_t i = static_cast<std::int64_t>(block_x()) * kThreads + thread_x();
  if (i < count && hold(conditions)) element(i);
}

// element(i) for i in [0, count), each by a thread of its own.
template <class Element>
int each(const char* name, const Element& element, std::int64_t count, const Call& call) {
  Grid grid;
  grid.blocks_x = static_cast<std::uint32_t>((count + kThreads - 1) / kThreads);
  grid.threads_x = kThreads;
  return launch(name, each_kernel<Element>, grid, call.stream, element, count, call.conditions);
}

struct DeviceHalf {
  cpu::KernelId id;
  Launch launch;
};
std::span<const DeviceHalf> conv_kernels();
std::span<const DeviceHalf> spatial_kernels();
std::span<const DeviceHalf> elementwise_kernels();
std::span<const DeviceHalf> channel_kernels();
std::span<const DeviceHalf> movement_kernels();
std::span<const DeviceHalf> linear_kernels();
std::span<const DeviceHalf> preprocess_kernels();
std::span<const DeviceHalf> voxel_kernels();
std::span<const DeviceHalf> point_kernels();
std::span<const DeviceHalf> box_kernels();
std::span<const DeviceHalf> tracking_kernels();

}  // namespace TAKT_BODY
}  // namespace takt::kernels::cuda
