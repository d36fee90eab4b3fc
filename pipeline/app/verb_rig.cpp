// takt rig check: does the rig fit the log? takt rig ego: ego motion for a log that has none.

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>

#include "pipeline/app/app.h"
#include "pipeline/report/commands.h"
#include "pipeline/rig/check.h"
#include "pipeline/rig/ego.h"
#include "runtime/base/file.h"
#include "sensors/rig/rig_estimate.h"

namespace takt::app {
namespace {

struct Options {
  std::string log, rig, out;
  bool json = false;
};

// The rig file, or what `takt init` would write.
Result<sensors::Rig> rig_of(const Options& options) {
  if (!options.rig.empty()) return sensors::load_rig(options.rig);
  TAKT_ASSIGN(sensors::EstimatedRig estimate, sensors::estimate_rig(options.log));
  return std::move(estimate.rig);
}

Result<pipeline::RigCheck> checked(const Options& options) {
  TAKT_ASSIGN(const sensors::Rig rig, rig_of(options));
  pipeline::CheckOptions check;
  check.log_path = options.log;
  check.folder = options.out;
  TAKT_ASSIGN(pipeline::RigCheck result, pipeline::check_rig(rig, check));
  TAKT_RETURN_IF_ERROR(write_file_atomically(options.out + "/check.txt", result.text()));
  TAKT_RETURN_IF_ERROR(write_file_atomically(options.out + "/check.json", result.json()));
  return result;
}

int check(const Options& options) {
  const Result<pipeline::RigCheck> result = checked(options);
  if (!result) return report_error(result.error());
  if (options.json) {
    std::fputs(result->json().c_str(), stdout);
  } else {
    std::fputs(result->text().c_str(), stdout);
    std::printf("wrote %s/check.txt, check.json", options.out.c_str());
    for (const std::string& picture : result->pictures) std::printf(", %s", picture.c_str());
    std::printf("\nlook at the pictures: figures cannot tell whether points lie on the things that reflected them\n");
  }
  return result->wrong() ? exit_code(Code::kGate) : 0;
}

int ego(const Options& options) {
  const auto work = [&]() -> Status {
    TAKT_ASSIGN(const sensors::Rig rig, rig_of(options));
    Progress progress("registering sweeps", false);
    TAKT_ASSIGN(const pipeline::EgoEstimate estimate,
                pipeline::add_estimated_ego(rig, options.log, options.out,
                                            [&](double done, double total) { progress.update(done, total); }));
    std::printf("%s: %zu poses on %s, estimated by registration of %s; %.1f m in %.1f s\n", options.out.c_str(),
                estimate.poses, estimate.topic.c_str(), estimate.lidar.c_str(), estimate.distance_m,
                estimate.duration.seconds());
    if (estimate.failed > 0) {
      std::printf("! %zu sweep(s) could not be registered; the motion of the one before was kept\n", estimate.failed);
    }
    std::printf("next: %s init %s -o my_rig\n", pipeline::program().c_str(),
                pipeline::shell_quoted(options.out).c_str());
    return {};
  };
  const Status status = work();
  return status ? 0 : report_error(status.error());
}

}  // namespace

void add_rig(CLI::App& app, Command& chosen) {
  CLI::App* rig = app.add_subcommand("rig", "Check a rig against a log; estimate ego motion");
  rig->require_subcommand(1);

  auto options = std::make_shared<Options>();
  CLI::App* verb = rig->add_subcommand(
      "check", "LiDAR on image, bird's-eye view, ground, forward axis, stamps, without labels; exit 1 when wrong");
  verb->add_option("log", options->log, "your recording")->required();
  verb->add_option("--rig", options->rig, "rig file (default: what takt init would write)");
  verb->add_option("-o,--out", options->out, "folder for pictures, check.txt and check.json")->required();
  verb->add_flag("--json", options->json, "print check.json on stdout");
  verb->callback([options, &chosen] { chosen = [options] { return check(*options); }; });

  auto ego_options = std::make_shared<Options>();
  CLI::App* ego_verb = rig->add_subcommand(
      "ego", "Copy a log without odometry, with ego motion estimated by registration of its LiDAR sweeps");
  ego_verb->add_option("log", ego_options->log, "your recording")->required();
  ego_verb->add_option("--rig", ego_options->rig, "rig file (default: what takt init would write)");
  ego_verb->add_option("-o,--out", ego_options->out, "the copy (MCAP)")->required();
  ego_verb->callback([ego_options, &chosen] { chosen = [ego_options] { return ego(*ego_options); }; });
}

}  // namespace takt::app
