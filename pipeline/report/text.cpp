#include "pipeline/report/text.h"

#include <fmt/format.h>

#include <cmath>

namespace takt::pipeline {

std::string fixed_text(double value, int decimals) { return fmt::format("{:.{}f}", value, decimals); }

std::string ms_text(Duration d) {
  const double ms = d.ms();
  const double magnitude = std::fabs(ms);
  if (d.ns == 0) return "0 ms";
  if (magnitude < 0.1) return fmt::format("{:.4f} ms", ms);
  if (magnitude < 1) return fmt::format("{:.3f} ms", ms);
  return fmt::format("{:.2f} ms", ms);
}

std::string percent_text(double share) {
  if (share >= 1) return fmt::format("{:.0f} %", share * 100);
  const double shown = std::floor(share * 1000) / 10;  // rounded down: 99.96 % is not "100 %"
  return fmt::format("{:.1f} %", shown);
}

std::string bytes_text(std::uint64_t bytes) {
  constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  double value = static_cast<double>(bytes);
  std::size_t unit = 0;
  while (value >= 1024 && unit + 1 < std::size(kUnits)) {
    value /= 1024;
    ++unit;
  }
  return unit == 0 ? fmt::format("{} B", bytes) : fmt::format("{:.1f} {}", value, kUnits[unit]);
}

std::string count_text(std::uint64_t n) {
  std::string digits = std::to_string(n);
  for (std::size_t at = digits.size(); at > 3; at -= 3) digits.insert(at - 3, 1, ',');
  return digits;
}

std::string plural(std::uint64_t n, std::string_view one, std::string_view many) {
  return fmt::format("{} {}", count_text(n), n == 1 ? one : many);
}

}  // namespace takt::pipeline
