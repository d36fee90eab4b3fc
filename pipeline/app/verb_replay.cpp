// takt replay: run an admitted pipeline over a log and leave a run folder with the report.

#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <memory>

#include "pipeline/app/app.h"
#include "pipeline/assembly/digests.h"
#include "pipeline/assembly/environment.h"
#include "pipeline/report/report.h"
#include "scheduler/analysis/explain.h"
#include "scheduler/analysis/validate.h"

namespace takt::app {
namespace {

struct Options {
  ScheduleOptions schedule;
  std::string log, out, transport = "iceoryx", roudi = "embedded", isa, digests, save_digests;
  std::vector<std::string> gang;
  bool lockstep = false, quiet = false, json = false, require_judged = false;
  double rate = 1;
  double duration_s = 0;
};

// "stage=k": the same table with the stage on k of its cores.
Status apply_gang(const sched::Problem& problem, sched::Schedule& schedule, const std::string& text) {
  const std::size_t equals = text.find('=');
  const std::string digits = equals == std::string::npos ? "" : text.substr(equals + 1);
  if (digits.size() != 1 || digits[0] < '1' || digits[0] > '9') {
    return fail(Code::kUsage, "--gang expects stage=cores, for example lidar_detect=1; found '" + text + "'");
  }
  TAKT_ASSIGN(schedule, pipeline::with_cores(problem, std::move(schedule), text.substr(0, equals), digits[0] - '0'));
  return sched::validate(problem, schedule);
}

Result<pipeline::RunData> execute(const Options& options) {
  if (!options.isa.empty() && options.isa != pipeline::isa_class()) {
    return fail(Code::kUsage, "--isa " + options.isa + ": this build computes as " + pipeline::isa_class() +
                                  " only (its stages are scalar code)");
  }
  // The log is opened before the search: a mistyped path should not cost seconds.
  TAKT_RETURN_IF_ERROR(sensors::open_log(options.log));
  TAKT_ASSIGN(Admitted admitted, admit(options.schedule));
  if (admitted.answer.verdict != sched::Verdict::kFeasible) {
    return fail(Code::kGate,
                "not admitted, nothing was run\n" + sched::explain(admitted.config.problem, admitted.answer, 100));
  }
  sched::Schedule schedule = *admitted.answer.schedule;
  for (const std::string& gang : options.gang) {
    admitted.config.problem = admitted.any_cores;
    TAKT_RETURN_IF_ERROR(apply_gang(admitted.config.problem, schedule, gang));
  }

  // The run folder comes first: when it cannot be made, nothing has been computed in vain.
  std::error_code error;
  std::filesystem::create_directories(options.out, error);
  if (error) return fail(Code::kEnvironment, options.out + ": the run folder cannot be made: " + error.message());

  pipeline::RunOptions run;
  run.log_path = options.log;
  run.lockstep = options.lockstep;
  run.rate = options.rate;
  run.stop = &interrupted();
  run.backend = options.transport == "local"  ? transport::Backend::kLocal
                : options.roudi == "external" ? transport::Backend::kIceoryxExternal
                                              : transport::Backend::kIceoryxEmbedded;
  if (options.duration_s > 0) {
    run.max_hyperperiods = static_cast<std::uint64_t>(
        options.duration_s * 1e9 / static_cast<double>(admitted.config.problem.hyperperiod.ns) + 0.5);
    run.max_hyperperiods = std::max<std::uint64_t>(run.max_hyperperiods, 1);
  }
  Progress progress(options.lockstep ? "lockstep" : "replaying", options.quiet);
  run.progress = [&progress](double done, double total) { progress.update(done, total); };
  TAKT_ASSIGN(pipeline::RunData data, pipeline::run_pipeline(admitted.config, schedule, run));
  data.run_folder = options.out;
  data.command = command_line();
  data.schedule_notes.insert(data.schedule_notes.begin(), admitted.answer.notes.begin(), admitted.answer.notes.end());
  if (!options.schedule.budgets.empty()) {
    TAKT_ASSIGN(const Digest hash, digest_file(options.schedule.budgets));
    data.inputs.push_back({"budgets", options.schedule.budgets, hash});
  }
  if (!options.digests.empty()) TAKT_RETURN_IF_ERROR(pipeline::compare_digests(data, options.digests));
  if (!options.save_digests.empty()) TAKT_RETURN_IF_ERROR(pipeline::save_digests(data, options.save_digests));
  return data;
}

int run(const Options& options) {
  Result<pipeline::RunData> data = execute(options);
  if (!data) return report_error(data.error());
  const Result<pipeline::Outcome> outcome = pipeline::write_run(*data, options.out);
  if (!outcome) return report_error(outcome.error());
  if (options.json) {
    std::printf("%s\n", pipeline::report_json(*data).c_str());
  } else if (!options.quiet) {
    std::fputs(pipeline::ten_lines(*data).c_str(), stdout);
  }
  if (data->interrupted) return exit_code(Code::kInterrupted);
  if (!data->log_problems.empty()) {
    std::fprintf(stderr,
                 "takt: the log is damaged in %zu place(s), first: %s at byte %llu; what could be read was run\n",
                 data->log_problems.size(), data->log_problems.front().kind.c_str(),
                 static_cast<unsigned long long>(data->log_problems.front().offset));
    return exit_code(Code::kInput);
  }
  if (*outcome == pipeline::Outcome::kFail) return exit_code(Code::kGate);
  if (*outcome == pipeline::Outcome::kNotJudged && options.require_judged) return exit_code(Code::kGate);
  return 0;
}

}  // namespace

void add_replay(CLI::App& app, Command& chosen) {
  auto options = std::make_shared<Options>();
  CLI::App* verb = app.add_subcommand("replay", "Run an admitted pipeline over a log; leaves a folder with the report");
  add_schedule_options(*verb, options->schedule);
  verb->add_option("log", options->log, "the drive (MCAP)")->required();
  verb->add_option("-o,--out", options->out, "run folder")->required();
  verb->add_flag("--lockstep", options->lockstep, "virtual time: as fast as the machine can, deadlines NOT JUDGED");
  verb->add_option("--rate", options->rate, "real time: speed; any other than 1 is NOT JUDGED")
      ->check(CLI::Range(0.01, 100.0))
      ->capture_default_str();
  verb->add_option("--duration", options->duration_s, "run only the first seconds")->check(CLI::Range(0.0, 1e9));
  verb->add_option("--transport", options->transport, "iceoryx (shared memory) or local (in process)")
      ->check(CLI::IsMember({"iceoryx", "local"}))
      ->capture_default_str();
  verb->add_option("--roudi", options->roudi, "embedded, or external: use a running iox-roudi")
      ->check(CLI::IsMember({"embedded", "external"}))
      ->capture_default_str();
  verb->add_option("--gang", options->gang, "the same table with a stage on fewer cores: stage=k (repeatable)");
  verb->add_option("--isa", options->isa, "insist on this instruction set class of digests");
  verb->add_option("--digests", options->digests, "compare the output digests with this file");
  verb->add_option("--save-digests", options->save_digests, "write the output digests of this run into this file");
  verb->add_flag("--require-judged", options->require_judged, "exit 1 when deadlines could not be judged");
  verb->add_flag("--json", options->json, "print report.json on stdout");
  verb->add_flag("-q,--quiet", options->quiet, "no progress line, no summary");
  verb->callback([options, &chosen] { chosen = [options] { return run(*options); }; });
}

}  // namespace takt::app
