#include "pipeline/report/statistics.h"

#include <algorithm>
#include <cmath>

#include "pipeline/report/record_index.h"

namespace takt::pipeline {

using sched::JobRecord;
using sched::kNever;

Duration Distribution::quantile(double q) const {
  if (sorted.empty()) return {};
  const double rank = std::ceil(q * static_cast<double>(sorted.size()));
  const auto at = static_cast<std::size_t>(std::max(1.0, rank)) - 1;
  return sorted[std::min(at, sorted.size() - 1)];
}

Distribution distribution(std::vector<Duration> values) {
  std::sort(values.begin(), values.end());
  return {std::move(values)};
}

std::vector<StageStatistics> stage_statistics(const RunData& run) {
  const std::size_t stages = run.problem.stages.size();
  const RecordIndex index(run);
  std::vector<StageStatistics> out(stages);
  std::vector<std::vector<Duration>> times(stages), cpu(stages), launch(stages), device(stages), start(stages),
      publish(stages);
  for (const JobRecord& record : run.records) {
    if (record.stage >= stages) continue;
    StageStatistics& stage = out[record.stage];
    ++stage.jobs;
    stage.published += record.published;
    if (index.filling(record)) {
      ++stage.fill;
    } else {
      ++stage.classes[static_cast<std::size_t>(record.job_class)];
    }
    const auto flag = [&](sched::JobFlags f) { return (record.flags & f) != 0 ? 1U : 0U; };
    stage.repeats += flag(sched::kFlagRepeatInput);
    stage.held_inputs += flag(sched::kFlagHeldInput);
    stage.missing_inputs += flag(sched::kFlagMissingInput);
    stage.repaired += flag(sched::kFlagRepaired);
    stage.page_faults += record.page_faults;
    stage.voluntary_switches += record.voluntary_switches;
    stage.involuntary_switches += record.involuntary_switches;
    if (record.hyperperiod >= 1) {
      stage.page_faults_after_warmup += record.page_faults;
      stage.major_faults_after_warmup += record.major_faults;
      stage.allocations_after_warmup += record.allocations;
    }
    stage.most_copied = std::max(stage.most_copied, record.copied_bytes);
    if (record.actual_start == kNever) continue;
    start[record.stage].push_back({record.actual_start - record.nominal_start});
    if (record.completion == kNever) continue;
    times[record.stage].push_back(sched::time_used(record));
    cpu[record.stage].push_back({record.cpu_ns});
    if (record.launch_ns != 0) launch[record.stage].push_back({record.launch_ns});
    if (record.device_ns != 0) device[record.stage].push_back({record.device_ns});
    if (record.publication != kNever) publish[record.stage].push_back({record.publication - record.completion});
  }
  for (std::size_t i = 0; i < stages; ++i) {
    out[i].run = distribution(std::move(times[i]));
    out[i].cpu = distribution(std::move(cpu[i]));
    out[i].launch = distribution(std::move(launch[i]));
    out[i].device = distribution(std::move(device[i]));
    out[i].start = distribution(std::move(start[i]));
    out[i].publish = distribution(std::move(publish[i]));
  }
  return out;
}

std::vector<BudgetUse> budget_uses(const RunData& run) {
  const std::vector<sched::ModeTable> tables =
      run.modes.empty() ? std::vector<sched::ModeTable>{sched::only_table(run.problem, run.schedule)} : run.modes;
  std::vector<BudgetUse> out;
  const auto use = [&out](std::uint32_t stage, std::uint32_t variant, const sched::Budget& budget) -> BudgetUse& {
    for (BudgetUse& known : out) {
      if (known.stage == stage && known.variant == variant && known.budget.cores == budget.cores) return known;
    }
    return out.emplace_back(BudgetUse{stage, variant, budget, {}, {}, {}});
  };
  for (std::uint32_t s = 0; s < run.problem.stages.size(); ++s) {
    for (std::uint32_t m = 0; m < tables.size(); ++m) {
      const sched::Choice& choice = tables[m].schedule.choices[s];
      if (tables[m].runs(s)) use(s, choice.variant, choice.budget).admitted.push_back({m, choice.rate});
    }
    for (const sched::ModeTable& table : tables) {
      if (!table.runs(s) || !table.degraded[s]) continue;
      for (const sched::Budget& budget : run.problem.stages[s].variants[*table.degraded[s]].budgets) {
        if (budget.cores == table.schedule.choices[s].budget.cores) use(s, *table.degraded[s], budget);
      }
    }
  }
  std::vector<std::vector<Duration>> times(out.size()), cpu(out.size());
  for (const JobRecord& record : run.records) {
    if (record.actual_start == kNever || record.completion == kNever) continue;
    for (std::size_t i = 0; i < out.size(); ++i) {
      if (out[i].stage != record.stage || out[i].variant != record.variant ||
          out[i].budget.cores != static_cast<int>(record.cores)) {
        continue;
      }
      times[i].push_back(sched::time_used(record));
      cpu[i].push_back({record.cpu_ns});
    }
  }
  for (std::size_t i = 0; i < out.size(); ++i) {
    out[i].run = distribution(std::move(times[i]));
    out[i].cpu = distribution(std::move(cpu[i]));
  }
  return out;
}

std::vector<CoreShare> core_shares(const RunData& run) {
  std::vector<CoreShare> out(run.problem.board.cores.size());
  // Over all hyperperiods, each with the table of its mode.
  const RecordIndex index(run);
  const std::vector<Stay>& stays = index.stays();
  double all = 0;
  for (std::size_t i = 0; i < stays.size(); ++i) {
    const std::uint64_t end = i + 1 < stays.size() ? stays[i + 1].first_hyperperiod : run.dispatch.hyperperiods_run;
    if (end <= stays[i].first_hyperperiod) continue;
    const sched::Schedule& table = index.table(stays[i]);
    const auto ticks = static_cast<double>(table.clock.ticks);
    const double length = static_cast<double>(end - stays[i].first_hyperperiod) * table.clock.hyperperiod.seconds();
    all += length;
    for (const sched::Slot& slot : table.slots) {
      for (const std::uint32_t core : slot.cores) {
        if (core < out.size() && ticks > 0) {
          out[core].planned += length * static_cast<double>(slot.end - slot.start) / ticks;
        }
      }
    }
  }
  for (CoreShare& core : out) core.planned = all > 0 ? core.planned / all : 0;
  for (std::size_t i = 0; i < out.size() && i < run.dispatch.core_busy.size(); ++i) {
    out[i].busy = run.dispatch.core_busy[i];
  }
  return out;
}

}  // namespace takt::pipeline
