// Figures in words, the same in every message of the scheduler.
#pragma once

#include <cstdint>
#include <string>

#include "runtime/base/time.h"

namespace takt::sched {

// "12.345 ms", rounded to the microsecond, trailing zeros kept.
std::string ms_text(Duration d);
// "2.50 GB", decimal
std::string bytes_text(std::int64_t bytes);
// "73.1 %"
std::string percent_text(double share);
// "a, b and c"; of many the first and how many more there are.
template <class Names>
std::string list_text(const Names& names) {
  constexpr std::size_t kMost = 16;
  const std::size_t shown = names.size() > kMost ? kMost - 1 : names.size();
  std::string out;
  for (std::size_t i = 0; i < shown; ++i) {
    out += (i == 0 ? "" : i + 1 == names.size() ? " and " : ", ") + std::string(names[i]);
  }
  if (shown < names.size()) out += " and " + std::to_string(names.size() - shown) + " more";
  return out;
}

}  // namespace takt::sched
