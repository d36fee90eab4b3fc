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
// "a, b and c"
template <class Names>
std::string list_text(const Names& names) {
  std::string out;
  for (std::size_t i = 0; i < names.size(); ++i) {
    out += (i == 0 ? "" : i + 1 == names.size() ? " and " : ", ") + std::string(names[i]);
  }
  return out;
}

}  // namespace takt::sched
