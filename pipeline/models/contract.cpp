#include "pipeline/models/contract.h"

namespace takt::pipeline {

std::uint64_t picture_bytes(const CameraPicture& picture) {
  const std::uint64_t rows =
      picture.format == kernels::PixelSource::kNv12 ? std::uint64_t{picture.height} * 3 / 2 : picture.height;
  return picture.offset + rows * picture.pitch;
}

kernels::Preprocess preprocess_of(const ModelInput& input, const CameraPicture& picture) {
  kernels::Preprocess out;
  out.source = picture.format;
  out.source_width = picture.width;
  out.source_height = picture.height;
  out.pitch = picture.pitch;
  out.offset = picture.offset;
  if (picture.format == kernels::PixelSource::kNv12) {
    // The chroma plane follows the rows of luminance, with their pitch.
    out.chroma_offset = picture.offset + std::uint64_t{picture.pitch} * picture.height;
    out.chroma_pitch = picture.pitch;
  }
  out.fit = input.fit;
  out.colour = input.colour;
  out.pad = input.pad;
  out.width = input.width;
  out.height = input.height;
  for (std::size_t c = 0; c < 3; ++c) {
    // The compiler takes each number as f32; so the same bits here as in the plan.
    const auto deviation = static_cast<float>(input.std[c]);
    out.multiply[c] = static_cast<float>(input.scale) / deviation;
    out.add[c] = -static_cast<float>(input.mean[c]) / deviation;
  }
  return out;
}

}  // namespace takt::pipeline
