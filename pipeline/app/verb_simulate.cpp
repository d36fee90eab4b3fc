// takt simulate: a scene becomes a drive.

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>

#include "pipeline/app/app.h"
#include "sensors/sim/simulate.h"

namespace takt::app {
namespace {

struct Options {
  std::string scene, out;
  bool quiet = false;
};

int run(const Options& options) {
  const Result<sensors::Scene> scene = sensors::load_scene(options.scene);
  if (!scene) return report_error(scene.error());
  {
    Progress progress("simulating", options.quiet);
    const Status status = sensors::simulate(*scene, options.out, [&](double done, double total) {
      progress.update(done, total);
      return !interrupted().load();
    });
    if (!status) return report_error(status.error());
  }
  if (!options.quiet) std::printf("%s\n", options.out.c_str());
  return 0;
}

}  // namespace

void add_simulate(CLI::App& app, Command& chosen) {
  auto options = std::make_shared<Options>();
  CLI::App* verb =
      app.add_subcommand("simulate", "Render a scene into a drive: camera, LiDAR, radar, ego motion, truth");
  verb->add_option("scene", options->scene, "scene file, for example configs/scenes/city.yaml")->required();
  verb->add_option("-o,--out", options->out, "the drive to write (MCAP)")->required();
  verb->add_flag("-q,--quiet", options->quiet, "no progress line");
  verb->callback([options, &chosen] { chosen = [options] { return run(*options); }; });
}

}  // namespace takt::app
