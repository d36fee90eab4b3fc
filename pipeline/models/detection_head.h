// From a network's output tensors to boxes in camera pixels: the last part of a camera stage. Fixed capacities, no
// allocation after create(), equal bytes on every machine (own exp, total orders).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "kernels/preprocess.h"
#include "kernels/tensor.h"
#include "pipeline/models/contract.h"
#include "runtime/base/status.h"

namespace takt::pipeline {

// A tensor of a plan or model, as contracts are checked against.
struct NamedTensor {
  std::string name;
  kernels::DType dtype = kernels::DType::kF32;
  kernels::Shape shape;
};

struct ImageBox {
  float u0 = 0, v0 = 0, u1 = 0, v1 = 0;  // camera pixels, edges: pixel i covers i..i+1; inside the picture
  float score = 0;                       // 0..1
  std::uint32_t channel = 0;             // of the network: ModelContract::classes
};

class DetectionHead {
 public:
  // kConfiguration when an output that the contract needs is missing (the known ones are named) or has another type or
  // shape: expected and found. `picture_*`: size of the camera's picture.
  static Result<DetectionHead> create(const ModelContract& contract, std::span<const NamedTensor> outputs,
                                      std::uint32_t picture_width, std::uint32_t picture_height);

  // Which of `outputs` decode() wants, in its order.
  [[nodiscard]] const std::vector<std::size_t>& wanted() const { return wanted_; }

  struct Boxes {
    std::span<const ImageBox> kept;  // best first; valid until the next call
    std::uint32_t candidates = 0;    // cells at or above score_min before suppression
    std::uint32_t dropped = 0;       // left out because of a capacity, lowest scores first
  };
  // Row-major f32 tensors in the order of wanted(). Cells with NaN are no objects. Of equal scores the lower cell, then
  // the lower channel comes first.
  Boxes decode(std::span<const float* const> tensors);

 private:
  struct Candidate {
    float score = 0;
    std::uint32_t cell = 0, channel = 0;
    friend bool operator<(const Candidate& a, const Candidate& b) {
      if (a.score != b.score) return a.score > b.score;
      return a.cell != b.cell ? a.cell < b.cell : a.channel < b.channel;
    }
  };
  // In network pixels, before clipping; suppression works on these.
  struct Box {
    float u0 = 0, v0 = 0, u1 = 0, v1 = 0;
  };

  void find_peaks(const float* heatmap);
  void find_cells(const float* tensor);
  [[nodiscard]] Box centre_box(const float* box, const Candidate& candidate) const;
  [[nodiscard]] Box fastestdet_box(const float* tensor, const Candidate& candidate) const;
  [[nodiscard]] bool to_picture(const Box& box, ImageBox& out) const;

  ModelHead head_;
  bool centre_ = true;
  std::uint32_t columns_ = 0, rows_ = 0, channels_ = 0;
  std::uint32_t width_ = 0, height_ = 0;  // network pixels
  std::uint32_t picture_width_ = 0, picture_height_ = 0;
  kernels::Placement placement_;
  std::vector<std::optional<ObjectClass>> meaning_;  // by channel
  std::vector<std::size_t> wanted_;
  std::vector<Candidate> candidates_;
  std::uint32_t candidate_count_ = 0;
  std::vector<Box> chosen_;
  std::vector<ImageBox> kept_;
};

// The model's one picture input against the contract: name, f32[1, 3, height, width].
Status check_input(const ModelContract& contract, std::span<const NamedTensor> inputs);

}  // namespace takt::pipeline
