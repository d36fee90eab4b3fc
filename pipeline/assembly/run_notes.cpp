#include "pipeline/assembly/run_notes.h"

#include <algorithm>
#include <set>

#include "pipeline/assembly/submissions.h"
#include "pipeline/report/text.h"

namespace takt::pipeline {

std::string in_words(transport::Backend backend) {
  switch (backend) {
    case transport::Backend::kLocal: return "local (in process)";
    case transport::Backend::kIceoryxEmbedded: return "iceoryx (embedded RouDi)";
    case transport::Backend::kIceoryxExternal: return "iceoryx (external RouDi)";
  }
  return {};
}

std::vector<std::string> assumptions(const sensors::Rig& rig) {
  std::vector<std::string> out;
  for (const sensors::RigSensor& sensor : rig.sensors) {
    if (sensor.assumed.empty()) continue;
    std::string keys;
    for (const std::string& key : sensor.assumed) keys += (keys.empty() ? "" : ", ") + key;
    out.push_back("sensor '" + sensor.name + "': assumed, not measured: " + keys);
  }
  return out;
}

namespace {

// What is worth a word of one plan's jobs: what they copy where all is copied, and that the device refused some.
std::string offload_note(const exec::Offload& offload, bool copies) {
  const plan::Plan& plan = offload.session().plan();
  const plan::Description& d = plan.description();
  std::string text;
  if (copies) {
    text = std::to_string(bytes_of(plan, d.inputs)) + " bytes in and " + std::to_string(bytes_of(plan, d.outputs)) +
           " out a job";
  }
  if (offload.refused_jobs() > 0) {
    text += (text.empty() ? "" : ", ") + std::to_string(offload.refused_jobs()) + " job(s) refused, the last at " +
            "submission " + std::to_string(offload.refused_at() + 1) + " of " + std::to_string(offload.submissions());
  }
  return text.empty() ? "" : "; plan " + d.name + ": " + text;
}

}  // namespace

std::string device_note(const exec::Accelerator& accelerator, kernels::Target target, std::uint64_t free_before,
                        std::uint64_t free_loaded, const std::vector<const exec::Offload*>& offloads) {
  std::uint64_t copied = 0;
  Duration launch, on_device;
  for (const exec::Offload* offload : offloads) {
    copied += offload->copied_bytes();
    launch = std::max(launch, offload->longest_launch());
    on_device = std::max(on_device, offload->longest_on_device());
  }
  const bool in_place = accelerator.exchange() == exec::Exchange::kInPlace;
  std::string text = "graphs ran on device " + accelerator.device().properties().name + " (plans for " +
                     kernels::name_of(target) + "), which " +
                     (in_place ? "reads chunks in place" : "works on copies of chunks") + ": " +
                     std::to_string(copied) + " bytes copied, a job handed over within " + ms_text(launch) +
                     " and done within " + ms_text(on_device) + " of its time";
  for (const exec::Offload* offload : offloads) text += offload_note(*offload, !in_place);
  if (free_before > 0) {
    text += "; " + std::to_string(free_before >> 20) + " MiB of its memory were free before, " +
            std::to_string(free_loaded >> 20) + " MiB with all plans loaded";
  }
  return text;
}

void tell_calibration(const sched::Board& board, const sched::WakeupErrors& errors, RunData& data) {
  std::string text = "calibration before the run, threads that only sleep for a millisecond " +
                     std::to_string(kCalibration.ns / 1'000'000) +
                     " times at the dispatchers' priority: late by at most";
  for (std::size_t core = 0; core < board.cores.size(); ++core) {
    const Duration window = board.cores[core].wakeup_window;
    text += (core == 0 ? " " : ", ") + ms_text(errors.max[core]) + " on " + board.cores[core].name;
    if (errors.max[core] > window) {
      data.environment.warnings.push_back("a thread that only sleeps was woken " + ms_text(errors.max[core]) +
                                          " late on " + board.cores[core].name + " before the run, jobs may be by " +
                                          ms_text(window));
    }
  }
  data.schedule_notes.push_back(std::move(text));
}

void tell_real_time(const sched::DispatchResult& result, const PhaseFollower* phase, const Relay* relay,
                    RunData& data) {
  const sched::RealtimeRights& rights = result.rights;
  if (!rights.refused.empty()) {
    data.environment.warnings.push_back("real-time rights refused: " + rights.refused);
  }
  if (phase != nullptr && phase->lost() > 0) {
    data.environment.warnings.push_back("the reference of the phase lock was silent for longer than its hold-over at " +
                                        plural(phase->lost(), "boundary", "boundaries"));
  }
  data.schedule_notes.push_back(rights.isolation == "demotion"
                                    ? "isolation: a worker that is not done in time is demoted to idle priority"
                                    : "isolation: a worker that is not done in time is parked by a signal");
  if (result.still_inside) {
    data.environment.warnings.push_back(
        "a worker that did not come back could not be stopped: it sleeps in the kernel or is inside a driver");
  }
  if (!rights.deep_sleep.empty()) data.environment.warnings.push_back(rights.deep_sleep);
  if (result.watchdog_trips > 0) {
    data.environment.warnings.push_back("the watchdog saw a dispatcher behind the table " +
                                        std::to_string(result.watchdog_trips) + " time(s)");
  }
  if (relay != nullptr && relay->dropped() > 0) {
    data.schedule_notes.push_back(std::to_string(relay->dropped()) +
                                  " output(s) were not exported: observers kept all chunks of their topics");
  }
  if (data.environment.steal_share > 0.001) {
    data.environment.warnings.push_back("the hypervisor took " +
                                        std::to_string(data.environment.steal_share * 100).substr(0, 4) +
                                        " % of the CPU time during the run (steal)");
  }
}

void count_unused(RunData& data) {
  for (SensorHealth& health : data.health) {
    const auto sensor = data.rig.find(health.sensor);
    if (!sensor) continue;
    std::set<std::uint64_t> used;
    for (const sched::JobRecord& record : data.records) {
      const std::vector<sched::Input>& inputs = data.problem.stages[record.stage].inputs;
      for (std::size_t i = 0; i < inputs.size(); ++i) {
        if (inputs[i].from_sensor && inputs[i].source == *sensor && record.inputs[i].kind <= 1) {
          used.insert(record.inputs[i].job);
        }
      }
    }
    health.unused = health.delivered - std::min<std::uint64_t>(health.delivered, used.size());
  }
}

}  // namespace takt::pipeline
