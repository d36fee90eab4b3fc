// The contract of a model: what an ONNX file does not say about itself, read from configs/models/NAME.yaml
// (docs/model_format.md): which file, what its input means, how its outputs become boxes, what its classes are called.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "kernels/preprocess.h"
#include "pipeline/messages/messages.h"
#include "runtime/base/status.h"

namespace takt::pipeline {

// value = (pixel * scale - mean[c]) / std[c], channel c in the network's colour order, pixel 0..255.
struct ModelInput {
  std::string tensor;
  std::uint32_t width = 0, height = 0;  // pixels
  kernels::ColourOrder colour = kernels::ColourOrder::kRgb;
  kernels::Fit fit = kernels::Fit::kPlain;
  std::uint32_t pad = 0;  // letterbox only: grey level around the picture
  double scale = 1;
  std::array<double, 3> mean{}, std{1, 1, 1};
};

// Anchor-free centre head. `heatmap` f32[1, classes, height/stride, width/stride], 0..1: a cell is an object when its
// heat is the largest of its 3x3 neighbourhood. `box` f32[1, 4, ...]: distances in cells from the cell's centre to the
// left, upper, right and lower edge.
struct CentreHead {
  std::string heatmap, box;
  std::uint32_t stride = 8;  // network pixels per cell
};
// FastestDet (github.com/dog-qiuqiu/FastestDet): one tensor f32[1, 5 + classes, rows, columns]: objectness, raw offsets
// tx ty, raw sizes tw th, class probabilities. score = objectness * best class, centre = (cell + tanh(t)) / cells, size
// = sigmoid(t), both as shares of the input.
struct FastestDetHead {
  std::string tensor;
};

struct ModelHead {
  std::variant<CentreHead, FastestDetHead> form;
  float score_min = 0.5F;         // detections below are left out
  float nms_iou = 0.5F;           // of two boxes of one class that overlap more, the lower score is left out
  std::uint32_t objects_max = 0;  // capacity, at most kMaxObjects; the lowest scores are left out, counted
};

struct ModelClass {
  std::string name;                    // as the model's authors call it
  std::optional<ObjectClass> meaning;  // takt's class; nothing: its detections are left out
};

struct ModelContract {
  std::string name;
  std::string contract_file;
  std::string file;  // the ONNX, where it is looked for
  std::string hash;  // of that file: XXH3-128, 32 lower-case hexadecimal digits
  std::string licence;
  ModelInput input;
  ModelHead head;
  std::vector<ModelClass> classes;            // by channel of the network
  std::map<std::string, std::int64_t> loops;  // by node: the most trips of a Loop that the file leaves open
  std::map<std::string, std::string> states;  // inputs that are state, and the outputs that continue them
};

// The picture that a camera gives.
struct CameraPicture {
  kernels::PixelSource format = kernels::PixelSource::kRgb8;
  std::uint32_t width = 0, height = 0, pitch = 0;
  std::uint64_t offset = 0;  // of pixel 0 in the payload
};
// Bytes from the start of the payload to the end of the picture.
std::uint64_t picture_bytes(const CameraPicture& picture);
// From this picture to this input: the parameters of the plan's first step, bit by bit.
kernels::Preprocess preprocess_of(const ModelInput& input, const CameraPicture& picture);

}  // namespace takt::pipeline
