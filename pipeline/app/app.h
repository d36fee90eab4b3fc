// The verbs of the `takt` command. Each file verb_NAME.cpp adds one subcommand; the chosen one is run after parsing.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

#include "pipeline/assembly/pipeline_file.h"
#include "pipeline/assembly/runner.h"
#include "runtime/base/status.h"
#include "scheduler/model/model.h"
#include "scheduler/synthesis/synthesis.h"

namespace CLI {
class App;
}

namespace takt::app {

using Command = std::function<int()>;

void add_demo(CLI::App& app, Command& chosen);
void add_simulate(CLI::App& app, Command& chosen);
void add_init(CLI::App& app, Command& chosen);
void add_rig(CLI::App& app, Command& chosen);
void add_model(CLI::App& app, Command& chosen);
void add_compile(CLI::App& app, Command& chosen);
void add_plan(CLI::App& app, Command& chosen);
void add_schedule(CLI::App& app, Command& chosen);
void add_profile(CLI::App& app, Command& chosen);
void add_replay(CLI::App& app, Command& chosen);
void add_report(CLI::App& app, Command& chosen);
void add_diff(CLI::App& app, Command& chosen);
void add_log(CLI::App& app, Command& chosen);
void add_doctor(CLI::App& app, Command& chosen);

// The command line as given, for "the command that reproduces this".
void set_command_line(int argc, char** argv);
const std::string& command_line();

// Two options of a verb that cannot both be meant, and why.
struct Exclusion {
  const char *one, *other, *why;
};
// For a verb's callback: a usage error (CLI::ParseError) where both options of any were given.
void refuse_together(const CLI::App& verb, std::initializer_list<Exclusion> exclusions);

// Prints "takt: message" to stderr and returns the exit code of the error.
int report_error(const Error& error);

// Set by SIGINT and SIGTERM; a second signal ends the process at once.
const std::atomic<bool>& interrupted();
void install_signal_handlers();

// One status line on a terminal, nothing in pipes. update() is cheap and may be called from any one thread.
class Progress {
 public:
  Progress(std::string label, bool quiet);
  ~Progress();
  // `rate`: shown behind the share ("120 MB/s") instead of the two numbers.
  void update(double done, double total, const char* rate = nullptr);

 private:
  std::string label_;
  bool enabled_;
  std::int64_t last_ns_ = 0;
  std::int64_t start_ns_ = 0;
};

// Options shared by the verbs that need an admitted schedule.
struct ScheduleOptions {
  std::string pipeline;
  std::string budgets;               // "" = declared budgets
  std::vector<std::string> what_if;  // "stage.budget=+20%"
  std::vector<std::string> models;   // "stage=FILE", "stage/variant=FILE"
  pipeline::DevicePlace device;      // what networks run on
  std::string board;                 // another board file than the pipeline names
  std::vector<std::string> gang;     // "stage=k": the table as found, with the stage on k of its cores in every mode
  std::uint64_t seed = 1;
  std::uint64_t nodes = sched::SynthesisOptions{}.node_limit;
};
// --model STAGE=FILE, and what was given with it. kUsage when it has another form.
void add_model_option(CLI::App& verb, std::vector<std::string>& models);
Result<pipeline::ModelFiles> model_files(const std::vector<std::string>& models);

void add_schedule_options(CLI::App& verb, ScheduleOptions& options, bool positional_pipeline = true);

struct Admitted {
  // Problem and modes: as changed by the what-ifs; on core counts, only where no gang is asked for.
  pipeline::PipelineConfig config;
  sched::Answer answer;                     // of a pipeline with modes: their common verdict, and the first one's table
  std::vector<sched::Answer> mode_answers;  // by mode, where it has modes
  std::vector<sched::ModeTable> modes;      // where it has modes, and they are feasible
};
// Loads, applies budgets and what-ifs, synthesizes, takes cores away as `gang` says, and lets the independent validator
// check the table; with modes, every mode's and every change between them.
Result<Admitted> admit(const ScheduleOptions& options);

// The folder that holds configs/ and replay_data/: beside the executable's build folder, or TAKT_HOME.
Result<std::string> shipped_folder();

}  // namespace takt::app
