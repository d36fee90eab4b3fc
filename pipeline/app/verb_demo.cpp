// takt demo: the main job on the shipped drive, from admission to the report.

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>
#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <memory>

#include "pipeline/app/app.h"
#include "pipeline/assembly/environment.h"
#include "pipeline/assembly/profile.h"
#include "pipeline/report/commands.h"
#include "pipeline/report/diff.h"
#include "pipeline/report/report.h"
#include "pipeline/report/run_folder.h"
#include "scheduler/analysis/explain.h"
#include "scheduler/model/budgets.h"

namespace takt::app {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kQuickSamples = 200;  // exploratory; `takt profile` takes 1000

struct Options {
  std::string out = "runs/demo";
  std::string transport = "iceoryx";
};

void headline(const std::string& text) {
  std::printf("\n== %s\n", text.c_str());
  std::fflush(stdout);
}

// A process that keeps one core busy, so that equal digests mean something.
class CpuHog {
 public:
  CpuHog() {
    pid_ = fork();
    if (pid_ == 0) {
      alarm(600);  // never outlives a crashed parent for long
      volatile unsigned long spins = 0;
      for (;;) spins = spins + 1;
    }
  }
  ~CpuHog() {
    if (pid_ <= 0) return;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  CpuHog(const CpuHog&) = delete;
  CpuHog& operator=(const CpuHog&) = delete;

 private:
  pid_t pid_ = -1;
};

// Runs this program again with other arguments; its exit code, or 128 + signal.
int run_self(const std::vector<std::string>& arguments) {
  std::vector<std::string> words{pipeline::executable_path()};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  pid_t pid = 0;
  if (posix_spawn(&pid, argv[0], nullptr, nullptr, argv.data(), environ) != 0) return 127;
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

struct Demo {
  std::string pipeline, drive, digests, out;
  std::string transport;

  // Lockstep as a process of its own. The table is the one with the LiDAR stage on two cores; `parts` of them work.
  int lockstep(const std::string& folder, int parts) const {
    return run_self({"replay", pipeline, drive, "-o", folder, "--lockstep", "--quiet", "--what-if",
                     "lidar_detect.cores=2", "--gang", "lidar_detect=" + std::to_string(parts), "--digests", digests,
                     "--transport", transport});
  }

  Result<int> prove_digests() const {
    headline("2/4 Lockstep twice in separate processes: LiDAR on 2 cores, then on 1 core beside a CPU hog");
    const std::string two = out + "/lockstep-2-cores", one = out + "/lockstep-1-core";
    if (const int code = lockstep(two, 2); code != 0) return code;
    {
      const CpuHog hog;
      if (const int code = lockstep(one, 1); code != 0) return code;
    }
    TAKT_ASSIGN(const pipeline::RunData a, pipeline::load_run(two));
    TAKT_ASSIGN(const pipeline::RunData b, pipeline::load_run(one));
    const pipeline::DiffResult diff = pipeline::diff_runs(a, b);
    std::printf("%s\n", diff.outputs_equal ? "The two runs gave equal bytes on every stage topic."
                                           : ("The two runs DIFFER: " + diff.text()).c_str());
    bool differs = !diff.outputs_equal;
    std::size_t equal = 0;
    std::string reason;
    for (const pipeline::TopicDigest& topic : a.digests) {
      std::printf("  %-24s %s  %s\n", topic.topic.c_str(), topic.digest.hex().c_str(), topic.compared.c_str());
      equal += topic.compared == "equal" ? 1 : 0;
      differs = differs || topic.compared == "differs";
      if (topic.compared.rfind("NOT COMPARED", 0) == 0) reason = topic.compared;
    }
    if (equal == a.digests.size()) {
      std::printf("Your bytes equal ours (class %s).\n", a.environment.isa_class.c_str());
    } else if (!reason.empty()) {
      std::printf("With the checked-in digests: %s\n", reason.c_str());
    }
    return differs ? 1 : 0;
  }
};

Result<int> run_demo(const Options& options) {
  TAKT_ASSIGN(const std::string home, shipped_folder());
  Demo demo;
  demo.pipeline = (fs::path(home) / "configs/pipelines/sim.yaml").lexically_normal().string();
  demo.drive = (fs::path(home) / "replay_data/city.mcap").lexically_normal().string();
  demo.digests = (fs::path(home) / "replay_data/digests.json").lexically_normal().string();
  demo.out = options.out;
  demo.transport = options.transport;
  std::error_code error;
  fs::create_directories(demo.out, error);
  if (error) return fail(Code::kEnvironment, demo.out + ": the folder cannot be made: " + error.message());

  headline("1/4 Admission of the shipped (simulated) drive with declared budgets");
  ScheduleOptions schedule;
  schedule.pipeline = demo.pipeline;
  TAKT_ASSIGN(const Admitted declared, admit(schedule));
  std::fputs(sched::explain(declared.config.problem, declared.answer, 100).c_str(), stdout);
  if (declared.answer.verdict != sched::Verdict::kFeasible) return 1;

  TAKT_ASSIGN(const int digests, demo.prove_digests());
  if (digests != 0) return digests;
  if (interrupted()) return fail(Code::kInterrupted, "stopped before the real-time run");

  headline("3/4 Quick profile of this machine (" + std::to_string(kQuickSamples) + " samples each: exploratory)");
  pipeline::ProfileOptions quick;
  quick.samples = kQuickSamples;
  quick.beside = {pipeline::Beside::kStages};  // what there is in the run that follows
  quick.stop = &interrupted();
  pipeline::Profile profile;
  {
    Progress progress("profiling", false);
    quick.progress = [&](double done, double total) { progress.update(done, total); };
    TAKT_ASSIGN(profile, pipeline::profile_stages(declared.config, quick));
  }
  schedule.budgets = demo.out + "/budgets.yaml";
  TAKT_RETURN_IF_ERROR(sched::save_budgets(schedule.budgets, pipeline::budget_table(declared.config, profile)));
  TAKT_ASSIGN(const Admitted measured, admit(schedule));
  if (measured.answer.verdict != sched::Verdict::kFeasible) {
    std::fputs(sched::explain(measured.config.problem, measured.answer, 100).c_str(), stdout);
    std::printf("This machine is too slow for the shipped pipeline in real time; the lockstep results above stand.\n");
    return 1;
  }
  for (std::size_t s = 0; s < measured.config.problem.stages.size(); ++s) {
    const sched::Choice& choice = measured.answer.schedule->choices[s];
    const sched::Stage& stage = measured.config.problem.stages[s];
    std::printf("  %-16s %-5s %d core(s)  budget %7.3f ms (high water %.3f ms x %.2f)\n", stage.name.c_str(),
                stage.variants[choice.variant].name.c_str(), choice.budget.cores, choice.budget.time.ms(),
                choice.budget.high_water.ms(), choice.budget.margin);
  }
  for (const std::string& text : measured.answer.notes) std::printf("  note: %s\n", text.c_str());

  headline("4/4 Real-time replay with these budgets");
  const std::string run = demo.out + "/real-time";
  const int code = run_self(
      {"replay", demo.pipeline, demo.drive, "-o", run, "--budgets", schedule.budgets, "--transport", demo.transport});
  std::printf("\nReport:  %s\n", (fs::absolute(run) / "report.html").c_str());
  const std::string takt = "  " + pipeline::program(), file = pipeline::shell_quoted(demo.pipeline);
  const std::string two = pipeline::shell_quoted(demo.out + "/lockstep-2-cores");
  const std::string one = pipeline::shell_quoted(demo.out + "/lockstep-1-core");
  const std::string next = "Next:\n" +  //
                           takt + " schedule " + file +
                           " --what-if camera.latency=20ms   # infeasible, with the reason\n" +  //
                           takt + " diff " + two + " " + one + "\n" +                            //
                           takt + " profile " + file + " -o budgets.yaml   # 1000 samples per budget\n";
  std::fputs(next.c_str(), stdout);
  return code;
}

int run(const Options& options) {
  const Result<int> code = run_demo(options);
  return code ? *code : report_error(code.error());
}

}  // namespace

void add_demo(CLI::App& app, Command& chosen) {
  auto options = std::make_shared<Options>();
  CLI::App* verb = app.add_subcommand(
      "demo", "The shipped drive from admission to report: schedule, digests, profile, real-time replay");
  verb->add_option("-o,--out", options->out, "folder for the runs")->capture_default_str();
  verb->add_option("--transport", options->transport, "iceoryx (shared memory) or local (in process)")
      ->check(CLI::IsMember({"iceoryx", "local"}))
      ->capture_default_str();
  verb->callback([options, &chosen] { chosen = [options] { return run(*options); }; });
}

}  // namespace takt::app
