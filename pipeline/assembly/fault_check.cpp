#include <fmt/format.h>

#include <algorithm>

#include "pipeline/assembly/fault_plan.h"
#include "pipeline/report/causes.h"
#include "pipeline/report/record_index.h"
#include "pipeline/report/text.h"
#include "pipeline/report/verdict.h"

namespace takt::pipeline {
namespace {

using sched::JobClass;
using sched::JobRecord;
using sched::Reason;

std::string range_text(CountRange range) {
  return range.least == range.most ? count_text(range.least)
                                   : count_text(range.least) + " to " + count_text(range.most);
}

std::string in_words(const StageFault& fault, const sched::Problem& problem) {
  const std::string jobs = fault.count == 1 ? fmt::format("#{}", fault.job)
                                            : fmt::format("#{} to #{}", fault.job, fault.job + fault.count - 1);
  const std::string does = fault.hang           ? "never ends"
                           : fault.endless      ? "loops until the table has ended"
                           : fault.stall.ns > 0 ? "waits " + ms_text(fault.stall) + " behind its work"
                                                : fmt::format("computes for {:g} budgets", fault.budgets);
  return problem.stages[fault.stage].name + jobs + " " + does;
}

std::string in_words(const SensorFault& fault, const sched::Problem& problem) {
  std::string text = fmt::format("{}: {}", problem.sensors[fault.sensor].name, name_of(fault.kind));
  if (fault.by.ns != 0) text += " by " + ms_text(fault.by);
  if (fault.ppm != 0) text += fmt::format(" of {:g} ppm", fault.ppm);
  text += fault.every == 1 ? ", every message" : fmt::format(", one message of {}", fault.every);
  return text + fmt::format(", from {:g} s for {:g} s", fault.from.seconds(), fault.length.seconds());
}

std::string in_words(const ProcessFault& fault, const sched::Problem& problem) {
  switch (fault.kind) {
    case ProcessFault::Kind::kStop:
      return fmt::format("the process is stopped at {:g} s for {}", fault.at.seconds(), ms_text(fault.length));
    case ProcessFault::Kind::kKillClient:
      return fmt::format("a declared client of {} that holds chunks is killed at {:g} s",
                         problem.stages[fault.stage].name, fault.at.seconds());
    case ProcessFault::Kind::kKillRoudi:
      return fmt::format("the process that owns RouDi is killed at {:g} s", fault.at.seconds());
    case ProcessFault::Kind::kDiskFull: return "the disk is full when the run folder is written";
    case ProcessFault::Kind::kMode:
      return fmt::format("mode '{}' is asked for at {:g} s", fault.mode_name, fault.at.seconds());
  }
  return "";
}

std::string in_words(const DeviceFault& fault, const sched::Problem& problem) {
  const std::string job = fmt::format("{}#{}", problem.stages[fault.stage].name, fault.job);
  if (fault.kind == DeviceFault::Kind::kLose) return "the device is lost with " + job;
  if (fault.kind == DeviceFault::Kind::kHang) return "a kernel of " + job + " never ends";
  return "the device refuses " + job + (fault.count == 1 ? "" : fmt::format(" to #{}", fault.job + fault.count - 1));
}

std::uint64_t messages(const SensorHealth& h, const std::string& figure) {
  if (figure == "delivered") return h.delivered;
  if (figure == "bad_frames") return h.bad_frames;
  if (figure == "gaps") return h.gaps;
  if (figure == "repeats") return h.repeats;
  if (figure == "order_faults") return h.order_faults;
  return h.unused;
}

// Whether the record is of a job that the fault names.
template <class Fault>
bool names_job(const Fault& fault, const JobRecord& record) {
  return fault.stage == record.stage && record.job >= fault.job && record.job - fault.job < fault.count;
}

// A count, and how much of it the machine may have caused: how many too many it may be for its noise, and how many too
// few.
struct Seen {
  std::string what;
  std::uint64_t count = 0;
  std::uint64_t noise_more = 0, noise_less = 0;
};

class Check {
 public:
  Check(const FaultPlan& plan, const RunData& run) : plan_(plan), run_(run), index_(run), judgement_(judge(run)) {}

  void all(FaultReport& out) {
    out.expectations.push_back(
        {"chain instances violated", "0", count_text(judgement_.violated), judgement_.violated == 0});
    strikes(out);
    if (!plan_.verdicts.empty()) {
      std::string expected;
      for (const std::string& verdict : plan_.verdicts) expected += (expected.empty() ? "" : " or ") + verdict;
      std::string seen = name_of(judgement_.outcome);
      bool met = std::find(plan_.verdicts.begin(), plan_.verdicts.end(), seen) != plan_.verdicts.end();
      // In lockstep rights are not asked for, and not needed for a verdict.
      const bool refused = run_.mode != "lockstep" && !run_.dispatch.rights.refused.empty();
      if (!met && refused && judgement_.outcome == Outcome::kNotJudged) {
        met = true;
        seen += ", as always without real-time rights";
      }
      if (!met && judgement_.void_decides && void_by_machine() &&
          std::find(plan_.verdicts.begin(), plan_.verdicts.end(), name_of(Outcome::kPass)) != plan_.verdicts.end()) {
        met = true;
        seen += ", but for what the machine made void";
      }
      out.expectations.push_back({"verdict", expected, seen, met});
    }
    for (const CountExpectation& count : plan_.counts) {
      const Seen seen = figure_of(count);
      const bool within =
          seen.count <= count.range.most + seen.noise_more && seen.count + seen.noise_less >= count.range.least;
      std::string text = count_text(seen.count);
      if (seen.count > count.range.most && seen.noise_more > 0) {
        text += ", " + count_text(seen.noise_more) + " by the machine";
      } else if (seen.count < count.range.least && seen.noise_less > 0) {
        text += ", the machine took " + count_text(seen.noise_less);
      }
      out.expectations.push_back({seen.what, range_text(count.range), std::move(text), within});
    }
    if (plan_.recovery) recovery(out);
    if (!plan_.modes.empty()) modes(out);
  }

 private:
  // A fault that changed nothing tested nothing: one of a hundred messages where fifty came, a job behind the end of a
  // run that was interrupted.
  void strikes(FaultReport& out) const {
    std::size_t i = 0;
    const auto expect_struck = [&](std::uint64_t count, const std::string& why_not = "") {
      if (i == out.struck.size()) out.struck.push_back(0);
      out.struck[i] = count;
      if (count == 0) {
        out.expectations.push_back({"the fault strikes: " + out.injected[i], "at least once",
                                    "never" + (why_not.empty() ? "" : ": " + why_not), false});
      }
      ++i;
    };
    const auto records = [&](const auto& counts) {
      return static_cast<std::uint64_t>(std::count_if(run_.records.begin(), run_.records.end(), counts));
    };
    for (const StageFault& fault : plan_.stages) {
      expect_struck(records([&](const JobRecord& record) {
                      return names_job(fault, record) && record.actual_start != sched::kNever;
                    }),
                    why_not(fault));
    }
    for (std::size_t s = 0; s < plan_.sensors.size(); ++s) {
      expect_struck(run_.faults && i < run_.faults->struck.size() ? run_.faults->struck[i] : 0);
    }
    for (const ProcessFault& fault : plan_.processes) expect_struck(strikes(fault) ? 1 : 0, why_not(fault));
    for (const DeviceFault& fault : plan_.devices) {
      expect_struck(records([&](const JobRecord& record) {
                      return names_job(fault, record) && record.reason == Reason::kDevice;
                    }),
                    why_not(fault));
    }
  }

  // Why no job that a fault names began; "": one did.
  template <class Fault>
  [[nodiscard]] std::string why_not(const Fault& fault) const {
    const JobRecord* first = nullptr;
    for (const JobRecord& record : run_.records) {
      if (!names_job(fault, record)) continue;
      if (record.actual_start != sched::kNever) return "";
      if (first == nullptr || record.job < first->job) first = &record;
    }
    const std::string jobs = fault.count == 1 ? "the job" : "the first of the jobs";
    if (first == nullptr) return "the run came to no such job";
    if (index_.filling(*first)) return jobs + " was pipeline fill, before its inputs had anything";
    std::string text = jobs + " was " + sched::name_of(first->job_class);
    if (first->reason != Reason::kNone) text += std::string(", ") + sched::name_of(first->reason);
    return text;
  }

  // Why nobody entered the mode that was asked for; "": not known.
  [[nodiscard]] std::string why_not(const ProcessFault& fault) const {
    if (fault.kind != ProcessFault::Kind::kMode || run_.modes.empty()) return "";
    std::uint32_t mode = 0;  // that ran at the first boundary from the request on
    std::vector<std::uint32_t> since;
    for (const sched::ModeChange& change : run_.dispatch.changes) {
      if (change.begin.ns >= fault.at.ns) since.push_back(change.to);
      if (change.begin.ns < fault.at.ns) mode = change.to;
    }
    since.insert(since.begin(), mode);
    if (mode == fault.mode) return "mode '" + fault.mode_name + "' ran already";
    std::string without;
    for (const std::uint32_t m : since) {
      const std::vector<std::uint32_t>& exits = run_.modes[m].exits;
      if (std::find(exits.begin(), exits.end(), fault.mode) != exits.end()) return "";
      const std::string name = "'" + run_.modes[m].name + "'";
      if (without.find(name) == std::string::npos) without += (without.empty() ? "" : " and of ") + name;
    }
    return "it is no exit of " + without + ", which ran from then on";
  }

  [[nodiscard]] bool strikes(const ProcessFault& fault) const {
    switch (fault.kind) {
      case ProcessFault::Kind::kDiskFull: return true;
      case ProcessFault::Kind::kMode:  // somebody who asks for the mode that runs changes nothing
        return std::any_of(run_.dispatch.changes.begin(), run_.dispatch.changes.end(), [&](const auto& change) {
          return change.cause == sched::ModeCause::kRequest && change.to == fault.mode &&
                 change.begin.ns >= fault.at.ns;
        });
      case ProcessFault::Kind::kStop:
      case ProcessFault::Kind::kKillClient:
      case ProcessFault::Kind::kKillRoudi: break;
    }
    return TableTime{0} + fault.at < index_.planned(run_.dispatch.hyperperiods_run).begin;
  }

  [[nodiscard]] bool injected(const JobRecord& record) const {
    return std::any_of(plan_.stages.begin(), plan_.stages.end(),
                       [&](const StageFault& fault) { return names_job(fault, record); });
  }

  // Back to where the trouble began: is that the machine's noise? Such are late wake-ups, samples that the replay's
  // feeder brought late, what the host demonstrably took time from, and overruns and late publications of jobs that
  // nothing was done to: on a loaded machine they come without a fault as well.
  // So are skips behind a worker that lost its core and that other programs then kept waiting.
  [[nodiscard]] bool by_machine(const JobRecord& record) const {
    const JobRecord* root = &record;
    for (const JobRecord* const origin : origins_of(run_, index_, record)) {
      const bool busy = root->job_class == JobClass::kSkipped && root->reason == Reason::kPreviousRunning;
      if (busy && root->nominal_start >= origin->completion - starved(run_, index_, *origin).ns) return true;
      root = origin;
    }
    if (!host_evidence(run_, record).empty() || !host_evidence(run_, *root).empty()) return true;
    if (injected(*root)) return false;
    switch (root->job_class) {
      case JobClass::kLateStart:
      case JobClass::kOverrun:
      case JobClass::kLate: return true;
      case JobClass::kMissing: return root->reason == Reason::kFeederLate;
      case JobClass::kSkipped: return root->reason == Reason::kSlotOver;
      case JobClass::kOk: break;
    }
    return false;
  }

  [[nodiscard]] bool by_machine(const Instance& instance) const {
    return std::all_of(instance.broken.begin(), instance.broken.end(), [&](const Broken& broken) {
      if (broken.by_sensor) return false;
      const JobRecord* record = index_.find(broken.subject, broken.number);
      return record != nullptr && by_machine(*record);
    });
  }

  // Without the instances that the machine made void nothing would be mostly void.
  [[nodiscard]] bool void_by_machine() const {
    return std::none_of(judgement_.mostly_void.begin(), judgement_.mostly_void.end(), [&](const MostlyVoid& most) {
      std::uint64_t judged = 0, others = 0;
      for (const std::size_t part : most.parts) {
        const QuantityJudgement& quantity = judgement_.chains[part].quantities[static_cast<std::size_t>(most.quantity)];
        judged += quantity.judged() - quantity.void_count;
        for (const Instance& instance : quantity.instances) {
          if (instance.state != InstanceState::kVoid || by_machine(instance)) continue;
          ++judged;
          ++others;
        }
      }
      return 2 * others > judged;
    });
  }

  [[nodiscard]] Seen jobs_of(const CountExpectation& count) const {
    const std::string name = "jobs of " + run_.problem.stages[count.subject].name + " ";
    const bool held = count.figure == "held_inputs";
    std::string figure = count.figure;
    std::replace(figure.begin(), figure.end(), '_', ' ');
    Seen seen{name + (held ? "with a held input" : figure), 0, 0, 0};
    for (const JobRecord* record : index_.stage(count.subject)) {
      if (index_.filling(*record)) continue;
      // A job that was made to overrun and began late as well is in the class of the latter.
      const bool hidden = figure == "overrun" && record->job_class == JobClass::kLateStart && injected(*record) &&
                          (record->flags & sched::kFlagOverrun) != 0;
      const bool counts =
          held ? (record->flags & sched::kFlagHeldInput) != 0 : hidden || figure == sched::name_of(record->job_class);
      const bool noise = (record->job_class != JobClass::kOk || held) && !hidden && by_machine(*record);
      seen.count += counts ? 1 : 0;
      seen.noise_more += counts && noise ? 1 : 0;
      seen.noise_less += !counts && noise ? 1 : 0;
    }
    return seen;
  }

  [[nodiscard]] Seen instances_of(const CountExpectation& count) const {
    Seen seen{"latency instances of chain " + run_.problem.chains[count.subject].name + " " + count.figure, 0, 0, 0};
    const bool held = count.figure == "held";
    for (const ChainJudgement& chain : judgement_.chains) {  // in every mode
      if (chain.chain != count.subject) continue;
      const QuantityJudgement& latency = chain.latency();
      seen.count += held ? latency.held : latency.void_count;
      const auto noise = static_cast<std::uint64_t>(std::count_if(
          latency.instances.begin(), latency.instances.end(),
          [&](const Instance& instance) { return instance.state == InstanceState::kVoid && by_machine(instance); }));
      (held ? seen.noise_less : seen.noise_more) += noise;
    }
    return seen;
  }

  [[nodiscard]] Seen messages_of(const CountExpectation& count) const {
    const std::string& sensor = run_.rig.sensors[count.subject].name;
    Seen seen{"messages of " + sensor + ", " + count.figure, 0, 0, 0};
    for (const SensorHealth& health : run_.health) {
      if (health.sensor == sensor) seen.count = messages(health, count.figure);
    }
    return seen;
  }

  [[nodiscard]] Seen figure_of(const CountExpectation& count) const {
    switch (count.kind) {
      case CountExpectation::Kind::kJobs: return jobs_of(count);
      case CountExpectation::Kind::kInstances: return instances_of(count);
      case CountExpectation::Kind::kMessages: break;
    }
    return messages_of(count);
  }

  void modes(FaultReport& out) const {
    std::string expected, seen = run_.modes.empty() ? "" : run_.modes.front().name;
    for (const std::string& mode : plan_.modes) expected += (expected.empty() ? "" : ", ") + mode;
    std::vector<std::string> came;
    if (!run_.modes.empty()) came.push_back(run_.modes.front().name);
    bool by_overrun_of_machine = false;
    const JobRecord* led_here = nullptr;  // into the last mode, by its overrun
    for (const sched::ModeChange& change : run_.dispatch.changes) {
      seen += ", " + run_.modes[change.to].name;
      came.push_back(run_.modes[change.to].name);
      led_here = change.cause == sched::ModeCause::kOverrun ? index_.find(change.stage, change.job) : nullptr;
      by_overrun_of_machine |= led_here != nullptr && by_machine(*led_here);
    }
    // The way back leads there only when that job has ended; other programs kept it from ending in time.
    const Duration starving = led_here != nullptr ? starved(run_, index_, *led_here) : Duration{};
    const bool kept_there = came.size() < plan_.modes.size() &&
                            std::equal(came.begin(), came.end(), plan_.modes.begin()) && starving >= milliseconds(1) &&
                            calm_behind(Duration{led_here->completion - starving.ns});
    const bool met = expected == seen;
    if (!met && by_overrun_of_machine) seen += ", where the machine made a job overrun";
    if (!met && kept_there) {
      seen += fmt::format(", where other programs kept {}#{} waiting for {}", run_.problem.stages[led_here->stage].name,
                          led_here->job, ms_text(starving));
    }
    out.expectations.push_back(
        {"modes one after the other", expected, std::move(seen), met || by_overrun_of_machine || kept_there});
  }

  // The hyperperiod of the run that this instant lies in; modes may have some of other lengths.
  [[nodiscard]] std::int64_t hyperperiod_at(Duration instant) const {
    std::uint64_t h = 0;
    while (h < run_.dispatch.hyperperiods_run && index_.planned(h + 1).begin <= TableTime{0} + instant) ++h;
    return static_cast<std::int64_t>(h);
  }

  // Whether what an overrun led to would have been over within the run, had the job ended at this instant.
  [[nodiscard]] bool calm_behind(Duration end) const {
    return hyperperiod_at(end) + 1 + std::int64_t{sched::kDegradedJobs} <
           static_cast<std::int64_t>(run_.dispatch.hyperperiods_run);
  }

  // The last hyperperiod in which something was done to the run.
  [[nodiscard]] std::int64_t last_faulty() const {
    std::int64_t last = 0;
    const auto of_jobs = [&](const auto& fault) {
      const JobRecord* const record = index_.find(fault.stage, fault.job + fault.count - 1);
      if (record != nullptr) last = std::max(last, static_cast<std::int64_t>(record->hyperperiod));
    };
    for (const StageFault& fault : plan_.stages) of_jobs(fault);
    for (const DeviceFault& fault : plan_.devices) of_jobs(fault);
    // The log begins within the first hyperperiods of the table.
    for (const SensorFault& fault : plan_.sensors) {
      last = std::max(last, hyperperiod_at(fault.from + fault.length + fault.by) + 1);
    }
    for (const ProcessFault& fault : plan_.processes)
      last = std::max(last, hyperperiod_at(fault.at + fault.length) + 1);
    return last;
  }

  // What the machine caused does not count. A stage that was made to overrun skips until its worker, which runs below
  // everything else on the machine, has ended: that may take as long as the others leave it no time.
  void recovery(FaultReport& out) const {
    const std::int64_t last = last_faulty();
    std::int64_t recovered = last;
    const JobRecord* latest = nullptr;
    for (const Miss& miss : judgement_.misses) {
      const auto hyperperiod = static_cast<std::int64_t>(miss.record->hyperperiod);
      if (hyperperiod < recovered || by_machine(*miss.record)) continue;
      const bool faulty = std::any_of(plan_.stages.begin(), plan_.stages.end(),
                                      [&](const StageFault& fault) { return fault.stage == miss.record->stage; });
      if (faulty && miss.record->reason == Reason::kPreviousRunning) continue;
      recovered = hyperperiod + 1;
      latest = miss.record;
    }
    const auto took = static_cast<std::uint64_t>(std::max<std::int64_t>(0, recovered - last - 1));
    std::string seen = took == 0 ? "at once" : count_text(took);
    if (latest != nullptr && took > *plan_.recovery) {
      seen += fmt::format(", {}#{} was {}", run_.problem.stages[latest->stage].name, latest->job,
                          sched::name_of(latest->job_class));
    }
    out.expectations.push_back({"hyperperiods until all is as planned again", "at most " + count_text(*plan_.recovery),
                                seen, took <= *plan_.recovery});
  }

  const FaultPlan& plan_;
  const RunData& run_;
  RecordIndex index_;
  Judgement judgement_;
};

}  // namespace

FaultReport describe_faults(const FaultPlan& plan, const sched::Problem& problem,
                            const std::vector<std::uint64_t>& touched) {
  FaultReport out{plan.name, plan.what, plan.text, {}, {}, {}};
  const auto add = [&](std::string text, std::uint64_t struck) {
    out.injected.push_back(std::move(text));
    out.struck.push_back(struck);
  };
  for (const StageFault& fault : plan.stages) add(in_words(fault, problem), 0);
  for (std::size_t s = 0; s < plan.sensors.size(); ++s) {
    add(in_words(plan.sensors[s], problem), s < touched.size() ? touched[s] : 0);
  }
  for (const ProcessFault& fault : plan.processes) add(in_words(fault, problem), 0);
  for (const DeviceFault& fault : plan.devices) add(in_words(fault, problem), 0);
  return out;
}

FaultReport check_faults(const FaultPlan& plan, const sched::Problem& problem, const RunData* run, int exit) {
  FaultReport out = describe_faults(plan, problem);
  out.expectations.push_back(
      {"exit code of the run", std::to_string(plan.exit), std::to_string(exit), exit == plan.exit});
  if (run != nullptr) Check(plan, *run).all(out);
  return out;
}

}  // namespace takt::pipeline
