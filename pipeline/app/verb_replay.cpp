// takt replay: run an admitted pipeline over a log and leave a run folder with the report.

#include <sys/resource.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <mutex>

#include "pipeline/app/app.h"
#include "pipeline/app/devices.h"
#include "pipeline/app/numbers.h"
#include "pipeline/app/replay_keys.h"
#include "pipeline/app/supervise.h"
#include "pipeline/assembly/digests.h"
#include "pipeline/assembly/environment.h"
#include "pipeline/assembly/run_tables.h"
#include "pipeline/report/baselines.h"
#include "pipeline/report/commands.h"
#include "pipeline/report/report.h"
#include "pipeline/report/run_folder.h"
#include "runtime/base/outputs.h"
#include "scheduler/analysis/explain.h"
#include "scheduler/analysis/validate.h"

namespace takt::app {
namespace {

struct Options {
  ScheduleOptions schedule;
  std::string log, out, transport = "iceoryx", roudi = "embedded", isa, digests, save_digests, reproduce;
  std::vector<std::string> remap;
  pipeline::ReplayView view;
  bool exported = false, supervise = false, lockstep = false, quiet = false, json = false, require_judged = false,
       paused = false, watch = false, baselines = false;
  double rate = 1;
  double duration_s = 0;
  std::uint64_t loop = 1;
  std::string faults;
  std::string device = "cpu", device_memory;
};

constexpr Duration kSeek = seconds(5);

// What the keys ask for, shared between the key thread and the passes of one replay.
struct Controls {
  pipeline::ReplayGate gate;
  bool keys = false;              // there is a terminal
  std::atomic<bool> stop{false};  // ends the pass
  bool device_lost = false;       // in a pass of a supervised process
  std::mutex mutex;
  bool quit = false;
  std::optional<SensorTime> seek;  // where the next pass begins
};

void end_pass(Controls& controls) {
  controls.stop = true;
  controls.gate.resume();  // a paused pass would not reach its end
}

void on_key(Controls& controls, bool lockstep, Key key) {
  pipeline::ReplayGate& gate = controls.gate;
  if (key == Key::kNone) {
    if (interrupted()) end_pass(controls);
  } else if (key == Key::kSpace && !lockstep) {
    std::fprintf(stderr, "\r\033[Kreal time cannot be paused, its table is bound to the clock: use --lockstep\n");
  } else if (key == Key::kSpace && gate.paused()) {
    gate.resume();
  } else if (key == Key::kSpace) {
    gate.pause();
    std::fprintf(stderr, "\r\033[Kpaused near %.3f s: right = one hyperperiod, space = go on\n", gate.table_s());
  } else if (key == Key::kRight && gate.paused()) {
    gate.step();
  } else {
    const std::lock_guard lock(controls.mutex);
    if (key == Key::kQuit) {
      controls.quit = true;
    } else {
      controls.seek = gate.position() + (key == Key::kRight ? kSeek : -kSeek);
    }
    end_pass(controls);
  }
}

// "a:=b": topic a of the log under the name b.
Status read_remap(const std::vector<std::string>& texts, pipeline::ReplayView& view) {
  for (const std::string& text : texts) {
    const std::size_t sign = text.find(":=");
    if (sign == std::string::npos || sign == 0 || sign + 2 == text.size()) {
      return fail(Code::kUsage, "--remap expects topic_in_log:=topic_of_rig; found '" + text + "'");
    }
    view.remap.emplace_back(text.substr(0, sign), text.substr(sign + 2));
  }
  return {};
}

// The admitted tables, ready to be run as often as wanted.
struct Prepared {
  Admitted admitted;
  std::vector<sched::ModeTable> modes;                 // one without modes
  std::shared_ptr<const pipeline::RunData> reproduce;  // the run to repeat, whose tables these are
  std::optional<pipeline::FaultPlan> faults;           // of --faults; of the run to repeat, what it did to its log

  // That of --faults; null: there is none, or it is over with a process before this one.
  [[nodiscard]] const pipeline::FaultPlan* judged_faults() const { return faults && !reproduce ? &*faults : nullptr; }
};

// The inputs that decide bytes must be those of the run; kInput names the first that is another.
Status same_inputs(const pipeline::RunData& before, const Options& options, const pipeline::PipelineConfig& config) {
  for (const pipeline::HashedInput& input : before.inputs) {
    std::string path;
    if (input.role == "log") path = options.log;
    if (input.role == "pipeline") path = config.file;
    if (input.role == "rig") path = config.rig_file;
    if (path.empty()) continue;
    TAKT_ASSIGN(const Digest digest, digest_file(path));
    if (digest != input.digest) {
      return fail(Code::kInput, path + ": this is not the " + input.role + " of the run in " + options.reproduce +
                                    " (" + input.path + ")");
    }
  }
  return {};
}

// A run folder is a file like any other: its table must be one of this pipeline, and hold.
Status same_pipeline(const pipeline::RunData& before, const Options& options, const sched::Problem& problem) {
  const auto other = [&](const std::string& what) {
    return fail(Code::kInput, options.reproduce + ": the run is of another pipeline: " + what);
  };
  if (before.problem.stages.size() != problem.stages.size()) return other("it has another number of stages");
  if (before.problem.sensors.size() != problem.sensors.size()) return other("it has another number of sensors");
  for (std::size_t s = 0; s < problem.stages.size(); ++s) {
    const sched::Stage& was = before.problem.stages[s];
    if (was.name != problem.stages[s].name || was.inputs.size() != problem.stages[s].inputs.size()) {
      return other("its stage '" + was.name + "' stands where this one has '" + problem.stages[s].name + "'");
    }
  }
  for (const char* const role : {"log", "pipeline", "rig"}) {
    if (std::none_of(before.inputs.begin(), before.inputs.end(),
                     [&](const pipeline::HashedInput& input) { return input.role == role; })) {
      return other(std::string("it does not name its ") + role);
    }
  }
  constexpr std::uint64_t kMostHyperperiods = 100'000'000;
  if (before.dispatch.hyperperiods_run > kMostHyperperiods) return other("it ran too many hyperperiods");
  TAKT_RETURN_IF_ERROR(sched::check(before.problem));
  // Of modes the dispatcher checks that they can be run; their own problems are not in the folder.
  if (!before.modes.empty()) return {};
  return sched::validate(before.problem, before.schedule);
}

// Table and problem of an earlier run instead of an admission: they decided its bytes.
Result<Prepared> prepare_again(const Options& options) {
  std::error_code ignored;
  if (std::filesystem::equivalent(options.reproduce, options.out, ignored)) {
    return fail(Code::kUsage, "--reproduce and -o name one folder; the run that is repeated would be written over");
  }
  if (pipeline::is_pass_of(options.reproduce, options.out)) {
    return fail(Code::kUsage, options.reproduce + ": --reproduce names a pass of the run in " + options.out +
                                  ", which -o replaces with its passes: name another folder with -o");
  }
  TAKT_ASSIGN(pipeline::RunData before, pipeline::load_run(options.reproduce));
  Prepared out;
  TAKT_ASSIGN(const pipeline::ModelFiles models, model_files(options.schedule.models));
  TAKT_ASSIGN(out.admitted.config, pipeline::load_pipeline(options.schedule.pipeline, models, options.schedule.device));
  TAKT_RETURN_IF_ERROR(same_inputs(before, options, out.admitted.config));
  TAKT_RETURN_IF_ERROR(same_pipeline(before, options, out.admitted.config.problem));
  if (before.faults) {
    std::vector<std::string> modes;
    for (const sched::ModeTable& mode : before.modes) modes.push_back(mode.name);
    // What was done to stages and to the process is in the records of their jobs; what was done to the log is not.
    TAKT_ASSIGN(pipeline::FaultPlan faults,
                pipeline::parse_faults(before.faults->text, options.reproduce + "/run.json, its faults", before.problem,
                                       before.rig, modes));
    out.faults.emplace();
    out.faults->name = faults.name;
    out.faults->what = faults.what;
    out.faults->text = faults.text;
    out.faults->sensors = std::move(faults.sensors);
  }
  out.admitted.config.problem = before.problem;
  out.modes = before.modes.empty() ? std::vector<sched::ModeTable>{sched::only_table(before.problem, before.schedule)}
                                   : before.modes;
  out.reproduce = std::make_shared<const pipeline::RunData>(std::move(before));
  return out;
}

// The command that gives the answer of this admission, with everything that it has to show.
std::string schedule_command(const ScheduleOptions& asked) {
  std::string out = pipeline::program() + " schedule " + pipeline::shell_quoted(asked.pipeline);
  const auto add = [&out](const char* option, const std::string& value) {
    out += std::string(" ") + option + " " + pipeline::shell_quoted(value);
  };
  if (!asked.budgets.empty()) add("--budgets", asked.budgets);
  for (const std::string& change : asked.what_if) add("--what-if", change);
  for (const std::string& model : asked.models) add("--model", model);
  if (asked.device.device) add("--target", kernels::name_of(asked.device.target));
  if (asked.seed != ScheduleOptions{}.seed) add("--seed", std::to_string(asked.seed));
  if (asked.nodes != ScheduleOptions{}.nodes) add("--nodes", std::to_string(asked.nodes));
  return out;
}

Result<Prepared> prepare(const Options& options) {
  if (!options.isa.empty() && options.isa != pipeline::isa_class()) {
    return fail(Code::kUsage, "--isa " + options.isa + ": this build computes as " + pipeline::isa_class() +
                                  " only (its kernels give these bytes on every target)");
  }
  // The log is opened before the search: a mistyped path should not cost seconds.
  TAKT_RETURN_IF_ERROR(sensors::open_log(options.log));
  if (!options.save_digests.empty()) TAKT_RETURN_IF_ERROR(can_write_file(options.save_digests));
  if (!options.digests.empty()) TAKT_RETURN_IF_ERROR(pipeline::check_digests(options.digests));
  if (!options.reproduce.empty()) return prepare_again(options);
  Prepared out;
  TAKT_ASSIGN(out.admitted, admit(options.schedule));
  const Admitted& admitted = out.admitted;
  if (admitted.answer.verdict != sched::Verdict::kFeasible) {
    std::string text = "not admitted, nothing was run\n" +
                       (admitted.config.modes ? admitted.answer.reason
                                              : sched::explain(admitted.config.problem, admitted.answer, 100));
    if (admitted.answer.certificate) {
      text += "\nthe certificate into a file: " + schedule_command(options.schedule) + " --certificate FILE";
    }
    return fail(Code::kGate, std::move(text));
  }
  out.modes = admitted.modes;
  if (out.modes.empty()) out.modes.push_back(sched::only_table(admitted.config.problem, *admitted.answer.schedule));
  if (options.baselines && !pipeline::in_one_piece(out.modes.front().schedule)) {
    return fail(Code::kConfiguration,
                options.schedule.pipeline +
                    ": --baselines runs every job in one piece on its home cores, and this table has jobs in several "
                    "segments: leave it out, or ask a copy of the file whose budgets have no 'segments'");
  }
  if (!options.faults.empty()) {
    std::vector<std::string> modes;
    for (const sched::ModeTable& mode : admitted.modes) modes.push_back(mode.name);
    TAKT_ASSIGN(out.faults,
                pipeline::load_faults(options.faults, admitted.config.problem, *admitted.config.rig, modes));
    if (!out.faults->devices.empty() && options.schedule.device.device == nullptr) {
      return fail(Code::kUsage, out.faults->devices.front().where +
                                    ": this run has no device that could fail: name one with --device");
    }
    for (const pipeline::DeviceFault& fault : out.faults->devices) {
      const pipeline::StageConfig& stage = admitted.config.stages[fault.stage];
      if (std::none_of(stage.variants.begin(), stage.variants.end(), [](const auto& v) { return v.on_device; })) {
        return fail(Code::kConfiguration, fault.where + ": this fault never strikes: no variant of stage '" +
                                              stage.name + "' runs on the device");
      }
    }
    // What a device does to a process is over with that process.
    if (restarts_before().value_or(0) > 0 && !out.faults->devices.empty()) out.faults.reset();
    if (!out.faults) return out;
    if (options.lockstep && out.faults->needs_real_time()) {
      return fail(Code::kUsage, options.faults +
                                    ": faults of stages and of the process are of real time, and --lockstep "
                                    "knows none: leave it out");
    }
    if (out.faults->needs_iceoryx() && (options.transport == "local" || options.roudi == "external")) {
      return fail(Code::kUsage, options.faults +
                                    ": other processes take part in it, with a RouDi of this run's own: it needs "
                                    "--transport iceoryx and --roudi embedded");
    }
  }
  return out;
}

// Every topic's digest beside that of the run that was reproduced.
void compare_with(const pipeline::RunData& before, pipeline::RunData& data) {
  for (std::size_t i = 0; i < data.digests.size(); ++i) {
    const bool equal = i < before.digests.size() && before.digests[i].digest == data.digests[i].digest;
    if (!equal && before.lost_outputs > 0) {
      data.digests[i].compared = "NOT COMPARED: the recorder of that run lost " + std::to_string(before.lost_outputs) +
                                 " outputs before they were digested";
      continue;
    }
    data.digests[i].compared = equal ? "equal" : "differs";
  }
}

// While it lives, no file of this process can grow beyond 64 KiB: what a full disk does to those that write.
class FullDisk {
 public:
  FullDisk() {
    getrlimit(RLIMIT_FSIZE, &before_);
    signal_before_ = std::signal(SIGXFSZ, SIG_IGN);
    const rlimit full{64 << 10, before_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &full);
  }
  ~FullDisk() {
    setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, signal_before_);
  }
  FullDisk(const FullDisk&) = delete;
  FullDisk& operator=(const FullDisk&) = delete;

 private:
  rlimit before_{};
  void (*signal_before_)(int) = SIG_DFL;
};

// Each expectation that was not met. 0, or the exit code of a failed gate.
int tell_faults(const pipeline::FaultReport& report) {
  for (const pipeline::FaultExpectation& e : report.expectations) {
    if (e.met) continue;
    std::fprintf(stderr, "takt: fault '%s': %s: expected %s, seen %s\n", report.name.c_str(), e.what.c_str(),
                 e.expected.c_str(), e.seen.c_str());
  }
  return report.met() ? 0 : exit_code(Code::kGate);
}

// The same of a run that ended with an error, and left no report that could say how many were met.
int tell_faults_without_report(const pipeline::FaultReport& report, bool quiet) {
  const int code = tell_faults(report);
  if (!quiet) std::printf("faults   %s\n", pipeline::expectations_met(report).c_str());
  return code;
}

// A run of the admitted table as the options ask for it.
pipeline::RunOptions run_options(const Options& options, const Prepared& prepared, const pipeline::ReplayView& view,
                                 Controls& controls) {
  pipeline::RunOptions run;
  run.log_path = options.log;
  run.view = view;
  run.lockstep = options.lockstep;
  run.exported = options.exported;
  run.reproduce = prepared.reproduce.get();
  run.rate = options.rate;
  run.faults = prepared.faults ? &*prepared.faults : nullptr;
  run.stop = controls.keys ? &controls.stop : &interrupted();
  run.gate = &controls.gate;
  run.backend = options.transport == "local"  ? transport::Backend::kLocal
                : options.roudi == "external" ? transport::Backend::kIceoryxExternal
                                              : transport::Backend::kIceoryxEmbedded;
  if (options.duration_s > 0) {
    const double h = static_cast<double>(prepared.modes.front().schedule.clock.hyperperiod.ns);
    run.max_hyperperiods = std::max<std::uint64_t>(1, static_cast<std::uint64_t>(options.duration_s * 1e9 / h + 0.5));
  }
  return run;
}

// Runs every way at every load beside the run in `data`, and takes their figures into it. Of several modes the first
// one alone is compared, so that it is run anew as the table has it, too.
Status measure_baselines(const Options& options, const Prepared& prepared, const pipeline::ReplayView& view,
                         Controls& controls, pipeline::RunData& data) {
  if (data.dispatch.still_inside) {
    return fail(Code::kEnvironment,
                "--baselines: a worker of this run has not come back from a driver, so that this "
                "process can run nothing more; the run itself is whole");
  }
  constexpr std::uint64_t kFewest = 5;
  const std::uint64_t compared = pipeline::compared_hyperperiods(data);
  if (compared < kFewest) {
    return fail(Code::kInput, options.log + ": --baselines compares whole hyperperiods of the log, at least " +
                                  std::to_string(kFewest) + ", and this run had " + std::to_string(compared));
  }
  pipeline::RunOptions run = run_options(options, prepared, view, controls);
  run.max_hyperperiods = compared + 2;  // what arrives in the last ones still comes through
  const bool one_of_many = prepared.modes.size() > 1;
  std::vector<sched::ModeTable> alone{prepared.modes.front()};
  alone.front().exits.clear();
  alone.front().lost.reset();
  alone.front().seams.clear();
  for (const double load : pipeline::kLoads) {
    for (const pipeline::Way way : pipeline::kWays) {
      if (way == pipeline::Way::kTable && load == 1 && !one_of_many) {
        data.measured.push_back(pipeline::measure(data, way, load, compared));
        continue;
      }
      run.way = way;
      run.load = load;
      char label[64];
      std::snprintf(label, sizeof label, "%s at %gx", name_of(way), load);
      Progress progress(label, options.quiet);
      run.progress = [&progress](double done, double total) { progress.update(done, total); };
      TAKT_ASSIGN(pipeline::RunData other, pipeline::run_pipeline(prepared.admitted.config, alone, run));
      if (other.interrupted) {
        data.measured.clear();
        data.schedule_notes.push_back("--baselines was interrupted: there is nothing to compare");
        return {};
      }
      if (other.lost_records > 0) {
        data.environment.warnings.push_back(std::string(label) + ": " + std::to_string(other.lost_records) +
                                            " records were lost; its figures are of the others");
      }
      if (one_of_many) other.problem = pipeline::problem_of_mode(other.problem, alone.front());
      data.measured.push_back(pipeline::measure(other, way, load, compared));
    }
  }
  return {};
}

// One pass over the log (or its window) into one run folder. `finite`: false when watching has found something.
Result<pipeline::RunData> execute(const Options& options, const Prepared& prepared, const pipeline::ReplayView& view,
                                  const std::string& folder, Controls& controls, bool& finite) {
  const Admitted& admitted = prepared.admitted;
  pipeline::RunOptions run = run_options(options, prepared, view, controls);
  std::optional<Progress> progress(std::in_place, options.lockstep ? "lockstep" : "replaying", options.quiet);
  if (!options.quiet && !options.json) {
    run.planned = [](const transport::PoolPlan& pools) { std::printf("%s\n", pools.text().c_str()); };
  }
  if (restarts_before() && admitted.config.device.device) {
    run.device_lost = [&controls](const std::string&) { controls.device_lost = true; };
  }
  std::vector<std::string> findings;
  if (options.watch) {
    run.non_finite = [&](const std::string& stage, const exec::NonFinite& found, const plan::Plan& plan) {
      findings.push_back("stage " + stage + ", run " + std::to_string(found.run) + ": " + exec::to_string(found, plan));
    };
  }
  run.progress = [&progress](double done, double total) { progress->update(done, total); };
  TAKT_ASSIGN(pipeline::RunData data, pipeline::run_pipeline(admitted.config, prepared.modes, run));
  progress.reset();
  finite = findings.empty();
  for (const std::string& finding : findings) {
    std::fprintf(stderr, "takt: %s\n", finding.c_str());
    data.environment.warnings.push_back(finding);
  }
  if (const int restarts = restarts_before().value_or(0); restarts > 0) {
    data.environment.warnings.insert(
        data.environment.warnings.begin(),
        "this process is number " + std::to_string(restarts + 1) +
            " of the run, after others that ended early: supervision.json in the run folder says how");
  }
  data.run_folder = folder;
  // A child of a supervised run is started without it.
  data.command = command_line() + (restarts_before() ? " --supervise" : "");
  for (const std::string& model : options.schedule.models) data.options.insert(data.options.end(), {"--model", model});
  if (options.device != Options{}.device) data.options.insert(data.options.end(), {"--device", options.device});
  if (!options.device_memory.empty()) {
    data.options.insert(data.options.end(), {"--device-memory", options.device_memory});
  }
  data.schedule_notes.insert(data.schedule_notes.begin(), admitted.answer.notes.begin(), admitted.answer.notes.end());
  if (!options.schedule.budgets.empty()) {
    TAKT_ASSIGN(const Digest hash, digest_file(options.schedule.budgets));
    data.inputs.push_back({"budgets", options.schedule.budgets, hash});
  }
  if (const pipeline::FaultPlan* const faults = prepared.judged_faults()) {
    data.inputs.push_back({"faults", options.faults, digest(faults->text)});
  }
  if (!options.digests.empty()) TAKT_RETURN_IF_ERROR(pipeline::compare_digests(data, options.digests));
  if (prepared.reproduce) {
    TAKT_ASSIGN(const Digest hash, digest_file(options.reproduce + "/records.mcap"));
    data.inputs.push_back({"repeated run", options.reproduce, hash});
    compare_with(*prepared.reproduce, data);
  }
  for (pipeline::TopicDigest& topic : data.digests) {
    if (data.interrupted && !topic.compared.empty()) topic.compared = "NOT COMPARED: the run was interrupted";
  }
  return data;
}

// What a pass came to, as an exit code.
int judged_exit(const Options& options, const pipeline::RunData& data, pipeline::Outcome outcome) {
  if (!data.log_problems.empty()) {
    std::fprintf(stderr,
                 "takt: the log is damaged in %zu place(s), first: %s at byte %llu; what could be read was run\n",
                 data.log_problems.size(), data.log_problems.front().kind.c_str(),
                 static_cast<unsigned long long>(data.log_problems.front().offset));
    return exit_code(Code::kInput);
  }
  if (outcome == pipeline::Outcome::kFail) return exit_code(Code::kGate);
  if (outcome == pipeline::Outcome::kNotJudged && options.require_judged) return exit_code(Code::kGate);
  return 0;
}

bool equal_digests(const std::vector<pipeline::TopicDigest>& a, const std::vector<pipeline::TopicDigest>& b) {
  return std::equal(
      a.begin(), a.end(), b.begin(), b.end(),
      [](const pipeline::TopicDigest& x, const pipeline::TopicDigest& y) { return x.digest == y.digest; });
}

void print_clock_findings(const pipeline::RunData& data) {
  for (const std::string& warning : data.environment.warnings) {
    if (warning.rfind("clock check", 0) == 0) std::fprintf(stderr, "takt: %s\n", warning.c_str());
  }
}

// Passes over the log until its end has been reached --loop times. The first one fills the run folder, each further one
// a folder of its own inside.
int run(const Options& options) {
  if (options.supervise) return supervise(options.out);
  pipeline::ReplayView view = options.view;
  if (const Status status = read_remap(options.remap, view); !status) return report_error(status.error());
  Controls controls;
  controls.keys = ReplayKeys::available();
  if (options.paused && !(options.lockstep && controls.keys)) {
    return report_error({Code::kUsage, "--paused needs --lockstep and a terminal, whose keys go on"});
  }
  if (options.transport == "local") {
    for (const auto& [given, option] :
         {std::pair{options.exported, "--export"}, std::pair{options.roudi == "external", "--roudi external"}}) {
      if (!given) continue;
      return report_error({Code::kUsage, std::string(option) +
                                             " is about other processes, which --transport local keeps "
                                             "out: leave one of them out"});
    }
  }
  Options placed = options;
  if (Result<pipeline::DevicePlace> device = open_device(options.device, options.device_memory); device) {
    placed.schedule.device = *std::move(device);
  } else {
    return report_error(device.error());
  }
  // The run folder first: when it cannot be written, nothing is computed in vain.
  Result<OutputFolder> folder_made = OutputFolder::make(options.out);
  if (!folder_made) return report_error(folder_made.error());
  const Result<Prepared> prepared = prepare(placed);
  if (!prepared) return report_error(prepared.error());

  if (options.paused) {
    controls.gate.pause();
    std::fprintf(stderr, "takt: paused at 0: right = one hyperperiod, space = go on\n");
  }
  std::unique_ptr<ReplayKeys> keys;
  if (controls.keys) {
    keys = std::make_unique<ReplayKeys>([&](Key key) { on_key(controls, options.lockstep, key); });
  }
  std::vector<std::string> reports;
  std::vector<pipeline::TopicDigest> first_digests;
  int worst = 0;
  std::uint64_t finished = 0;  // passes that reached the end
  for (std::uint64_t pass = 1; finished < options.loop; ++pass) {
    const std::string folder = pass == 1 ? options.out : pipeline::pass_folder(options.out, pass);
    if (pass > 1 && !options.quiet) {
      std::fprintf(stderr, "takt: pass %llu, %s: log time is set back, every stage begins without state\n",
                   static_cast<unsigned long long>(pass), view.seek ? "after a seek" : "looping");
    }
    bool finite = true;
    Result<pipeline::RunData> data = execute(options, *prepared, view, folder, controls, finite);
    const pipeline::FaultPlan* const faults = prepared->judged_faults();
    const sched::Problem& problem = prepared->admitted.config.problem;
    if (!data) {
      const int code = report_error(data.error());
      // What was asked for wrongly is no fault that a run could bear.
      const Code why = data.error().code;
      if (faults == nullptr || why == Code::kUsage || why == Code::kConfiguration) return code;
      return tell_faults_without_report(check_faults(*faults, problem, nullptr, code), options.quiet || options.json);
    }
    Status compared;
    if (options.baselines && !data->interrupted) {
      compared = measure_baselines(options, *prepared, view, controls, *data);
      if (!compared) {  // that costs the comparison, not the run
        data->measured.clear();
        data->schedule_notes.push_back("--baselines: nothing was compared: " + compared.error().message);
      }
    }
    if (pass == 1) {
      first_digests = data->digests;
    } else {
      std::string note = "pass " + std::to_string(pass) + (view.seek ? " (after a seek)" : " (loop)") +
                         ": every stage began without state";
      if (!view.seek && !data->interrupted) {
        note += equal_digests(first_digests, data->digests) ? "; outputs equal those of the first pass"
                                                            : "; outputs differ from those of the first pass";
      }
      if (!options.quiet) std::fprintf(stderr, "takt: %s\n", note.c_str());
      data->schedule_notes.push_back(std::move(note));
    }
    if (faults != nullptr) {
      data->faults = check_faults(*faults, problem, &*data, judged_exit(options, *data, pipeline::outcome_of(*data)));
    }
    const Result<pipeline::Outcome> outcome = [&] {
      std::optional<FullDisk> full;
      if (faults != nullptr && faults->fills_disk()) full.emplace();
      return pipeline::write_run(*data, folder);
    }();
    if (!outcome) {
      const int code = report_error(outcome.error());
      if (faults == nullptr) return code;
      data->faults->expectations.clear();  // of a run that could be written
      return tell_faults_without_report(check_faults(*faults, problem, &*data, code), options.quiet || options.json);
    }
    folder_made->keep();
    if (!options.save_digests.empty() && (data->interrupted || view.seek)) {
      std::fprintf(stderr, "takt: %s: not written, this pass covers a part of the run alone\n",
                   options.save_digests.c_str());
    } else if (!options.save_digests.empty()) {
      if (const Status saved = pipeline::save_digests(*data, options.save_digests); !saved) {
        return report_error(saved.error());
      }
    }
    if (pass == 1 && !options.quiet) print_clock_findings(*data);
    if (options.json) {
      reports.push_back(pipeline::report_json(*data));
    } else if (!options.quiet) {
      std::fputs(pipeline::ten_lines(*data).c_str(), stdout);
    }
    int code = finite ? judged_exit(options, *data, *outcome) : exit_code(Code::kGate);
    if (faults != nullptr) {
      const int borne = tell_faults(*data->faults);
      if (finite) code = borne;
    }
    if (!compared) code = report_error(compared.error());
    if (controls.device_lost) return code == 0 ? kRestartMe : kRestartMeFailed;
    if (worst == 0) worst = code;
    if (data->dispatch.still_inside) break;  // what a further pass would use may be held for good

    const std::lock_guard lock(controls.mutex);
    if (interrupted() || controls.quit) {
      worst = exit_code(Code::kInterrupted);
      break;
    }
    view.seek = controls.seek;
    controls.seek.reset();
    controls.stop = false;
    if (!view.seek) ++finished;
  }
  if (reports.size() == 1) std::printf("%s\n", reports.front().c_str());
  for (std::size_t i = 0; reports.size() > 1 && i < reports.size(); ++i) {
    std::printf("%s%s%s", i == 0 ? "[" : ",\n", reports[i].c_str(), i + 1 == reports.size() ? "]\n" : "");
  }
  return worst;
}

}  // namespace

void add_replay(CLI::App& app, Command& chosen) {
  auto options = std::make_shared<Options>();
  CLI::App* verb = app.add_subcommand("replay", "Run an admitted pipeline over a log; leaves a folder with the report");
  add_schedule_options(*verb, options->schedule);
  verb->add_option("log", options->log, "the drive (MCAP)")->required();
  verb->add_option("-o,--out", options->out, "run folder")->required();
  verb->add_flag("--lockstep", options->lockstep, "virtual time: as fast as the machine can, deadlines NOT JUDGED");
  verb->add_option("--rate", options->rate, "real time, so not with --lockstep: speed; any other than 1 is NOT JUDGED")
      ->check(number_in(0.01, 100))
      ->capture_default_str();
  verb->add_option("--start", options->view.start,
                   "begin here: seconds from the start of the log (12.5), or ISO 8601 (2024-05-01T12:00:00.5Z)");
  verb->add_option("--end", options->view.end, "end before this time, given like --start");
  verb->add_option("--duration", options->duration_s, "run only so many seconds")->check(number_in(0.001, 1e9));
  verb->add_option("--loop", options->loop,
                   "run so many passes; each begins without state, the first fills the run folder, the others "
                   "OUT/pass-2, ...")
      ->check(count_in(1, 1'000'000))
      ->capture_default_str();
  verb->add_option("--faults", options->faults,
                   "do to the run what this file says (configs/faults), and judge whether it bears that as expected: "
                   "exit code 0 or 1");
  verb->add_flag(
      "--baselines", options->baselines,
      "real time: then run the same stages on the same drive and cores without the table, event-driven (FIFO, "
      "EDF) and in epochs, all at 1.0, 1.2 and 2.0 times their CPU time, 10 s of the log at most each; the "
      "report sets them beside the table and the simulation. Of a pipeline with modes: in its first one, alone");
  verb->add_option("--topics", options->view.topics,
                   "only sensors whose topic matches this shell pattern (repeatable); stages run without the others");
  verb->add_option("--exclude", options->view.exclude, "no sensors whose topic matches (repeatable)");
  verb->add_option("--remap", options->remap, "topic_in_log:=topic_of_rig (repeatable)");
  verb->add_flag("--paused", options->paused, "begin paused; --lockstep on a terminal only");
  add_device_options(*verb, options->device, options->device_memory);
  verb->add_option("--transport", options->transport, "iceoryx (shared memory) or local (in process)")
      ->check(CLI::IsMember({"iceoryx", "local"}))
      ->capture_default_str();
  verb->add_flag("--export", options->exported,
                 "copy every output and the watchdog's status to export topics, to which any process may subscribe");
  verb->add_option("--roudi", options->roudi, "embedded, or external: use a running iox-roudi")
      ->check(CLI::IsMember({"embedded", "external"}))
      ->capture_default_str();
  verb->add_option("--gang", options->schedule.gang,
                   "the same table with a stage on fewer of its cores, in every mode: stage=k (repeatable)");
  verb->add_option("--isa", options->isa, "insist on this instruction set class of digests");
  verb->add_option("--digests", options->digests, "compare the output digests with this file");
  verb->add_option("--reproduce", options->reproduce,
                   "repeat the decisions of the run in this folder, in virtual time: the same bytes, whatever overran, "
                   "was skipped or came late there; exit 1 when they differ")
      ->check(CLI::ExistingDirectory);
  verb->add_option("--save-digests", options->save_digests,
                   "write the output digests of this run, if it is a whole one, into this file");
  verb->add_flag(
      "--require-judged", options->require_judged,
      "exit 1 when deadlines could not be judged; not with --lockstep or --reproduce, which never judge them");
  verb->add_flag("--watch-nan", options->watch,
                 "watch what compiled networks compute: the first NaN or infinity of each stage, exit 1 (slow)");
  verb->add_flag("--supervise", options->supervise,
                 "run in a child process; one that a signal ends is started again, and OUT/supervision.json says so");
  verb->add_flag("--json", options->json, "print report.json on stdout");
  verb->add_flag("-q,--quiet", options->quiet, "no progress line, no summary");
  verb->footer(
      "Keys on a terminal: left and right seek by 5 s (a new pass: stages begin without state, results go into\n"
      "OUT/pass-N), q ends with a report of the part that ran. With --lockstep, space pauses and goes on, and right\n"
      "steps one hyperperiod while paused; real time cannot be paused, because its table is bound to the clock.");
  verb->callback([options, verb, &chosen] {
    constexpr const char* kAsItWas = "a run is repeated as its table and its records have it";
    refuse_together(*verb,
                    {{"--rate", "--lockstep", "virtual time runs as fast as the machine can"},
                     {"--require-judged", "--lockstep", "in virtual time deadlines are never judged"},
                     {"--require-judged", "--reproduce", "a run that is repeated takes virtual time"},
                     {"--baselines", "--lockstep", "other ways to schedule are measured in real time"},
                     {"--baselines", "--rate", "other ways to schedule are measured at the speed of the drive"},
                     {"--baselines", "--faults", "other ways to schedule are compared on a run without faults"},
                     {"--baselines", "--reproduce", "a run that is repeated takes virtual time"},
                     {"--reproduce", "--rate", "a run that is repeated takes virtual time"},
                     {"--reproduce", "--duration", "a run that is repeated is as long as it was"},
                     {"--reproduce", "--faults", "the run's own faults are done to it again"},
                     {"--reproduce", "--digests", "the outputs are compared with those of the run that is repeated"},
                     {"--reproduce", "--gang", kAsItWas},
                     {"--reproduce", "--what-if", kAsItWas},
                     {"--reproduce", "--budgets", kAsItWas},
                     {"--reproduce", "--seed", kAsItWas},
                     {"--reproduce", "--nodes", kAsItWas}});
    options->lockstep = options->lockstep || !options->reproduce.empty();
    chosen = [options] { return run(*options); };
  });
}

}  // namespace takt::app
