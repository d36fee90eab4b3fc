// Nanosecond time, one type per clock domain, and the recorded map between two domains (DESIGN section 2).
#pragma once

#include <compare>
#include <cstdint>
#include <limits>

#include "runtime/base/status.h"

namespace takt {

// A signed span of nanoseconds, the same in every domain.
struct Duration {
  std::int64_t ns = 0;

  friend constexpr auto operator<=>(Duration, Duration) = default;
  friend constexpr Duration operator+(Duration a, Duration b) { return {a.ns + b.ns}; }
  friend constexpr Duration operator-(Duration a, Duration b) { return {a.ns - b.ns}; }
  friend constexpr Duration operator-(Duration a) { return {-a.ns}; }
  friend constexpr Duration operator*(Duration a, std::int64_t n) { return {a.ns * n}; }
  constexpr Duration& operator+=(Duration b) {
    ns += b.ns;
    return *this;
  }
  [[nodiscard]] constexpr double ms() const { return static_cast<double>(ns) * 1e-6; }
  [[nodiscard]] constexpr double us() const { return static_cast<double>(ns) * 1e-3; }
  [[nodiscard]] constexpr double seconds() const { return static_cast<double>(ns) * 1e-9; }
};
constexpr Duration nanoseconds(std::int64_t n) { return {n}; }
constexpr Duration microseconds(std::int64_t n) { return {n * 1'000}; }
constexpr Duration milliseconds(std::int64_t n) { return {n * 1'000'000}; }
constexpr Duration seconds(std::int64_t n) { return {n * 1'000'000'000}; }

// An instant of one clock domain; instants of different domains do not mix.
template <class Domain>
struct TimePoint {
  std::int64_t ns = 0;

  friend constexpr auto operator<=>(TimePoint, TimePoint) = default;
  friend constexpr TimePoint operator+(TimePoint t, Duration d) { return {t.ns + d.ns}; }
  friend constexpr TimePoint operator-(TimePoint t, Duration d) { return {t.ns - d.ns}; }
  friend constexpr Duration operator-(TimePoint a, TimePoint b) { return {a.ns - b.ns}; }
};

struct SensorDomain {};  // stamps of a log or a rig: capture and arrival
struct TableDomain {};   // 0 = start of hyperperiod 0 of the schedule
struct HostDomain {};    // CLOCK_MONOTONIC of this machine
using SensorTime = TimePoint<SensorDomain>;
using TableTime = TimePoint<TableDomain>;
using HostTime = TimePoint<HostDomain>;

// CLOCK_MONOTONIC now. No allocation, no system call on the usual clock sources.
HostTime host_now();

// Affine map between two domains: to = to_origin + (from - from_origin) * (1 + rate_ppb / 1e9), with an
// error bound that enters every bound and age, inside [valid_from, valid_to]. 128-bit inside: exact.
template <class From, class To>
struct ClockMap {
  TimePoint<From> from_origin;
  TimePoint<To> to_origin;
  std::int64_t rate_ppb = 0;
  Duration error;
  TimePoint<From> valid_from{std::numeric_limits<std::int64_t>::min()};
  TimePoint<From> valid_to{std::numeric_limits<std::int64_t>::max()};

  // Rounds toward minus infinity. Errors with kInput outside the validity range.
  [[nodiscard]] Result<TimePoint<To>> map(TimePoint<From> t) const {
    if (t < valid_from || t > valid_to) {
      return fail(Code::kInput, "time " + std::to_string(t.ns) + " ns lies outside the validity of its clock map");
    }
    return map_unchecked(t);
  }

  // The same without the range check, for the timed path.
  [[nodiscard]] constexpr TimePoint<To> map_unchecked(TimePoint<From> t) const {
    const std::int64_t delta = t.ns - from_origin.ns;
    if (rate_ppb == 0) return {to_origin.ns + delta};
    __extension__ using Wide = __int128;
    const Wide scaled = static_cast<Wide>(delta) * rate_ppb;
    Wide quotient = scaled / 1'000'000'000;
    if (scaled % 1'000'000'000 < 0) --quotient;
    return {to_origin.ns + delta + static_cast<std::int64_t>(quotient)};
  }
};

}  // namespace takt
