// takt model try: what does a network see in a picture? takt model check: do its contract and its file fit?

#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "pipeline/app/app.h"
#include "pipeline/models/compile_model.h"
#include "pipeline/models/contract_file.h"
#include "pipeline/models/try_model.h"

namespace takt::app {
namespace {

struct Options {
  std::string contract, picture, out, file;
  bool json = false;
};

const char* meaning_of(const pipeline::ModelClass& c) { return c.meaning ? pipeline::name_of(*c.meaning) : "ignored"; }

std::string json_of(const pipeline::ModelContract& contract, const pipeline::ModelTrial& trial) {
  nlohmann::ordered_json out;
  out["model"] = contract.name;
  out["target"] = trial.target;
  out["width"] = trial.width;
  out["height"] = trial.height;
  out["compile_ms"] = trial.compile.ms();
  out["first_run_ms"] = trial.first_run.ms();
  out["run_ms"] = trial.run.ms();
  out["candidates"] = trial.candidates;
  out["dropped"] = trial.dropped;
  out["boxes"] = nlohmann::ordered_json::array();
  for (const pipeline::ImageBox& box : trial.boxes) {
    const pipeline::ModelClass& c = contract.classes[box.channel];
    out["boxes"].push_back({{"class", c.name},
                            {"meaning", meaning_of(c)},
                            {"score", box.score},
                            {"box", {box.u0, box.v0, box.u1, box.v1}}});
  }
  return out.dump(2);
}

int try_on(const Options& options) {
  const auto contract = pipeline::load_model(options.contract, options.file);
  if (!contract) return report_error(contract.error());
  for (const std::string& source : {options.picture, options.contract, contract->file}) {
    std::error_code error;
    if (std::filesystem::equivalent(options.out, source, error)) {
      return report_error({Code::kUsage, "-o " + options.out + " is an input; name another file"});
    }
  }
  const auto trial = pipeline::try_model(*contract, options.picture, options.out);
  if (!trial) return report_error(trial.error());
  if (options.json) {
    std::printf("%s\n", json_of(*contract, *trial).c_str());
    return 0;
  }
  std::printf("%-16s %-12s %6s   %s\n", "class", "meaning", "score", "box in pixels: left, top, right, bottom");
  for (const pipeline::ImageBox& box : trial->boxes) {
    const pipeline::ModelClass& c = contract->classes[box.channel];
    std::printf("%-16s %-12s %6.3f   %7.1f %7.1f %7.1f %7.1f\n", c.name.c_str(), meaning_of(c),
                static_cast<double>(box.score), static_cast<double>(box.u0), static_cast<double>(box.v0),
                static_cast<double>(box.u1), static_cast<double>(box.v1));
  }
  std::printf(
      "%zu box(es) from %u candidate cell(s) in %ux%u pixels; %s, one thread: compiled in %.1f ms, first run "
      "%.2f ms, then %.2f ms (best of 5)\n",
      trial->boxes.size(), trial->candidates, trial->width, trial->height, trial->target.c_str(), trial->compile.ms(),
      trial->first_run.ms(), trial->run.ms());
  if (trial->dropped > 0) std::printf("! %u left out, the capacity is full (head.objects_max)\n", trial->dropped);
  if (!options.out.empty()) std::printf("%s\n", options.out.c_str());
  return 0;
}

int check(const Options& options) {
  const auto contract = pipeline::load_model(options.contract, options.file);
  if (!contract) return report_error(contract.error());
  const pipeline::ModelInput& input = contract->input;
  const pipeline::CameraPicture picture{kernels::PixelSource::kRgb8, input.width, input.height, input.width * 3, 64};
  const auto plan = pipeline::compile_model(*contract, picture, {1});
  if (!plan) return report_error(plan.error());
  const plan::Description& d = (*plan)->description();
  std::printf("%s: contract and file fit; %u operators, %u after the passes, %zu steps, arena %.1f kB, %s\n",
              contract->name.c_str(), d.statistics.operators_before, d.statistics.operators_after, d.steps.size(),
              static_cast<double>(d.arena_bytes) * 1e-3, kernels::name_of(d.target));
  return 0;
}

}  // namespace

void add_model(CLI::App& app, Command& chosen) {
  CLI::App* model = app.add_subcommand("model", "Try a network on a picture; check its contract");
  model->require_subcommand(1);

  auto options = std::make_shared<Options>();
  const auto common = [&options](CLI::App* verb) {
    verb->add_option("contract", options->contract, "model contract, for example configs/models/sim_camera_full.yaml")
        ->required();
    verb->add_option("--file", options->file, "the ONNX file, instead of the one that the contract names");
  };
  CLI::App* trial = model->add_subcommand("try", "Compile the network, run it on a picture, print and draw the boxes");
  common(trial);
  trial->add_option("picture", options->picture, "JPEG or PNG")->required();
  trial->add_option("-o,--out", options->out, "PNG with the boxes drawn");
  trial->add_flag("--json", options->json, "machine-readable answer on stdout");
  trial->callback([options, &chosen] { chosen = [options] { return try_on(*options); }; });

  CLI::App* verb = model->add_subcommand("check", "Compile the network and compare its tensors with the contract");
  common(verb);
  verb->callback([options, &chosen] { chosen = [options] { return check(*options); }; });
}

}  // namespace takt::app
