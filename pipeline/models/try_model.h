// A model on one picture, for people: which boxes does it find, and where. Host only.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "pipeline/models/contract.h"
#include "pipeline/models/detection_head.h"
#include "runtime/base/status.h"
#include "runtime/base/time.h"

namespace takt::pipeline {

struct ModelTrial {
  std::uint32_t width = 0, height = 0;  // of the picture
  std::vector<ImageBox> boxes;          // best first
  std::uint32_t candidates = 0, dropped = 0;
  std::string target;                // "cpu:avx2"
  Duration compile, first_run, run;  // run: the fastest of five further ones, one thread
};

// Compiles the model for this machine and pictures of this file's size, and runs it. With `drawing`, a PNG of the
// picture with boxes, classes and scores is written there. Errors of compile_model; kInput: the picture cannot be read;
// kEnvironment: the drawing cannot be written.
Result<ModelTrial> try_model(const ModelContract& contract, const std::string& picture_file,
                             const std::string& drawing);

}  // namespace takt::pipeline
