#include "runtime/exec/segments.h"

#include <algorithm>
#include <memory>
#include <string>

#include "runtime/exec/ms_text.h"

namespace takt::exec {

std::vector<Duration> predicted_times(const plan::Description& plan, const DevicePeaks& peaks) {
  std::vector<Duration> out;
  for (const plan::Step& step : plan.steps) {
    const double ns =
        std::max(static_cast<double>(step.flops) / peaks.gflops, static_cast<double>(step.bytes_moved) / peaks.gb_s);
    constexpr double kMost = 9e18;  // hostile counts
    out.push_back(std::max(Duration{static_cast<std::int64_t>(std::min(ns, kMost))}, peaks.step));
  }
  return out;
}

Result<Segments> cut_into_segments(const plan::Plan& plan, std::span<const Duration> steps, Duration guard) {
  const std::size_t count = plan.description().steps.size();
  if (steps.size() != count) {
    return fail(Code::kConfiguration,
                "times of " + std::to_string(steps.size()) + " steps for a plan of " + std::to_string(count));
  }
  Segments out;
  const auto slowest = std::max_element(steps.begin(), steps.end());
  if (slowest != steps.end() && *slowest > guard) {
    const auto step = static_cast<std::size_t>(slowest - steps.begin());
    return fail(Code::kConfiguration, "step " + std::to_string(step) + " (" + plan.kernel(step).name +
                                          ") alone takes " + ms_text(*slowest) + ", more than the guard of " +
                                          ms_text(guard) + ": no segment can be shorter");
  }
  std::size_t first = 0;
  Duration sum;
  for (std::size_t i = 0; i < count; ++i) {
    if (sum + steps[i] > guard) {
      out.cuts.push_back(i);
      first = i;
      sum = {};
    }
    sum += steps[i];
    if (sum > out.longest) {
      out.longest = sum;
      out.first = first;
      out.last = i;
    }
  }
  return out;
}

namespace {

std::string segment_name(const Session& session, std::size_t segment) {
  return "plan " + session.plan().description().name + ", segment " + std::to_string(segment + 1) + " of " +
         std::to_string(session.segments());
}

}  // namespace

Result<std::vector<Duration>> time_segments(Session& session, int jobs) {
  device::Device& device = session.device();
  if (device.properties().callers_run) {
    return fail(Code::kUsage, "segments are of a device beside the CPU; " + device.properties().name + " is none");
  }
  std::vector<std::unique_ptr<device::Event>> ends;  // before the stream, whose destruction waits for work up to them
  for (std::size_t i = 0; i <= session.segments(); ++i) {
    TAKT_ASSIGN(ends.emplace_back(), device.event());
  }
  TAKT_ASSIGN(const std::unique_ptr<device::Stream> stream, device.stream(0, 0));
  std::vector<Duration> longest(session.segments());
  for (int job = 0; job < jobs; ++job) {
    stream->mark(*ends[0]);
    for (std::size_t i = 0; i < longest.size(); ++i) {
      if (const Status taken = session.submit(*stream, i); !taken) {
        while (session.poll() == device::Progress::kPending) continue;  // what was taken before
        return fail(Error(taken.error()).with_context(segment_name(session, i)));
      }
      stream->mark(*ends[i + 1]);
    }
    const device::Progress progress = ends.back()->wait();
    while (progress != device::Progress::kLost && session.poll() == device::Progress::kPending) continue;
    if (progress != device::Progress::kDone) {
      const char* const why = device.lost();
      std::size_t at = 0;  // the first segment that has not ended
      while (at + 1 < longest.size() && ends[at + 1]->poll() == device::Progress::kDone) ++at;
      return fail(Code::kEnvironment,
                  segment_name(session, at) + ": " + (why != nullptr ? why : "the device was lost"));
    }
    session.publish();
    for (std::size_t i = 0; i < longest.size(); ++i) longest[i] = std::max(longest[i], ends[i + 1]->since(*ends[i]));
  }
  return longest;
}

}  // namespace takt::exec
