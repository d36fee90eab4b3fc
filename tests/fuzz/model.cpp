// Any bytes as a picture file, and any text as a model's contract: when it is accepted, a head is made for the tensors
// it promises and decodes values that come from the input too; a LiDAR's network is built from it.
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "pipeline/models/contract_file.h"
#include "pipeline/models/detection_head.h"
#include "pipeline/models/lidar_model.h"
#include "sensors/camera/picture_file.h"

using namespace takt;

namespace {

void require(bool condition) {
  if (!condition) std::abort();
}

void picture(std::span<const std::byte> bytes) {
  const auto file = sensors::PictureFile::parse(bytes, "fuzz");
  if (!file) return require(file.error().code == Code::kInput && !file.error().message.empty());
  require(file->payload().size() == sensors::Image::bytes_for(file->image().width, file->image().height, 3));
}

void contract(const std::string& text) {
  const auto model = pipeline::parse_model(text, "fuzz.yaml");
  if (!model) return require(model.error().code == Code::kConfiguration && !model.error().message.empty());
  const pipeline::ModelInput& input = model->input;
  const auto classes = static_cast<std::int64_t>(model->classes.size());
  std::vector<pipeline::NamedTensor> outputs;
  if (const auto* centre = std::get_if<pipeline::CentreHead>(&model->head.form)) {
    const std::int64_t rows = input.height / centre->stride, columns = input.width / centre->stride;
    outputs.push_back({centre->heatmap, kernels::DType::kF32, {4, {1, classes, rows, columns}}});
    outputs.push_back({centre->box, kernels::DType::kF32, {4, {1, 4, rows, columns}}});
  } else {
    const auto& one = std::get<pipeline::FastestDetHead>(model->head.form);
    outputs.push_back({one.tensor, kernels::DType::kF32, {4, {1, 5 + classes, 7, 11}}});
  }
  constexpr std::uint32_t kWidth = 640, kHeight = 384;
  auto head = pipeline::DetectionHead::create(*model, outputs, kWidth, kHeight);
  if (!head) return require(!head.error().message.empty());
  std::vector<std::vector<float>> values;
  std::vector<const float*> tensors;
  for (const std::size_t slot : head->wanted()) {
    auto& tensor = values.emplace_back(static_cast<std::size_t>(outputs[slot].shape.elements()));
    if (tensor.size() > 1U << 20) return;  // accepted, but slow to fill
    for (std::size_t i = 0; i < tensor.size(); ++i) {
      std::uint32_t bits = static_cast<std::uint8_t>(text[(i * 7) % text.size()]) * 0x01010101U;
      bits ^= static_cast<std::uint32_t>(i) << 17;
      std::memcpy(&tensor[i], &bits, sizeof bits);  // NaNs and infinities among them
      if (i % 3 == 0) tensor[i] = static_cast<float>(i % 97) / 96;
    }
  }
  for (const auto& tensor : values) tensors.push_back(tensor.data());
  const auto boxes = head->decode(tensors);
  require(boxes.kept.size() <= model->head.objects_max);
  for (const pipeline::ImageBox& box : boxes.kept) {
    require(box.u0 >= 0 && box.v0 >= 0 && box.u0 < box.u1 && box.v0 < box.v1 && box.u1 <= kWidth && box.v1 <= kHeight);
    require(box.score >= model->head.score_min && box.score <= 1 && box.channel < model->classes.size());
  }
}

// A LiDAR's: when takt is to build the network, it is built or refused in words.
void lidar(const std::string& text) {
  auto model = pipeline::parse_lidar_model(text, "fuzz.yaml");
  if (!model) return require(model.error().code == Code::kConfiguration && !model.error().message.empty());
  if (!model->contract.file.empty()) return;
  model->network.points = 16;
  model->network.payload_bytes = static_cast<std::int64_t>(sensors::PointCloud::bytes_for(16));
  model->network.channels = {2};
  model->network.convs = {0};
  model->network.neck = 2;
  const auto graph = compiler::pillar_network(model->network);
  if (!graph) require(!graph.error().message.empty());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  if (size > 3 && (data[0] == 0xff || data[0] == 0x89)) {
    picture(bytes);
  } else {
    const std::string text(reinterpret_cast<const char*>(data), size);
    contract(text);
    lidar(text);
  }
  return 0;
}
