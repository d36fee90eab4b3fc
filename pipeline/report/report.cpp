#include "pipeline/report/report.h"

#include <fmt/format.h>

#include <algorithm>

#include "pipeline/report/breakdown.h"
#include "pipeline/report/pictures.h"
#include "pipeline/report/report_html.h"
#include "pipeline/report/report_json.h"
#include "pipeline/report/score.h"
#include "pipeline/report/text.h"
#include "pipeline/report/trace.h"
#include "runtime/base/file.h"

namespace takt::pipeline {
namespace {

Status write_judged(const RunData& run, const Judgement& judgement, const std::string& folder) {
  const std::vector<StageStatistics> stages = stage_statistics(run);
  TAKT_RETURN_IF_ERROR(write_file_atomically(folder + "/report.json", report_json(run, judgement, stages)));
  TAKT_RETURN_IF_ERROR(write_file_atomically(folder + "/junit.xml", junit_xml(run, judgement)));
  TAKT_RETURN_IF_ERROR(write_file_atomically(folder + "/trace.pftrace", perfetto_trace(run, judgement)));
  return write_file_atomically(folder + "/report.html",
                               report_html(run, judgement, stages, pictures_html(run, judgement)));
}

std::string digest_line(const RunData& run) {
  constexpr std::string_view kNotCompared = "NOT COMPARED";
  std::size_t equal = 0, differs = 0, not_compared = 0;
  std::string why;  // ": another table (...)"
  for (const TopicDigest& d : run.digests) {
    equal += d.compared == "equal" ? 1 : 0;
    differs += d.compared == "differs" ? 1 : 0;
    if (!d.compared.starts_with(kNotCompared)) continue;
    ++not_compared;
    why = d.compared.substr(kNotCompared.size());
  }
  if (equal + differs + not_compared == 0) return fmt::format("{} topics, not compared", run.digests.size());
  return fmt::format("{} topics: {} equal, {} differ, {} {}{}", run.digests.size(), equal, differs, not_compared,
                     kNotCompared, why);
}

std::string score_line(const RunData& run) {
  if (run.truth.empty()) return "no truth in this log";
  const Score score = score_tracks(run.tracks, run.truth);
  return fmt::format("vehicles: recall {:.3f}, precision {:.3f} over {}", score.total.recall(), score.total.precision(),
                     plural(score.lists, "track list", "track lists"));
}

// What the sensors' messages lacked; "" when nothing did.
std::string health_line(const RunData& run) {
  std::string out;
  const auto add = [&out](const std::string& sensor, std::uint64_t count, const char* what) {
    if (count > 0) out += fmt::format("{}{}: {} {}", out.empty() ? "" : ", ", sensor, count, what);
  };
  for (const SensorHealth& h : run.health) {
    if (h.messages == 0) out += fmt::format("{}{}: no message", out.empty() ? "" : ", ", h.sensor);
    add(h.sensor, h.bad_frames, "frames left out");
    add(h.sensor, h.gaps, "frames missing");
    add(h.sensor, h.order_faults, "stamps out of order");
    add(h.sensor, h.repeats, "frames repeated");
    add(h.sensor, h.other_stamps, "stamps other than the log's");
    add(h.sensor, h.dropped_points, "points over capacity");
    add(h.sensor, h.invalid_points, "invalid points");
  }
  return out;
}

std::string machine_line(const RunData& run) {
  const std::vector<std::string>& warnings = run.environment.warnings;
  if (run.mode == "lockstep") return "lockstep: virtual time, real-time deadlines NOT JUDGED";
  if (warnings.empty()) return "no warnings";
  return warnings.front() + (warnings.size() > 1 ? fmt::format(" (and {} more)", warnings.size() - 1) : "");
}

}  // namespace

Status write_report(const RunData& run, const std::string& folder) { return write_judged(run, judge(run), folder); }

Result<Outcome> write_run(const RunData& run, const std::string& folder) {
  const Judgement judgement = judge(run);
  TAKT_RETURN_IF_ERROR(write_run_folder(
      run, folder, [&](const std::string& unfinished) { return write_judged(run, judgement, unfinished); }));
  return judgement.outcome;
}

Outcome outcome_of(const RunData& run) { return judge(run).outcome; }

bool faults_are_judged(const RunData& run) { return run.faults && !run.faults->expectations.empty(); }

std::string expectations_met(const FaultReport& report) {
  const auto met =
      std::count_if(report.expectations.begin(), report.expectations.end(), [](const auto& e) { return e.met; });
  return fmt::format("{}: {} of {} met", report.name, met,
                     plural(report.expectations.size(), "expectation", "expectations"));
}

std::string report_json(const RunData& run) { return report_json(run, judge(run), stage_statistics(run)); }

std::string ten_lines(const RunData& run) {
  const Judgement judgement = judge(run);
  const RecordIndex index(run);
  const WorstFrame worst = worst_frame(judgement);
  const auto share = judgement.share_held();
  std::string out;
  const auto line = [&](std::string_view name, const std::string& text) {
    out += fmt::format("{:<9}{}\n", name, text);
  };
  line("verdict", std::string(name_of(judgement.outcome)) +
                      (judgement.reasons.empty() ? std::string() : ": " + judgement.reasons.front()));
  std::string length = fmt::format(" of {:g} ms", run.schedule.clock.hyperperiod.ms());
  if (!run.modes.empty()) {
    length = " in modes " + run.modes.front().name;
    for (const sched::ModeChange& change : run.dispatch.changes) length += ", " + run.modes[change.to].name;
  }
  line("run",
       fmt::format("{}, {} drive, {}, {} hyperperiods{}", run.pipeline_name,
                   run.rig.drive.empty() ? "unknown" : run.rig.drive, run.mode, run.dispatch.hyperperiods_run, length));
  line("chains",
       fmt::format(
           "{} held, {} void, {} violated{}{}", judgement.held, judgement.void_count, judgement.violated,
           share ? " (" + percent_text(*share) + " held)" : "",
           judgement.void_others > 0 ? fmt::format("; of reactions and ages {} void", judgement.void_others) : ""));
  const ChainJudgement* tightest = nullptr;
  double tightest_share = 0;
  for (const ChainJudgement& chain : judgement.chains) {
    const QuantityJudgement& latency = chain.latency();
    if (!latency.bound || !latency.limit || latency.limit->ns <= 0) continue;
    const double used = latency.bound->ms() / latency.limit->ms();
    if (tightest == nullptr || used > tightest_share) {
      tightest = &chain;
      tightest_share = used;
    }
  }
  line("slack", tightest == nullptr
                    ? "no chain has a limit"
                    : fmt::format("{} at the tightest chain, {}: bound {} of {}",
                                  ms_text(*tightest->latency().limit - *tightest->latency().bound), tightest->name,
                                  ms_text(*tightest->latency().bound), ms_text(*tightest->latency().limit)));
  line("worst", worst.instance == nullptr ? "no sample reached an output"
                                          : fmt::format("{} on {}, sample {}: {}", ms_text(worst.instance->published),
                                                        judgement.chains[worst.chain].name, worst.instance->sample,
                                                        cause_in_words(run, index, worst)));
  const std::string jobs =
      judgement.misses.empty()
          ? fmt::format("{}, all ok", plural(run.records.size(), "job", "jobs"))
          : fmt::format("{}, {} not ok; first: {} {} {}, {}", plural(run.records.size(), "job", "jobs"),
                        judgement.misses.size(), run.problem.stages[judgement.misses[0].record->stage].name,
                        judgement.misses[0].record->job, sched::name_of(judgement.misses[0].record->job_class),
                        judgement.misses[0].cause);
  const std::string unwell = health_line(run);
  line("jobs", jobs + (unwell.empty() ? "" : "; inputs: " + unwell));
  line("tracks", score_line(run));
  line("digests", digest_line(run));
  line("machine", machine_line(run));
  if (faults_are_judged(run)) line("faults", expectations_met(*run.faults));
  line("report", run.run_folder.empty() ? "not written" : run.run_folder + "/report.html");
  return out;
}

}  // namespace takt::pipeline
