// Optional keys of a stage's `params` node: a default in the configuration struct stands until the file names the key.
#pragma once

#include <cstdint>

#include "runtime/base/yaml.h"

namespace takt::pipeline {

// Replaces `value` when `key` is present; out of [min, max] is an error of the document.
inline void read_parameter(const YamlNode& params, const char* key, float& value, double min, double max) {
  if (const auto node = params.find(key)) value = static_cast<float>(node->number(min, max));
}
inline void read_parameter(const YamlNode& params, const char* key, std::uint32_t& value, std::uint32_t min,
                           std::uint32_t max) {
  if (const auto node = params.find(key)) value = static_cast<std::uint32_t>(node->integer(min, max));
}

}  // namespace takt::pipeline
