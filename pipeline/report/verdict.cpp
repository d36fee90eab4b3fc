#include "pipeline/report/verdict.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "pipeline/report/causes.h"
#include "pipeline/report/chain_judge.h"
#include "pipeline/report/conclusion.h"
#include "pipeline/report/record_index.h"
#include "pipeline/report/requirements.h"
#include "pipeline/report/text.h"

namespace takt::pipeline {
namespace {

using sched::JobClass;
using sched::JobRecord;

void collect_misses(const RunData& run, const RecordIndex& index, Judgement& out) {
  for (const JobRecord& record : run.records) {
    if (record.job_class == JobClass::kOk || record.stage >= run.problem.stages.size()) continue;
    if (index.filling(record)) {
      ++out.fill_jobs;
      continue;
    }
    out.misses.push_back({&record, cause_chain(run, index, record), effect_of(run, index, record)});
  }
  std::stable_sort(out.misses.begin(), out.misses.end(), [](const Miss& a, const Miss& b) {
    return std::tie(a.record->nominal_start, a.record->stage) < std::tie(b.record->nominal_start, b.record->stage);
  });
}

std::string deadline_remark(const RunData& run) {
  if (run.mode == "lockstep") return "NOT JUDGED in lockstep, where jobs take their budget in virtual time";
  if (run.rate != 1) return fmt::format("NOT JUDGED at rate {:g}", run.rate);
  if (run.lost_records > 0) {
    return "NOT JUDGED: the recorder lost " + plural(run.lost_records, "job record", "job records") +
           "; the machine gave the housekeeping reserve too little time";
  }
  const sched::RealtimeRights& rights = run.dispatch.rights;
  if (!rights.refused.empty()) {
    return "NOT JUDGED without real-time rights: " + rights.refused +
           (rights.isolation == "parking" ? "; who is not done in time loses its core by parking" : "");
  }
  return "";
}

}  // namespace

const char* name_of(Assumption assumption) {
  switch (assumption) {
    case Assumption::kStart: return "late start";
    case Assumption::kBudget: return "overrun";
    case Assumption::kPublish: return "late publication";
    case Assumption::kFeeder: return "feeder late";
    case Assumption::kWorkerFree: return "worker busy";
    case Assumption::kCredit: return "no free chunk";
    case Assumption::kProducerOutput: return "producer published nothing";
    case Assumption::kFrame: return "bad frame";
    case Assumption::kArrival: return "arrival outside its model";
    case Assumption::kPeriod: return "sample gap";
    case Assumption::kPhase: return "stamp off its phase";
    case Assumption::kDevice: return "device failed";
    case Assumption::kSubscriber: return "undeclared subscriber";
  }
  return "";
}

const char* name_of(InstanceState state) {
  switch (state) {
    case InstanceState::kHeld: return "held";
    case InstanceState::kVoid: return "void";
    case InstanceState::kViolated: return "violated";
    case InstanceState::kFill: return "fill";
  }
  return "";
}

const char* name_of(Outcome outcome) {
  switch (outcome) {
    case Outcome::kPass: return "PASS";
    case Outcome::kFail: return "FAIL";
    case Outcome::kNotJudged: return "NOT JUDGED";
  }
  return "";
}

std::optional<double> Judgement::share_held() const {
  const std::uint64_t all = held + void_count + violated;
  if (all == 0) return std::nullopt;
  return static_cast<double>(held) / static_cast<double>(all);
}

TableTime table_time(const ClockMap<TableDomain, SensorDomain>& map, SensorTime t) {
  // Solve to = to_origin + delta * (1 + rate) for delta; the integer division may be off by one, so step to the floor.
  const std::int64_t distance = t.ns - map.to_origin.ns;
  __extension__ using Wide = __int128;
  std::int64_t delta =
      static_cast<std::int64_t>(static_cast<Wide>(distance) * 1'000'000'000 / (1'000'000'000 + map.rate_ppb));
  const auto forward = [&](std::int64_t d) { return map.map_unchecked(TableTime{map.from_origin.ns + d}).ns; };
  while (forward(delta) > t.ns) --delta;
  while (forward(delta + 1) <= t.ns) ++delta;
  return {map.from_origin.ns + delta};
}

Judgement judge(const RunData& run) {
  Judgement out;
  out.deadlines_not_judged = deadline_remark(run);
  const RecordIndex index(run);
  for (std::uint32_t c = 0; c < run.problem.chains.size(); ++c) {
    for (ChainJudgement& of : judge_chain(run, index, c)) out.chains.push_back(std::move(of));
  }
  collect_misses(run, index, out);
  out.requirements = requirements_of(run, out.chains, out.deadlines_not_judged);
  conclude(run, out);
  return out;
}

RepeatedRun came_to(const RunData& run) {
  const Judgement own = judge(run);
  return {name_of(own.outcome), own.reasons.empty() ? "" : own.reasons.front()};
}

}  // namespace takt::pipeline
