// The operators of kernels/boxes.h, and the overlaps that they decide by. Serial, small: the CPU kernels of plans are
// these functions; CUDA kernels are made of their pieces. A count that is nullptr is the capacity. Allocate nothing.
#pragma once

#include <cstdint>

#include "kernels/boxes.h"
#include "kernels/device_code.h"

namespace takt::kernels::reference {
inline namespace TAKT_SIDE {

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
TAKT_BOTH void top_k_decode(const TopKDecodeParams& p, const DecodeOperands& o);

// The maps of a centre head, and what they say of one cell.
struct CentreMaps {
  const TopKDecodeParams& p;
  const float* heat;
  const float* offset;
  const float* height;
  const float* size;
  const float* rotation;
  const float* velocity;

  [[nodiscard]] TAKT_BOTH std::int64_t pixels() const { return std::int64_t{p.h} * p.w; }
  [[nodiscard]] TAKT_BOTH bool is_candidate(std::int32_t category, std::int32_t cell) const;
  TAKT_BOTH void decode(std::int32_t cell, float* box) const;  // a row of kBoxColumns

 private:
  [[nodiscard]] TAKT_BOTH bool is_box(std::int32_t category, std::int64_t cell) const;
  [[nodiscard]] TAKT_BOTH float x_at(std::int64_t cell) const;  // of the centre, m
  [[nodiscard]] TAKT_BOTH float y_at(std::int64_t cell) const;
  [[nodiscard]] TAKT_BOTH float size_at(std::int64_t c, std::int64_t cell) const;
};
TAKT_BOTH float score_of(float logit);

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
TAKT_BOTH void nms(Nearness nearness, const NmsParams& p, const NmsOperands& o);

// Of the rows of its inputs: whether one takes part, which of two comes first, and whether the first, which stays, ends
// the second.
TAKT_BOTH bool may_stay(const NmsOperands& o, std::int64_t i);
TAKT_BOTH bool precedes(const NmsOperands& o, std::int32_t i, std::int32_t j);
TAKT_BOTH bool suppresses(Nearness nearness, const NmsParams& p, const NmsOperands& o, std::int32_t better,
                          std::int32_t worse);

// Intersection over union of two footprints, 0 to 1; 0 for a box without area. Rows of kBoxColumns. Symmetric bit by
// bit: the smaller row, element by element, gives the frame.
TAKT_BOTH double rotated_iou(const float* a, const float* b);
TAKT_BOTH double axis_aligned_iou(const float* a, const float* b);

}  // namespace TAKT_SIDE
}  // namespace takt::kernels::reference
