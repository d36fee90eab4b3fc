// Times in the messages of this folder.
#pragma once

#include <cstdio>
#include <string>

#include "runtime/base/time.h"

namespace takt::exec {

// "1.234 ms"
inline std::string ms_text(Duration time) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3f ms", time.ms());
  return text;
}

}  // namespace takt::exec
