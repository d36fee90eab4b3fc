// takt init: a rig and a pipeline for a log that has none.

#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <memory>

#include "pipeline/app/app.h"
#include "pipeline/report/commands.h"
#include "pipeline/rig/draft.h"
#include "runtime/base/file.h"
#include "sensors/rig/rig_estimate.h"

namespace takt::app {
namespace {

namespace fs = std::filesystem;

struct Options {
  std::string log, out, board, vehicle_frame;
  bool force = false;
};

std::string describe(const sensors::RigSensor& sensor) {
  char text[160];
  std::snprintf(text, sizeof text, "  %-16s %-7s %6.2f Hz  %6.1f to %6.1f ms after the stamp  ", sensor.name.c_str(),
                sensors::name_of(sensor.kind), 1e9 / static_cast<double>(sensor.period.ns), sensor.delay_min().ms(),
                sensor.delay_max().ms());
  std::string assumed;
  for (const std::string& key : sensor.assumed) assumed += (assumed.empty() ? "" : ", ") + key;
  return text + sensor.topic + (sensor.device_clock ? ", clock of its own" : "") +
         (assumed.empty() ? "" : "\n    assumed: " + assumed) + "\n";
}

// Writes pipeline.yaml with fewer and fewer stages until the board has time for them.
Result<pipeline::PipelineDraft> write_admitted_pipeline(const sensors::Rig& rig, const fs::path& folder) {
  const std::string heading =
      "Drafted by takt init from the rig beside it. Budgets are guesses by the size of the data, "
      "limits are loose:\n`takt profile` measures the first, `takt schedule` prints the bounds "
      "for the second.";
  const std::string file = (folder / "pipeline.yaml").string();
  std::size_t stages = 7;
  for (;;) {
    TAKT_ASSIGN(pipeline::PipelineDraft draft,
                pipeline::draft_pipeline(rig, "rig.yaml", "board.yaml", heading, stages));
    TAKT_RETURN_IF_ERROR(write_file_atomically(file, draft.yaml));
    ScheduleOptions schedule;
    schedule.pipeline = file;
    TAKT_ASSIGN(const Admitted admitted, admit(schedule));
    if (admitted.answer.verdict == sched::Verdict::kFeasible) return draft;
    if (draft.sensors.size() == 1) {
      draft.notes.push_back("the pipeline does not fit the board: see `" + pipeline::program() + " schedule " +
                            pipeline::shell_quoted(file) + "`");
      return draft;
    }
    stages = draft.sensors.size() - 1;
  }
}

int run(const Options& options) {
  const fs::path folder = options.out;
  const auto write = [&]() -> Status {
    std::error_code error;
    for (const char* name : {"rig.yaml", "pipeline.yaml", "board.yaml"}) {
      if (!options.force && fs::exists(folder / name, error)) {
        return fail(Code::kUsage, (folder / name).string() +
                                      " is there already; name another folder with -o, or "
                                      "overwrite it with --force");
      }
    }
    std::string board = options.board;
    if (board.empty()) {
      TAKT_ASSIGN(const std::string shipped, shipped_folder());
      board = shipped + "/configs/boards/generic2.yaml";
    }
    TAKT_ASSIGN(const std::string board_text, read_file(board));
    sensors::EstimateOptions estimate;
    estimate.vehicle_frame = options.vehicle_frame;
    TAKT_ASSIGN(sensors::EstimatedRig rig, sensors::estimate_rig(options.log, estimate));
    fs::create_directories(folder, error);
    if (error) return fail(Code::kEnvironment, options.out + ": the folder cannot be made: " + error.message());

    std::string heading = "Written by takt init from " + fs::path(options.log).filename().string() +
                          ". Rates and delays are those observed in it.\n"
                          "What no log tells is a default marked `assumed`: replace it by what you know and delete the "
                          "mark.\nKeys: docs/rig_format.md.";
    for (const std::string& note : rig.notes) heading += "\n! " + note;
    const std::string rig_file = (folder / "rig.yaml").string();
    TAKT_RETURN_IF_ERROR(write_file_atomically(rig_file, sensors::rig_yaml(rig.rig, heading)));
    TAKT_RETURN_IF_ERROR(write_file_atomically((folder / "board.yaml").string(), board_text));
    TAKT_ASSIGN(const sensors::Rig written, sensors::load_rig(rig_file));  // what takt writes, takt reads
    TAKT_ASSIGN(const pipeline::PipelineDraft draft, write_admitted_pipeline(written, folder));

    std::printf("%zu sensor(s) in %s\n", written.sensors.size(), options.log.c_str());
    for (const sensors::RigSensor& sensor : written.sensors) std::fputs(describe(sensor).c_str(), stdout);
    for (const std::string& note : rig.notes) std::printf("! %s\n", note.c_str());
    for (const std::string& note : draft.notes) std::printf("! %s\n", note.c_str());
    std::printf("wrote %s/rig.yaml, pipeline.yaml, board.yaml; next:\n", options.out.c_str());
    const auto written_at = [&](const char* name) { return pipeline::shell_quoted(options.out + name); };
    const std::string log = pipeline::shell_quoted(options.log);
    const char* const takt = pipeline::program().c_str();
    std::printf("  %s rig check %s --rig %s -o %s\n", takt, log.c_str(), written_at("/rig.yaml").c_str(),
                written_at("/check").c_str());
    std::printf("  %s schedule %s\n", takt, written_at("/pipeline.yaml").c_str());
    std::printf("  %s replay %s %s --lockstep -o %s\n", takt, written_at("/pipeline.yaml").c_str(), log.c_str(),
                written_at("/run").c_str());
    return {};
  };
  const Status status = write();
  return status ? 0 : report_error(status.error());
}

}  // namespace

void add_init(CLI::App& app, Command& chosen) {
  auto options = std::make_shared<Options>();
  CLI::App* verb = app.add_subcommand("init", "Write a rig and a pipeline for your own log, from what it says");
  verb->add_option("log", options->log, "your recording, in any format that takt reads")->required();
  verb->add_option("-o,--out", options->out, "folder for rig.yaml, pipeline.yaml and board.yaml")
      ->default_val("my_rig")
      ->capture_default_str();
  verb->add_option("--board", options->board, "board file to copy (default: configs/boards/generic2.yaml)");
  verb->add_option("--vehicle-frame", options->vehicle_frame,
                   "frame on the ground under the rear axle (default: that of the ego motion, base_link, ...)");
  verb->add_flag("--force", options->force, "overwrite files of an earlier init");
  verb->callback([options, &chosen] { chosen = [options] { return run(*options); }; });
}

}  // namespace takt::app
