#include "pipeline/assembly/run_tables.h"

#include <algorithm>
#include <cstdint>

#include "pipeline/assembly/submissions.h"
#include "scheduler/model/text.h"

namespace takt::pipeline {

Result<sched::Schedule> with_cores(const sched::Problem& problem, sched::Schedule schedule, const std::string& stage,
                                   int cores) {
  const auto& stages = problem.stages;
  std::size_t index = 0;
  while (index < stages.size() && stages[index].name != stage) ++index;
  if (index == stages.size()) return fail(Code::kUsage, "no stage is called '" + stage + "'");
  sched::Choice& choice = schedule.choices[index];
  const sched::Variant& variant = stages[index].variants[choice.variant];
  const auto on = [&variant](int k) {
    return std::find_if(variant.budgets.begin(), variant.budgets.end(),
                        [k](const sched::Budget& budget) { return budget.cores == k; });
  };
  const auto found = on(cores);
  const auto refuse = [&](const std::string& what) {
    const auto at = found != variant.budgets.end() ? found : on(choice.budget.cores);
    const bool known = at != variant.budgets.end() && !at->place.empty();
    return fail(Code::kConfiguration,
                (known ? at->place + ": " : "") + "stage '" + stage + "', variant '" + variant.name + "' " + what);
  };
  if (cores > choice.budget.cores) {
    return refuse("has slots on " + std::to_string(choice.budget.cores) + " core(s), fewer than the " +
                  std::to_string(cores) + " asked for");
  }
  if (found == variant.budgets.end()) return refuse("has no budget for " + std::to_string(cores) + " core(s)");
  if (found->time > choice.budget.time) {
    return refuse("on " + std::to_string(cores) + " core(s) needs " + sched::ms_text(found->time) +
                  ", its slots give " + sched::ms_text(choice.budget.time));
  }
  sched::Budget in_the_slots = *found;
  in_the_slots.cores = choice.budget.cores;
  if (!sched::fits(in_the_slots, choice.budget)) {
    return refuse("on " + std::to_string(cores) + " core(s) has other segments than its slots are for, or longer ones");
  }
  for (sched::Slot& slot : schedule.slots) {
    if (slot.stage == index && !slot.unit) slot.cores.erase(slot.cores.begin(), slot.cores.end() - cores);
  }
  choice.budget = *found;  // the slots stay as they are
  return schedule;
}

Status check_segments(const PipelineConfig& config, const std::vector<sched::ModeTable>& modes, bool lockstep) {
  for (const sched::ModeTable& mode : modes) {
    for (std::size_t s = 0; s < config.problem.stages.size(); ++s) {
      const sched::Stage& stage = config.problem.stages[s];
      const sched::Choice& choice = mode.schedule.choices[s];
      const std::vector<sched::Segment>& segments = choice.budget.segments;
      if (!mode.runs(s) || segments.empty()) continue;
      const auto on_cores = [&](std::uint32_t v) {
        return !config.stages[s].variant(stage.variants[v].name).on_device;
      };
      const auto& degraded = mode.degraded[s];
      const std::uint32_t wrong = degraded && !on_cores(choice.variant) ? *degraded : choice.variant;
      const sched::Variant& variant = stage.variants[wrong];
      const auto refuse = [&](const std::string& what) {
        return fail(Code::kConfiguration, (config.file.empty() ? "" : config.file + ": ") + "stage '" + stage.name +
                                              "', variant '" + variant.name + "': " + what);
      };
      const auto slots = device_slots(choice.budget, config.problem.board);
      if (!slots) {
        return refuse("a job of a pipeline is " + std::string(kDeviceOrder) + "; its budget has " +
                      std::to_string(segments.size()) + " segments in another order");
      }
      if (!lockstep && on_cores(wrong)) {
        return refuse("its budget has a segment on unit '" + config.problem.board.units[slots->unit].name +
                      "', but it runs on the cores. Name the device with --device, replay with --lockstep, or give it "
                      "one budget on the cores");
      }
    }
  }
  return {};
}

Duration longest_turn(const std::vector<sched::ModeTable>& modes) {
  Duration longest;
  for (const sched::ModeTable& mode : modes) {
    longest = std::max(longest, mode.entry_drain + mode.schedule.clock.hyperperiod);
  }
  return longest;
}

std::vector<std::vector<Duration>> budgets_of(const sched::Stage& stage, const std::vector<sched::ModeTable>& modes,
                                              std::size_t s) {
  std::vector<std::vector<Duration>> out;
  for (const sched::ModeTable& mode : modes) {
    const sched::Choice& choice = mode.schedule.choices[s];
    std::vector<Duration>& budgets = out.emplace_back();
    for (std::uint32_t v = 0; v < stage.variants.size(); ++v) {
      Duration budget;
      for (const sched::Budget& one : stage.variants[v].budgets) {
        if (one.cores == choice.budget.cores) budget = one.time;
      }
      budgets.push_back(v == choice.variant ? choice.budget.time : budget);
    }
  }
  return out;
}

std::vector<bool> modes_that_read(const sched::Problem& problem, const std::vector<sched::ModeTable>& modes) {
  std::vector<bool> out;
  for (const sched::ModeTable& mode : modes) {
    bool reads = false;
    for (std::size_t s = 0; s < problem.stages.size(); ++s) {
      const std::vector<sched::Input>& inputs = problem.stages[s].inputs;
      for (std::size_t i = 0; i < inputs.size() && mode.runs(s); ++i) {
        const bool reference = inputs[i].from_sensor && inputs[i].source == problem.phase_lock->sensor;
        reads = reads || (reference && mode.reads[s][i] != 0);
      }
    }
    out.push_back(reads);
  }
  return out;
}

}  // namespace takt::pipeline
