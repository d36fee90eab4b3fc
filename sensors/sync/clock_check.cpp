#include "sensors/sync/clock_check.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>

namespace takt::sensors {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;
constexpr std::int64_t kDay = 86'400 * kSecond;

std::int64_t median(std::vector<std::int64_t> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

std::string in_words(std::int64_t ns) {
  char text[48];
  const double s = std::abs(static_cast<double>(ns)) * 1e-9;
  if (s >= 2 * 86'400) {
    std::snprintf(text, sizeof text, "%.1f days", s / 86'400);
  } else if (s >= 1) {
    std::snprintf(text, sizeof text, "%.3f s", s);
  } else {
    std::snprintf(text, sizeof text, "%.3f ms", s * 1e3);
  }
  return text;
}

std::string of_all(std::uint64_t some, std::size_t all) {
  return std::to_string(some) + " of " + std::to_string(all) + " messages";
}

// Counters that stamps are cut from.
struct Counter {
  std::int64_t range_ns;
  const char* words;
};
constexpr std::array<Counter, 6> kCounters{{{std::int64_t{1} << 32, "2^32 ns"},
                                            {(std::int64_t{1} << 31) * 1000, "2^31 us"},
                                            {(std::int64_t{1} << 32) * 1000, "2^32 us"},
                                            {3'600 * kSecond, "an hour"},
                                            {kDay, "a day"},
                                            {7 * kDay, "a week"}}};

struct Unit {
  double per_ns;
  const char* words;
};
constexpr std::array<Unit, 3> kUnits{{{1e-3, "us"}, {1e-6, "ms"}, {1e-9, "s"}}};

// What is known of one sensor after its own stamps were looked at.
struct Examined {
  std::vector<StampPair> good;  // believable pairs
  bool explained = false;       // a finding says already that its clock as a whole is off
};

class Examination {
 public:
  Examination(const SensorStamps& sensor, std::int64_t arrival_median, std::vector<ClockFinding>& findings)
      : sensor_(sensor), arrival_median_(arrival_median), findings_(findings) {}

  Examined run() {
    keep_believable();
    if (out_.good.size() >= 2) {
      units();
      if (!out_.explained) steps();
      if (!out_.explained && sensor_.has_arrivals && !sensor_.device_clock) against_arrivals();
    }
    return std::move(out_);
  }

 private:
  void add(ClockFault fault, std::uint64_t messages, std::int64_t by, const std::string& text) {
    findings_.push_back({fault, sensor_.sensor, messages, {by}, sensor_.sensor + ": " + text});
  }

  // Zero stamps, and stamps or arrivals days from the others.
  void keep_believable() {
    std::vector<std::int64_t> captures;
    for (const StampPair& p : sensor_.stamps) captures.push_back(p.capture_ns);
    const std::int64_t middle = median(captures);
    std::uint64_t zero = 0, far = 0;
    std::int64_t farthest = 0;
    for (const StampPair& p : sensor_.stamps) {
      const std::int64_t capture_off = p.capture_ns - middle;
      const std::int64_t arrival_off = p.arrival_ns - arrival_median_;
      const bool far_arrival = sensor_.has_arrivals && std::abs(arrival_off) > kDay;
      if (std::abs(capture_off) <= kDay && !far_arrival) {
        out_.good.push_back(p);
      } else if (p.capture_ns == 0 || (far_arrival && p.arrival_ns == 0)) {
        ++zero;
      } else {
        ++far;
        const std::int64_t off = far_arrival ? arrival_off : capture_off;
        if (std::abs(off) > std::abs(farthest)) farthest = off;
      }
    }
    const std::size_t all = sensor_.stamps.size();
    if (zero > 0) {
      add(ClockFault::kZeroStamp, zero, 0, of_all(zero, all) + " have the time 0: they are not used");
    } else if (all > 2 && std::all_of(captures.begin(), captures.end(), [](std::int64_t c) { return c == 0; })) {
      add(ClockFault::kZeroStamp, all, 0, "every stamp is 0: the driver gives none");
      out_.explained = true;
    }
    if (far > 0) {
      add(ClockFault::kFarStamp, far, farthest,
          of_all(far, all) + " lie up to " + in_words(farthest) + (farthest > 0 ? " after" : " before") +
              " the others: they are not used");
    }
  }

  void units() {
    const auto span = [&](std::int64_t StampPair::*time) {
      const auto [low, high] =
          std::minmax_element(out_.good.begin(), out_.good.end(),
                              [time](const StampPair& a, const StampPair& b) { return a.*time < b.*time; });
      return static_cast<double>((*high).*time - (*low).*time) / static_cast<double>(out_.good.size() - 1);
    };
    const auto expected = static_cast<double>(sensor_.period.ns);
    const double arrival_step = sensor_.has_arrivals ? span(&StampPair::arrival_ns) : expected;
    if (sensor_.has_arrivals && wrong_unit("arrival times", arrival_step / expected)) return;
    if (arrival_step > 0) wrong_unit("stamps", span(&StampPair::capture_ns) / arrival_step);
  }
  bool wrong_unit(const std::string& what, double ratio) {
    for (const Unit& unit : kUnits) {
      const bool coarse = ratio > unit.per_ns / 2 && ratio < unit.per_ns * 2;
      const bool fine = ratio * unit.per_ns > 0.5 && ratio * unit.per_ns < 2;
      if (!coarse && !fine) continue;
      add(ClockFault::kWrongUnit, out_.good.size(), 0,
          coarse ? what + " count " + unit.words + ", not ns"
                 : what + " are ns multiplied by the ns of a " + unit.words + " once too often");
      out_.explained = true;
      return true;
    }
    return false;
  }

  // The smallest arrival - capture of three messages from `first`: late messages do not show in it.
  [[nodiscard]] std::int64_t level(std::size_t first) const {
    std::int64_t low = out_.good[first].arrival_ns - out_.good[first].capture_ns;
    for (std::size_t i = first; i < std::min(first + 3, out_.good.size()); ++i) {
      low = std::min(low, out_.good[i].arrival_ns - out_.good[i].capture_ns);
    }
    return low;
  }

  void steps() {
    const std::int64_t limit = std::max<std::int64_t>(kSecond / 5, 3 * sensor_.period.ns);
    std::uint64_t jumps = 0, wraps = 0;
    std::int64_t largest = 0;
    const Counter* counter = nullptr;
    for (std::size_t i = 1; i < out_.good.size(); ++i) {
      const StampPair &a = out_.good[i - 1], &b = out_.good[i];
      const std::int64_t step = b.capture_ns - a.capture_ns;
      const std::int64_t passed = sensor_.has_arrivals ? b.arrival_ns - a.arrival_ns : sensor_.period.ns;
      const std::int64_t off = step - passed;
      // Without arrivals a step forward may as well be a gap in the recording.
      if (std::abs(off) <= limit || (step >= 0 && (!sensor_.has_arrivals || step <= sensor_.period.ns + limit))) {
        continue;
      }
      if (sensor_.has_arrivals && std::abs(level(i) - level(i < 3 ? 0 : i - 3)) <= limit) continue;
      const auto wrapped = std::find_if(kCounters.begin(), kCounters.end(),
                                        [&](const Counter& c) { return std::abs(off + c.range_ns) <= limit; });
      if (step < 0 && wrapped != kCounters.end()) {
        ++wraps;
        counter = &*wrapped;
        continue;
      }
      ++jumps;
      if (std::abs(off) > std::abs(largest)) largest = off;
    }
    if (wraps > 0) {
      add(ClockFault::kWrapped, wraps, -counter->range_ns,
          "stamps wrap " + std::to_string(wraps) + " time(s) by " + counter->words + " (" +
              in_words(counter->range_ns) + ")");
    }
    if (jumps > 0) {
      add(ClockFault::kJump, jumps, largest,
          "stamps jump " + std::to_string(jumps) + " time(s), at most " + in_words(largest) +
              (largest > 0 ? " forward" : " back") + (sensor_.has_arrivals ? ", while their arrivals do not" : ""));
    }
    out_.explained = jumps + wraps > 0;
  }

  void against_arrivals() {
    std::uint64_t early = 0;
    std::vector<std::int64_t> delays;
    for (const StampPair& p : out_.good) {
      delays.push_back(p.arrival_ns - p.capture_ns);
      if (delays.back() < 0) ++early;
    }
    const auto [low, high] = std::minmax_element(delays.begin(), delays.end());
    const char* advice = "; if it has a clock of its own, give it `clock: device` in the rig, or `offset_ms`";
    if (early * 2 > delays.size()) {
      add(ClockFault::kCaptureAfterArrival, early, -*low,
          "its clock is ahead of the recorder's by at least " + in_words(*low) + ": " + of_all(early, delays.size()) +
              " were captured after they arrived (median " + in_words(median(delays)) + ")" + advice);
      out_.explained = true;
    } else if (early > 0) {
      add(ClockFault::kCaptureAfterArrival, early, -*low,
          of_all(early, delays.size()) + " were captured after they arrived, by up to " + in_words(*low));
    } else if (*low > sensor_.delay_max.ns + std::max(kSecond, 10 * sensor_.period.ns)) {
      add(ClockFault::kOtherClock, delays.size(), -*low,
          "every stamp lies at least " + in_words(*low) + " before its arrival: another clock, or stamps that are " +
              "late by that much" + advice);
      out_.explained = true;
    }
  }

  const SensorStamps& sensor_;
  std::int64_t arrival_median_;
  std::vector<ClockFinding>& findings_;
  Examined out_;
};

// Sensors whose recording lies outside what most others share.
void check_overlap(const std::vector<SensorStamps>& sensors, const std::vector<Examined>& examined,
                   std::vector<ClockFinding>& findings) {
  struct Span {
    std::size_t sensor;
    std::int64_t first, last;
  };
  std::vector<Span> spans;
  for (std::size_t s = 0; s < sensors.size(); ++s) {
    if (examined[s].explained || examined[s].good.empty() || sensors[s].device_clock) continue;
    const auto [low, high] =
        std::minmax_element(examined[s].good.begin(), examined[s].good.end(),
                            [](const StampPair& a, const StampPair& b) { return a.capture_ns < b.capture_ns; });
    spans.push_back({s, low->capture_ns, high->capture_ns});
  }
  if (spans.size() < 2) return;
  std::vector<std::int64_t> firsts, lasts;
  for (const Span& span : spans) {
    firsts.push_back(span.first);
    lasts.push_back(span.last);
  }
  const std::int64_t first = median(firsts), last = median(lasts);
  for (const Span& span : spans) {
    const SensorStamps& sensor = sensors[span.sensor];
    const std::int64_t shared = std::min(span.last, last) - std::max(span.first, first);
    const std::int64_t whole = last - first;
    if (shared >= 0 && shared * 2 >= whole) continue;
    const std::int64_t by = span.first - first;
    const std::uint64_t messages = sensor.stamps.size();
    findings.push_back({ClockFault::kNoOverlap,
                        sensor.sensor,
                        messages,
                        {by},
                        sensor.sensor + ": " +
                            (shared < 0 ? "recorded at another time than the others: it begins "
                                        : "shares less than half of the others' time: it begins ") +
                            in_words(by) + (by < 0 ? " before" : " after") + " and ends " + in_words(span.last - last) +
                            (span.last < last ? " before" : " after") + " them"});
  }
}

}  // namespace

const char* name_of(ClockFault fault) {
  switch (fault) {
    case ClockFault::kZeroStamp: return "zero stamp";
    case ClockFault::kFarStamp: return "far stamp";
    case ClockFault::kWrongUnit: return "wrong unit";
    case ClockFault::kWrapped: return "wrapped";
    case ClockFault::kJump: return "jump";
    case ClockFault::kCaptureAfterArrival: return "capture after arrival";
    case ClockFault::kOtherClock: return "other clock";
    case ClockFault::kNoOverlap: return "no overlap";
  }
  return "";
}

ClockCheck check_clocks(const std::vector<SensorStamps>& sensors) {
  ClockCheck out;
  std::vector<std::int64_t> arrivals;
  for (const SensorStamps& sensor : sensors) {
    for (const StampPair& p : sensor.stamps) {
      arrivals.push_back(sensor.has_arrivals ? p.arrival_ns : p.capture_ns + sensor.delay_max.ns);
    }
  }
  if (arrivals.empty()) return out;
  const std::int64_t middle = median(arrivals);
  std::vector<Examined> examined(sensors.size());
  for (std::size_t s = 0; s < sensors.size(); ++s) {
    if (!sensors[s].stamps.empty()) examined[s] = Examination(sensors[s], middle, out.findings).run();
  }
  check_overlap(sensors, examined, out.findings);

  // A single message at time 0, or a sensor whose stamps lie in the future, makes a log of years: release rules move
  // arrivals behind stamps.
  const auto arrival_of = [](const SensorStamps& sensor, const StampPair& p) {
    return sensor.has_arrivals ? p.arrival_ns : p.capture_ns + sensor.delay_max.ns;
  };
  std::int64_t first = middle, last = middle;
  for (const SensorStamps& sensor : sensors) {
    for (const StampPair& p : sensor.stamps) {
      const std::int64_t arrival = arrival_of(sensor, p);
      if (std::abs(arrival - middle) > kDay) continue;
      first = std::min(first, arrival);
      last = std::max(last, arrival);
    }
  }
  bool stretched = false;
  for (const SensorStamps& sensor : sensors) {
    for (const StampPair& p : sensor.stamps) {
      const std::int64_t arrival = arrival_of(sensor, p);
      stretched |= arrival < first || arrival > last;
      stretched |= !sensor.device_clock && p.capture_ns > last + 10 * kSecond;
    }
  }
  if (stretched) out.window = {SensorTime{first}, SensorTime{last + kSecond}};
  return out;
}

}  // namespace takt::sensors
