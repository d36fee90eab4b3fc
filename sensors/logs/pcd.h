// PCD files (https://pointclouds.org/documentation/tutorials/pcd_file_format.html), version 0.7, DATA binary or ascii;
// fields of any mix of types. binary_compressed is refused.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/status.h"
#include "sensors/logs/log_messages.h"

namespace takt::sensors {

struct PcdField {
  std::string name;
  log::NumericType type = log::NumericType::kUnknown;
  std::uint32_t offset = 0;  // bytes from the start of a point
};

struct PcdCloud {
  std::vector<PcdField> fields;  // a field of COUNT n appears n times: name, name_1, ...; padding "_" not at all
  std::uint32_t stride = 0;      // bytes of a point
  std::uint64_t points = 0;      // whole points that are there
  std::uint64_t announced = 0;   // by the header
  std::string data;              // points x stride bytes, packed little-endian

  [[nodiscard]] const PcdField* find(std::string_view name) const;
  // Value of a field of point i < points.
  [[nodiscard]] double value(std::uint64_t i, const PcdField& field) const;
};

// kInput with line or byte: no PCD, a header that contradicts itself, compressed data. A file that ends early gives
// the whole points before the end (points < announced).
Result<PcdCloud> parse_pcd(std::string_view bytes, const std::string& name);

}  // namespace takt::sensors
