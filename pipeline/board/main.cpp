// takt-board: runs a bundle over a log, on a board that has neither compiler nor configuration files.
#include <CLI/CLI.hpp>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <new>
#include <string>
#include <system_error>

#include "pipeline/assembly/bundle_config.h"
#include "pipeline/assembly/runner.h"
#include "pipeline/bundle/bundle.h"
#include "pipeline/report/commands.h"
#include "pipeline/report/run_folder.h"
#include "pipeline/report/verdict.h"
#include "runtime/base/outputs.h"

namespace takt::board {
namespace {

std::atomic<bool> stopped{false};

struct Options {
  std::string bundle, log, out, transport = "iceoryx";
  bool lockstep = false, quiet = false;
  double duration_s = 0;
};

void tell(const pipeline::RunData& run, const pipeline::Judgement& judgement, const std::string& folder) {
  std::printf("%s: %llu hyperperiods of '%s', %s\n", pipeline::name_of(judgement.outcome),
              static_cast<unsigned long long>(run.dispatch.hyperperiods_run), run.problem.name.c_str(),
              run.mode.c_str());
  if (!run.modes.empty()) {
    std::string modes = "'" + run.modes.front().name + "'";
    for (const sched::ModeChange& change : run.dispatch.changes) modes += ", '" + run.modes[change.to].name + "'";
    std::printf("  modes one after the other: %s\n", modes.c_str());
  }
  for (std::size_t s = 0; s < run.problem.stages.size(); ++s) {
    std::size_t jobs = 0, ok = 0;
    for (const sched::JobRecord& record : run.records) {
      if (record.stage != s) continue;
      ++jobs;
      ok += record.job_class == sched::JobClass::kOk ? 1 : 0;
    }
    std::printf("  %-16s %zu of %zu jobs ok, %s\n", run.problem.stages[s].name.c_str(), ok, jobs,
                run.digests[s].digest.hex().c_str());
  }
  std::printf("report: takt report %s\n", pipeline::shell_quoted(folder).c_str());
}

// Plans of a bundle are of the cores, where a segment on a unit has no slot. In virtual time they need none.
Status check_cores(const Options& options, const pipeline::BoardPipeline& pipeline) {
  const sched::Problem& problem = pipeline.config.problem;
  for (const sched::ModeTable& mode : pipeline.modes) {
    for (std::size_t s = 0; s < problem.stages.size() && !options.lockstep; ++s) {
      if (!mode.runs(s)) continue;
      for (const sched::Segment& segment : mode.schedule.choices[s].budget.segments) {
        if (!segment.unit) continue;
        return fail(Code::kConfiguration,
                    options.bundle + ": stage '" + problem.stages[s].name + "' has a segment on unit '" +
                        problem.board.units[*segment.unit].name +
                        "', and takt-board runs plans on the cores alone so far: run the pipeline with takt replay "
                        "--device there, run the bundle with --lockstep, or bundle a pipeline whose stages have "
                        "budgets on the cores");
      }
    }
  }
  return {};
}

// The exit code: 0, 1 when a chain instance was violated, 130 when it was stopped.
Result<int> run(const Options& options) {
  TAKT_ASSIGN(const pipeline::Bundle bundle, pipeline::load_bundle(options.bundle));
  TAKT_ASSIGN(const pipeline::BoardPipeline pipeline, pipeline::pipeline_of(bundle));
  TAKT_RETURN_IF_ERROR(check_cores(options, pipeline));
  // Before the work: a run that cannot be written is not run.
  TAKT_ASSIGN(OutputFolder folder, OutputFolder::make(options.out));
  pipeline::RunOptions run_options;
  run_options.log_path = options.log;
  run_options.lockstep = options.lockstep;
  run_options.stop = &stopped;
  run_options.backend =
      options.transport == "local" ? transport::Backend::kLocal : transport::Backend::kIceoryxEmbedded;
  if (options.duration_s > 0) {
    run_options.max_hyperperiods =
        1 + static_cast<std::uint64_t>(
                options.duration_s * 1e9 / static_cast<double>(bundle.modes.front().problem.hyperperiod.ns) - 0.5);
  }
  TAKT_ASSIGN(pipeline::RunData data, pipeline::run_pipeline(pipeline.config, pipeline.modes, run_options));
  data.run_folder = options.out;
  data.command = pipeline::program() + " " + pipeline::shell_quoted(options.bundle) + " " +
                 pipeline::shell_quoted(options.log) + " -o " + pipeline::shell_quoted(options.out);
  TAKT_ASSIGN(const Digest digest, digest_file(options.bundle));
  data.inputs.push_back({"bundle", options.bundle, digest});
  // What it was made of: takt replay --reproduce tells by these that it has the same.
  for (const pipeline::BundleSource& source : bundle.sources) {
    data.inputs.push_back({source.role, options.bundle, source.digest});
  }
  TAKT_RETURN_IF_ERROR(pipeline::write_run_folder(data, options.out));
  folder.keep();
  const pipeline::Judgement judgement = pipeline::judge(data);
  if (!options.quiet) tell(data, judgement, options.out);
  if (stopped) return exit_code(Code::kInterrupted);
  return judgement.outcome == pipeline::Outcome::kFail ? exit_code(Code::kGate) : 0;
}

int main_of(int argc, char** argv) {
  Options options;
  pipeline::set_program(argc > 0 ? argv[0] : "takt-board");
  CLI::App app("Runs a bundle (takt schedule --bundle) over a log", "takt-board");
  app.add_option("bundle", options.bundle, "tables, plans, parameters: what takt schedule --bundle wrote")->required();
  app.add_option("log", options.log, "the drive (MCAP)")->required();
  app.add_option("-o,--out", options.out, "run folder, for takt report")->required();
  app.add_flag("--lockstep", options.lockstep, "virtual time: as fast as the board can, deadlines NOT JUDGED");
  app.add_option("--duration", options.duration_s, "run only so many seconds")->check(CLI::Range(0.001, 1e9));
  app.add_option("--transport", options.transport, "iceoryx (shared memory) or local (in process)")
      ->check(CLI::IsMember({"iceoryx", "local"}))
      ->capture_default_str();
  app.add_flag("-q,--quiet", options.quiet, "no summary");
  app.footer(
      "Exit codes: 0 ok, 1 gate failed (violated), 2 usage, 3 input, 4 configuration, 5 environment,\n"
      "70 an error of takt itself, 130 interrupted with a partial run folder.");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // --help
    std::fprintf(stderr, "takt-board: %s\n  -> %s --help\n", error.what(), pipeline::program().c_str());
    return exit_code(Code::kUsage);
  }
  std::signal(SIGINT, [](int) { stopped = true; });
  std::signal(SIGTERM, [](int) { stopped = true; });
  const Result<int> code = run(options);
  if (code) return *code;
  std::fprintf(stderr, "takt-board: %s\n", code.error().message.c_str());
  return exit_code(code.error().code);
}

}  // namespace
}  // namespace takt::board

int main(int argc, char** argv) {
  try {
    return takt::board::main_of(argc, argv);
  } catch (const std::bad_alloc&) {
    // Sizes that a file declares are bounded, but this board or its limits (ulimit) may have less.
    std::fputs("takt-board: out of memory\n  -> more memory for this process, or a smaller bundle\n", stderr);
  } catch (const std::system_error& error) {  // a thread that the system refuses
    std::fprintf(stderr, "takt-board: the system refuses: %s\n  -> look at the limits of this process (ulimit -a)\n",
                 error.what());
  }
  return takt::exit_code(takt::Code::kEnvironment);
}
