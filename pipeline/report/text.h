// Numbers as people read them. The same figure looks the same in the terminal, the HTML and the JUnit file.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "runtime/base/time.h"

namespace takt::pipeline {

std::string ms_text(Duration d);              // "12.34 ms", "0.087 ms": three significant digits or two decimals
std::string percent_text(double share);       // 0.9876 -> "98.8 %"; "100 %" only when it is exactly 1
std::string bytes_text(std::uint64_t bytes);  // "6.2 MiB"
std::string count_text(std::uint64_t n);      // "1,234,567"
std::string plural(std::uint64_t n, std::string_view one, std::string_view many);  // "1 job", "3 jobs"
std::string fixed_text(double value, int decimals);

}  // namespace takt::pipeline
