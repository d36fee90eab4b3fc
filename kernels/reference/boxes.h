// The operators of kernels/boxes.h, and the overlaps that they decide by. Serial, small: the kernels of plans are these
// functions. A count that is nullptr is the capacity. Allocate nothing.
#pragma once

#include <cstdint>

#include "kernels/boxes.h"

namespace takt::kernels::reference {

const char* invalid(const TopKDecodeParams& p);
const char* invalid(const NmsParams& p);

struct DecodeOperands {
  const float* heat = nullptr;
  const float* offset = nullptr;
  const float* height = nullptr;
  const float* size = nullptr;
  const float* rotation = nullptr;
  const float* velocity = nullptr;  // nullptr: 0
  float* boxes = nullptr;
  float* scores = nullptr;
  std::int32_t* classes = nullptr;
  std::int32_t* cells = nullptr;
  std::int32_t* dropped = nullptr;
  std::int32_t* count = nullptr;
};
void top_k_decode(const TopKDecodeParams& p, const DecodeOperands& o);

enum class Nearness { kCircle, kAxisAligned, kRotated };
struct NmsOperands {
  const float* boxes = nullptr;
  const float* scores = nullptr;
  const std::int32_t* classes = nullptr;
  const std::int32_t* count = nullptr;
  float* out_boxes = nullptr;
  float* out_scores = nullptr;
  std::int32_t* out_classes = nullptr;
  std::int32_t* index = nullptr;
  std::int32_t* kept = nullptr;
};
void nms(Nearness nearness, const NmsParams& p, const NmsOperands& o);

// Intersection over union of two footprints, 0 to 1; 0 for a box without area. Rows of kBoxColumns. Symmetric bit by
// bit: the smaller row, element by element, gives the frame.
double rotated_iou(const float* a, const float* b);
double axis_aligned_iou(const float* a, const float* b);

}  // namespace takt::kernels::reference
