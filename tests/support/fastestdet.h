// The recorded FastestDet network (models/fastestdet): its two golden inputs and outputs, made by another runtime.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "compiler/ir/graph.h"
#include "runtime/base/file.h"

namespace takt::test {

struct Golden {
  const char* name;
  double sum;  // of the raw output, stated in the README of the recorded data
};
inline constexpr Golden kGolden[] = {{"3", -458.105}, {"kitti000008", -496.295}};

// u8 352x352 BGR, row by row, becomes f32[1,3,352,352] = BGR / 255.
inline ir::Constant golden_input(const std::string& folder, const Golden& golden) {
  const std::string pixels = read_file(folder + "/golden_" + golden.name + "_input_352x352_bgr_u8.bin").value();
  constexpr std::size_t kPlane = 352 * 352;
  std::vector<float> values(3 * kPlane);
  for (std::size_t i = 0; i < kPlane; ++i) {
    for (std::size_t c = 0; c < 3; ++c) {
      values[c * kPlane + i] = static_cast<float>(static_cast<unsigned char>(pixels.at(3 * i + c))) / 255.0F;
    }
  }
  return ir::Constant::of(values, kernels::Shape{4, {1, 3, 352, 352}});
}

// f32[1,85,22,22]
inline std::vector<float> golden_output(const std::string& folder, const Golden& golden) {
  const std::string bytes = read_file(folder + "/golden_" + golden.name + "_output_f32_1x85x22x22.bin").value();
  std::vector<float> values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), values.size() * sizeof(float));
  return values;
}

}  // namespace takt::test
