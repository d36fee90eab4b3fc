#include "pipeline/models/try_model.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <opencv2/imgproc.hpp>

#include "pipeline/models/compile_model.h"
#include "pipeline/rig/pictures.h"
#include "runtime/exec/session.h"
#include "runtime/memory/aligned_buffer.h"
#include "sensors/camera/picture_file.h"

namespace takt::pipeline {
namespace {

// One colour per class of takt, BGR.
cv::Scalar colour_of(const std::optional<ObjectClass>& meaning) {
  switch (meaning.value_or(ObjectClass::kUnknown)) {
    case ObjectClass::kVehicle: return {60, 200, 60};
    case ObjectClass::kPedestrian: return {40, 140, 255};
    case ObjectClass::kCyclist: return {255, 160, 40};
    default: return {200, 200, 200};
  }
}

Status draw(const ModelContract& contract, const sensors::Image& image, const std::vector<ImageBox>& boxes,
            const std::string& path) {
  Picture picture;
  picture.width = static_cast<int>(image.width);
  picture.height = static_cast<int>(image.height);
  picture.bgr.resize(std::size_t{3} * image.width * image.height);
  cv::Mat canvas(picture.height, picture.width, CV_8UC3, picture.bgr.data());
  const cv::Mat rgb(picture.height, picture.width, CV_8UC3, const_cast<std::uint8_t*>(image.row(0)), image.row_pitch);
  cv::cvtColor(rgb, canvas, cv::COLOR_RGB2BGR);
  const int line = std::max(1, picture.width / 500);
  const double letters = std::max(0.4, picture.width / 1600.0);
  // Worst first, so that the best lie on top.
  for (auto box = boxes.rbegin(); box != boxes.rend(); ++box) {
    const ModelClass& c = contract.classes[box->channel];
    const cv::Scalar colour = colour_of(c.meaning);
    const cv::Point from(static_cast<int>(std::lround(box->u0)), static_cast<int>(std::lround(box->v0)));
    const cv::Point to(static_cast<int>(std::lround(box->u1)) - 1, static_cast<int>(std::lround(box->v1)) - 1);
    cv::rectangle(canvas, from, to, colour, line);
    char label[64];
    std::snprintf(label, sizeof label, "%.40s %.2f", c.name.c_str(), static_cast<double>(box->score));
    int below = 0;
    const cv::Size size = cv::getTextSize(label, cv::FONT_HERSHEY_SIMPLEX, letters, 1, &below);
    const cv::Point at(from.x, std::max(from.y, size.height + below + 2));
    cv::rectangle(canvas, {at.x, at.y - size.height - below - 2, size.width + 4, size.height + below + 2}, colour,
                  cv::FILLED);
    cv::putText(canvas, label, {at.x + 2, at.y - below}, cv::FONT_HERSHEY_SIMPLEX, letters, {0, 0, 0}, 1, cv::LINE_AA);
  }
  return write_png(picture, path);
}

}  // namespace

Result<ModelTrial> try_model(const ModelContract& contract, const std::string& picture_file,
                             const std::string& drawing) {
  TAKT_ASSIGN(const sensors::PictureFile file, sensors::PictureFile::read(picture_file));
  const sensors::Image& image = file.image();
  const CameraPicture picture{kernels::PixelSource::kRgb8, image.width, image.height, image.row_pitch,
                              image.data_offset};
  ModelTrial out;
  out.width = image.width;
  out.height = image.height;
  const HostTime begin = host_now();
  TAKT_ASSIGN(const auto plan, compile_model(contract, picture, {1}));
  TAKT_ASSIGN(const auto session, exec::Session::create(plan));
  out.compile = host_now() - begin;
  out.target = kernels::name_of(plan->description().target);

  std::vector<NamedTensor> tensors;
  std::vector<memory::AlignedBuffer> buffers;
  for (std::size_t slot = 0; slot < plan->description().outputs.size(); ++slot) {
    const plan::Tensor& t = plan->description().tensors[plan->description().outputs[slot]];
    tensors.push_back({t.name, t.dtype, t.shape});
    TAKT_ASSIGN(buffers.emplace_back(), memory::AlignedBuffer::create(t.bytes));
    TAKT_RETURN_IF_ERROR(session->bind_output(slot, buffers.back().span()));
  }
  TAKT_ASSIGN(DetectionHead head, DetectionHead::create(contract, tensors, image.width, image.height));
  std::vector<const float*> wanted;
  for (const std::size_t slot : head.wanted()) wanted.push_back(reinterpret_cast<const float*>(buffers[slot].data()));
  TAKT_RETURN_IF_ERROR(session->bind_input(0, file.payload()));
  TAKT_RETURN_IF_ERROR(session->ready(1));

  const auto timed = [&] {
    const HostTime start = host_now();
    session->run();
    return host_now() - start;
  };
  out.first_run = timed();
  out.run = timed();
  for (int i = 1; i < 5; ++i) out.run = std::min(out.run, timed());
  const DetectionHead::Boxes boxes = head.decode(wanted);
  out.boxes.assign(boxes.kept.begin(), boxes.kept.end());
  out.candidates = boxes.candidates;
  out.dropped = boxes.dropped;
  if (!drawing.empty()) TAKT_RETURN_IF_ERROR(draw(contract, image, out.boxes, drawing));
  return out;
}

}  // namespace takt::pipeline
