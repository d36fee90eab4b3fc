// The share of one part of a gang: contiguous, complete, and without influence on the results.
#pragma once

#include <cstdint>

namespace takt::pipeline {

struct Share {
  std::uint32_t begin = 0, end = 0;
};
inline Share share_of(std::uint32_t count, int part, int parts) {
  const auto bound = [&](int p) {
    return static_cast<std::uint32_t>(std::uint64_t{count} * static_cast<std::uint64_t>(p) /
                                      static_cast<std::uint64_t>(parts));
  };
  return {bound(part), bound(part + 1)};
}

}  // namespace takt::pipeline
