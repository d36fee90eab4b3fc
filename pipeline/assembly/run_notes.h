// What a run says about itself in words: notes and warnings beside its figures.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/kernel.h"
#include "pipeline/assembly/phase_follower.h"
#include "pipeline/assembly/relay.h"
#include "pipeline/report/run_data.h"
#include "runtime/exec/offload.h"
#include "runtime/transport/transport.h"
#include "scheduler/dispatch/dispatch.h"
#include "sensors/rig/rig.h"

namespace takt::pipeline {

std::string in_words(transport::Backend backend);

// What the rig file marks as assumed, a line per sensor that has such values.
std::vector<std::string> assumptions(const sensors::Rig& rig);

// What the networks of this run ran on, and what that took.
std::string device_note(const exec::Accelerator& accelerator, kernels::Target target, std::uint64_t free_before,
                        std::uint64_t free_loaded, const std::vector<const exec::Offload*>& offloads);

inline constexpr Duration kCalibration = milliseconds(300);
// `errors`: of kCalibration of sleeping on each core.
void tell_calibration(const sched::Board& board, const sched::WakeupErrors& errors, RunData& data);

// What a run in real time met. `phase`, `relay`: null where it has none.
void tell_real_time(const sched::DispatchResult& result, const PhaseFollower* phase, const Relay* relay, RunData& data);

// Delivered samples that no job ever used, from the records.
void count_unused(RunData& data);

}  // namespace takt::pipeline
