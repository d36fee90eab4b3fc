// takt plan bench --device: the steps of a plan on a GPU, each by the GPU's clock, and the segments that a guard cuts
// it into.

#include <algorithm>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "pipeline/app/devices.h"
#include "pipeline/app/verb_plan.h"
#include "runtime/base/time.h"
#include "runtime/exec/buffers.h"
#include "runtime/exec/segments.h"
#include "runtime/exec/session.h"
#include "runtime/exec/trace.h"

namespace takt::app {
namespace {

// The longest time of each segment that begins at a cut.
Result<std::vector<Duration>> timed(const std::shared_ptr<const plan::Plan>& plan, device::Device& device,
                                    std::span<const std::size_t> cuts, int runs) {
  const plan::Description& d = plan->description();
  exec::Placement placement;
  placement.device = &device;
  placement.segments = cuts;
  TAKT_ASSIGN(const std::unique_ptr<exec::Session> session, exec::Session::create(plan, placement));
  TAKT_ASSIGN(const exec::Buffers buffers, exec::Buffers::create(*session));
  TAKT_ASSIGN(const std::unique_ptr<device::Stream> stream, device.stream(0, 0));
  TAKT_ASSIGN(const std::unique_ptr<device::Event> filled, device.event());
  std::vector<std::vector<std::byte>> inputs;
  for (std::size_t i = 0; i < d.inputs.size(); ++i) {
    const std::vector<std::byte>& input = inputs.emplace_back(exec::made_up_input(d.tensors[d.inputs[i]]));
    stream->copy(buffers.input(i).data(), input.data(), input.size());
  }
  stream->mark(*filled);
  if (filled->wait() != device::Progress::kDone) return fail(Code::kEnvironment, "the device was lost");
  TAKT_RETURN_IF_ERROR(exec::time_segments(*session, 1));  // loads and warms up
  return exec::time_segments(*session, runs);
}

}  // namespace

Status bench_on_device(const std::string& file, const std::string& name, int runs, std::optional<double> guard_ms,
                       bool json) {
  TAKT_ASSIGN(const pipeline::DevicePlace place, open_device(name, ""));
  if (place.device == nullptr) return fail(Code::kUsage, "--device cpu: leave it out");
  TAKT_ASSIGN(const std::shared_ptr<const plan::Plan> plan, plan::Plan::load(file));
  const plan::Description& d = plan->description();
  std::vector<std::size_t> every;
  for (std::size_t i = 1; i < d.steps.size(); ++i) every.push_back(i);
  TAKT_ASSIGN(const std::vector<Duration> steps, timed(plan, *place.device, every, runs));
  TAKT_ASSIGN(const std::vector<Duration> whole, timed(plan, *place.device, {}, runs));
  Duration sum;
  for (const Duration step : steps) sum += step;
  std::optional<exec::Segments> segments;
  std::vector<Duration> times;
  if (guard_ms) {
    const Duration guard{static_cast<std::int64_t>(*guard_ms * 1e6)};
    TAKT_ASSIGN(segments, exec::cut_into_segments(*plan, steps, guard));
    TAKT_ASSIGN(times, timed(plan, *place.device, segments->cuts, runs));
  }
  const std::string& device = place.device->properties().name;
  const std::size_t worst = static_cast<std::size_t>(std::max_element(times.begin(), times.end()) - times.begin());
  const auto first_of = [&](std::size_t segment) { return segment == 0 ? 0 : segments->cuts[segment - 1]; };
  const auto last_of = [&](std::size_t segment) {
    return segment < segments->cuts.size() ? segments->cuts[segment] - 1 : d.steps.size() - 1;
  };

  if (json) {
    nlohmann::ordered_json out{{"plan", d.name},
                               {"target", kernels::name_of(d.target)},
                               {"device", device},
                               {"runs", runs},
                               {"whole_us", whole[0].us()},
                               {"steps_us", sum.us()}};
    out["steps"] = nlohmann::ordered_json::array();
    for (std::size_t i = 0; i < steps.size(); ++i) {
      out["steps"].push_back({{"kernel", plan->kernel(i).name},
                              {"maximum_us", steps[i].us()},
                              {"flops", d.steps[i].flops},
                              {"bytes_moved", d.steps[i].bytes_moved}});
    }
    if (segments) {
      out["guard_us"] = *guard_ms * 1e3;
      out["segments"] = nlohmann::ordered_json::array();
      for (std::size_t i = 0; i < times.size(); ++i) {
        out["segments"].push_back({{"first", first_of(i)}, {"last", last_of(i)}, {"maximum_us", times[i].us()}});
      }
      out["longest_us"] = times[worst].us();
    }
    std::printf("%s\n", out.dump(2).c_str());
    return {};
  }
  std::printf("     #  kernel                       max us   share  GFLOP/s     GB/s  node\n");
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const auto ns = static_cast<double>(std::max<std::int64_t>(steps[i].ns, 1));
    std::printf("  %4zu  %-24s %10.1f  %5.1f%% %8.1f %8.1f  %s\n", i, plan->kernel(i).name, steps[i].us(),
                100 * ns / static_cast<double>(std::max<std::int64_t>(sum.ns, 1)),
                static_cast<double>(d.steps[i].flops) / ns, static_cast<double>(d.steps[i].bytes_moved) / ns,
                d.steps[i].nodes.empty() ? "" : d.steps[i].nodes.front().c_str());
  }
  std::printf("%s, %s on %s, %d runs: as one segment at most %.1f us, its steps each alone %.1f us\n", d.name.c_str(),
              kernels::name_of(d.target), device.c_str(), runs, whole[0].us(), sum.us());
  if (!segments) return {};
  std::printf("a guard of %.3f ms: %zu segment%s, the longest took at most %.1f us (steps %zu to %zu)%s\n", *guard_ms,
              times.size(), times.size() == 1 ? "" : "s", times[worst].us(), first_of(worst), last_of(worst),
              times[worst].ms() > *guard_ms ? ": more than the guard" : "");
  return {};
}

}  // namespace takt::app
