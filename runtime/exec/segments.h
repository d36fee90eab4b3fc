// Where a plan on a device beside the CPU is cut. What was submitted runs to its end, so a job that is given up holds
// the device for as long as its segment takes: no segment is to take longer than a guard.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/base/time.h"
#include "runtime/exec/session.h"
#include "runtime/plan/plan.h"

namespace takt::exec {

// What a device can do at most, as declared of it.
struct DevicePeaks {
  double gflops = 0;  // a multiply-add counts 2
  double gb_s = 0;    // GB/s of its memory
  Duration step;      // no step takes less
};
// What steps take at least, by the roofline of those: the longer of computing and moving (Williams, Waterman and
// Patterson, CACM 52(4), 2009). Kernels that are not tuned take several times as long; measured times are better.
std::vector<Duration> predicted_times(const plan::Description& plan, const DevicePeaks& peaks);

struct Segments {
  std::vector<std::size_t> cuts;    // steps with which further segments begin, ascending: Placement::segments
  Duration longest;                 // sum of its steps
  std::size_t first = 0, last = 0;  // steps of that one
};
// As few segments as there can be, each within the guard. `steps`: how long each step takes at most. kConfiguration,
// naming the longest step, when that alone takes longer.
Result<Segments> cut_into_segments(const plan::Plan& plan, std::span<const Duration> steps, Duration guard);

// Longest time of each segment of a session in `jobs` jobs, by the device's clock, from the end of what stands before
// it. Everything is bound; state goes on. kUsage where callers run the calls; kEnvironment when the device refused work
// or was lost.
Result<std::vector<Duration>> time_segments(Session& session, int jobs);

}  // namespace takt::exec
