#include "pipeline/models/detection_head.h"

#include <algorithm>
#include <cmath>

#include "kernels/reference/elementary.h"
#include "runtime/base/suggest.h"

namespace takt::pipeline {
namespace {

// Candidates that suppression looks at, per object of the capacity: a vehicle is rarely found by more cells, and the
// work stays bounded.
constexpr std::uint32_t kCandidatesPerObject = 4;

// Cells times classes of a head that is accepted: sixteen times what the largest networks of detection papers have.
constexpr std::uint64_t kMostCells = std::uint64_t{1} << 22;

std::string text_of(kernels::DType dtype, const kernels::Shape& shape) {
  std::string text = kernels::name_of(dtype);
  text += '[';
  for (int i = 0; i < shape.rank; ++i) {
    if (i > 0) text += ',';
    text += std::to_string(shape.dims[i]);
  }
  return text + ']';
}

kernels::Shape shape_of(std::uint32_t channels, std::uint32_t rows, std::uint32_t columns) {
  return {4, {1, channels, rows, columns}};
}

// Where `name` is; with its type and shape as expected.
Result<std::size_t> find(const ModelContract& contract, std::span<const NamedTensor> tensors, const char* role,
                         const std::string& name) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (tensors[i].name == name) return i;
    names.push_back(tensors[i].name);
  }
  return fail(Code::kConfiguration,
              contract.contract_file + ": the model has no " + role + " '" + name + "'" + did_you_mean(name, names));
}

Status check_tensor(const ModelContract& contract, const NamedTensor& tensor, const kernels::Shape& expected,
                    const std::string& because) {
  if (tensor.dtype == kernels::DType::kF32 && tensor.shape == expected) return {};
  return fail(Code::kConfiguration, contract.contract_file + ": tensor '" + tensor.name + "': expected " +
                                        text_of(kernels::DType::kF32, expected) + " (" + because + "), found " +
                                        text_of(tensor.dtype, tensor.shape));
}

std::string counted(std::size_t n) { return std::to_string(n) + (n == 1 ? " class" : " classes"); }

double sigmoid(double x) { return 1 / (1 + kernels::exp(-x)); }
double tanh(double x) { return 2 / (1 + kernels::exp(-2 * x)) - 1; }

float area(float width, float height) { return std::max(width, 0.0F) * std::max(height, 0.0F); }

}  // namespace

Status check_input(const ModelContract& contract, std::span<const NamedTensor> inputs) {
  TAKT_ASSIGN(const std::size_t at, find(contract, inputs, "input", contract.input.tensor));
  const ModelInput& input = contract.input;
  return check_tensor(contract, inputs[at], shape_of(3, input.height, input.width),
                      "three colours, " + std::to_string(input.width) + "x" + std::to_string(input.height));
}

Result<DetectionHead> DetectionHead::create(const ModelContract& contract, std::span<const NamedTensor> outputs,
                                            std::uint32_t picture_width, std::uint32_t picture_height) {
  DetectionHead out;
  out.head_ = contract.head;
  out.width_ = contract.input.width;
  out.height_ = contract.input.height;
  out.picture_width_ = picture_width;
  out.picture_height_ = picture_height;
  out.placement_ = kernels::placement(contract.input.fit, picture_width, picture_height, out.width_, out.height_);
  out.channels_ = static_cast<std::uint32_t>(contract.classes.size());
  for (const ModelClass& c : contract.classes) out.meaning_.push_back(c.meaning);
  const std::string size = std::to_string(out.width_) + "x" + std::to_string(out.height_);
  std::uint64_t most = 0;
  if (const auto* centre = std::get_if<CentreHead>(&contract.head.form)) {
    out.columns_ = out.width_ / centre->stride;
    out.rows_ = out.height_ / centre->stride;
    const std::string cells = ", input " + size + ", stride " + std::to_string(centre->stride);
    TAKT_ASSIGN(const std::size_t heatmap, find(contract, outputs, "output", centre->heatmap));
    TAKT_RETURN_IF_ERROR(check_tensor(contract, outputs[heatmap], shape_of(out.channels_, out.rows_, out.columns_),
                                      counted(out.channels_) + cells));
    TAKT_ASSIGN(const std::size_t box, find(contract, outputs, "output", centre->box));
    TAKT_RETURN_IF_ERROR(
        check_tensor(contract, outputs[box], shape_of(4, out.rows_, out.columns_), "four distances" + cells));
    out.wanted_ = {heatmap, box};
    most = std::uint64_t{out.columns_} * out.rows_ * out.channels_;
  } else {
    out.centre_ = false;
    const auto& fastestdet = std::get<FastestDetHead>(contract.head.form);
    TAKT_ASSIGN(const std::size_t tensor, find(contract, outputs, "output", fastestdet.tensor));
    // The grid is the network's: any whole one is taken.
    const NamedTensor& found = outputs[tensor];
    const bool grid = found.shape.rank == 4 && found.shape.dims[2] > 0 && found.shape.dims[3] > 0 &&
                      found.shape.dims[2] <= out.height_ && found.shape.dims[3] <= out.width_;
    out.rows_ = grid ? static_cast<std::uint32_t>(found.shape.dims[2]) : out.height_ / 16;
    out.columns_ = grid ? static_cast<std::uint32_t>(found.shape.dims[3]) : out.width_ / 16;
    TAKT_RETURN_IF_ERROR(check_tensor(contract, found, shape_of(5 + out.channels_, out.rows_, out.columns_),
                                      "objectness, four of the box, " + counted(out.channels_)));
    out.wanted_ = {tensor};
    most = std::uint64_t{out.columns_} * out.rows_;
  }
  if (most > kMostCells) {
    return fail(Code::kConfiguration, contract.contract_file + ": a head of " + std::to_string(most) +
                                          " cells times classes; at most " + std::to_string(kMostCells) +
                                          " are accepted");
  }
  out.candidates_.resize(most);
  out.chosen_.resize(contract.head.objects_max);
  out.kept_.resize(contract.head.objects_max);
  return out;
}

// A cell is a peak when no neighbour is hotter, and of equally hot neighbours none comes earlier.
void DetectionHead::find_peaks(const float* heatmap) {
  const auto rows = static_cast<std::int64_t>(rows_), columns = static_cast<std::int64_t>(columns_);
  for (std::uint32_t channel = 0; channel < channels_; ++channel, heatmap += rows * columns) {
    if (!meaning_[channel]) continue;
    for (std::int64_t y = 0; y < rows; ++y) {
      for (std::int64_t x = 0; x < columns; ++x) {
        const float heat = heatmap[y * columns + x];
        if (!(heat >= head_.score_min)) continue;
        bool peak = true;
        for (std::int64_t ny = std::max<std::int64_t>(y - 1, 0); ny <= std::min(y + 1, rows - 1); ++ny) {
          for (std::int64_t nx = std::max<std::int64_t>(x - 1, 0); nx <= std::min(x + 1, columns - 1); ++nx) {
            const float other = heatmap[ny * columns + nx];
            const bool earlier = ny * columns + nx < y * columns + x;
            peak = peak && !(other > heat) && !(earlier && other == heat);
          }
        }
        if (peak) {
          candidates_[candidate_count_++] = {std::min(heat, 1.0F), static_cast<std::uint32_t>(y * columns + x),
                                             channel};
        }
      }
    }
  }
}

// FastestDet: the best class of every cell; of equal ones the first.
void DetectionHead::find_cells(const float* tensor) {
  const std::size_t cells = std::size_t{rows_} * columns_;
  const float* classes = tensor + 5 * cells;
  for (std::size_t cell = 0; cell < cells; ++cell) {
    const float objectness = tensor[cell];
    // No class is above 1.
    if (!(objectness >= head_.score_min)) continue;
    std::uint32_t best = 0;
    float most = classes[cell];
    for (std::uint32_t c = 1; c < channels_; ++c) {
      const float probability = classes[c * cells + cell];
      if (probability > most) {
        most = probability;
        best = c;
      }
    }
    const float score = objectness * most;
    if (!(score >= head_.score_min) || !meaning_[best]) continue;
    candidates_[candidate_count_++] = {std::min(score, 1.0F), static_cast<std::uint32_t>(cell), best};
  }
}

DetectionHead::Box DetectionHead::centre_box(const float* box, const Candidate& candidate) const {
  const std::size_t cells = std::size_t{rows_} * columns_;
  const auto stride = static_cast<float>(std::get_if<CentreHead>(&head_.form)->stride);
  const std::uint32_t column = candidate.cell % columns_, row = candidate.cell / columns_;
  const float x = static_cast<float>(column) + 0.5F, y = static_cast<float>(row) + 0.5F;
  const float* at = box + candidate.cell;
  return {(x - at[0]) * stride, (y - at[cells]) * stride, (x + at[2 * cells]) * stride, (y + at[3 * cells]) * stride};
}

DetectionHead::Box DetectionHead::fastestdet_box(const float* tensor, const Candidate& candidate) const {
  const std::size_t cells = std::size_t{rows_} * columns_;
  const float* at = tensor + cells + candidate.cell;
  const std::uint32_t column = candidate.cell % columns_, row = candidate.cell / columns_;
  const double x = (column + tanh(double{at[0]})) / columns_ * width_;
  const double y = (row + tanh(double{at[cells]})) / rows_ * height_;
  const double half_width = sigmoid(double{at[2 * cells]}) * width_ / 2;
  const double half_height = sigmoid(double{at[3 * cells]}) * height_ / 2;
  return {static_cast<float>(x - half_width), static_cast<float>(y - half_height), static_cast<float>(x + half_width),
          static_cast<float>(y + half_height)};
}

// Into the camera's picture, cut at its edges; false when nothing of it lies inside (or it holds a NaN).
bool DetectionHead::to_picture(const Box& box, ImageBox& out) const {
  const auto width = static_cast<float>(picture_width_), height = static_cast<float>(picture_height_);
  const float per_u = width / static_cast<float>(placement_.width);
  const float per_v = height / static_cast<float>(placement_.height);
  const auto left = static_cast<float>(placement_.left), top = static_cast<float>(placement_.top);
  const auto cut = [](float value, float most) { return std::min(std::max(value, 0.0F), most); };
  out.u0 = cut((box.u0 - left) * per_u, width);
  out.v0 = cut((box.v0 - top) * per_v, height);
  out.u1 = cut((box.u1 - left) * per_u, width);
  out.v1 = cut((box.v1 - top) * per_v, height);
  return out.u1 > out.u0 && out.v1 > out.v0;
}

DetectionHead::Boxes DetectionHead::decode(std::span<const float* const> tensors) {
  candidate_count_ = 0;
  if (centre_) {
    find_peaks(tensors[0]);
  } else {
    find_cells(tensors[0]);
  }
  Boxes boxes;
  boxes.candidates = candidate_count_;
  const std::uint32_t looked_at = std::min(candidate_count_, head_.objects_max * kCandidatesPerObject);
  const auto begin = candidates_.begin();
  std::partial_sort(begin, begin + looked_at, begin + candidate_count_);
  boxes.dropped = candidate_count_ - looked_at;

  // Greedy suppression within takt's class: a car that is also seen as a lorry is one vehicle.
  std::uint32_t count = 0;
  for (std::uint32_t i = 0; i < looked_at; ++i) {
    const Candidate& candidate = candidates_[i];
    const Box box = centre_ ? centre_box(tensors[1], candidate) : fastestdet_box(tensors[0], candidate);
    if (!std::isfinite(box.u0 + box.v0 + box.u1 + box.v1)) continue;
    const float own = area(box.u1 - box.u0, box.v1 - box.v0);
    bool free = own > 0;
    for (std::uint32_t k = 0; k < count && free; ++k) {
      if (meaning_[kept_[k].channel] != meaning_[candidate.channel]) continue;
      const Box& other = chosen_[k];
      const float common = area(std::min(box.u1, other.u1) - std::max(box.u0, other.u0),
                                std::min(box.v1, other.v1) - std::max(box.v0, other.v0));
      const float either = own + area(other.u1 - other.u0, other.v1 - other.v0) - common;
      free = !(common > head_.nms_iou * either);
    }
    ImageBox mapped{0, 0, 0, 0, candidate.score, candidate.channel};
    if (!free || !to_picture(box, mapped)) continue;
    if (count == head_.objects_max) {
      ++boxes.dropped;
      continue;
    }
    chosen_[count] = box;
    kept_[count++] = mapped;
  }
  boxes.kept = {kept_.data(), count};
  return boxes;
}

}  // namespace takt::pipeline
