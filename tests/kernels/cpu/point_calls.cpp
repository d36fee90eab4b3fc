#include <algorithm>

#include "kernels/boxes.h"
#include "kernels/pillars.h"
#include "kernels/points.h"
#include "tests/kernels/cpu/operator_calls.h"

namespace takt::kernels::cpu {

std::vector<Call> point_calls() {
  CropParams crop;
  crop.capacity = 40;
  crop.capacity_out = 30;
  std::fill_n(crop.max, 3, 3.0F);
  crop.range_max = 9;
  PillarParams features;
  features.points = features.members = 40;
  features.pillars = 9;
  features.most = 3;
  PillarParams encode = features;
  encode.channels = 20;
  TopKDecodeParams decode;
  decode.classes = 2;
  decode.h = 5;
  decode.w = 7;
  decode.k = 6;
  decode.velocity = 1;
  NmsParams nms;
  nms.capacity = nms.most = 12;
  return {make_call(KernelId::kCloud, CloudParams{40}),
          make_call(KernelId::kDeskew, DeskewParams{40, 3, 0.1}),
          make_call(KernelId::kCrop, crop),
          make_call(KernelId::kSweeps, SweepsParams{40, 2, 100, 1000, 1000}),
          make_call(KernelId::kPillarFeatures, features),
          make_call(KernelId::kPillarEncode, encode),
          make_call(KernelId::kTopKDecode, decode),
          make_call(KernelId::kCircleNms, nms),
          make_call(KernelId::kAxisAlignedNms, nms),
          make_call(KernelId::kRotatedNms, nms)};
}

}  // namespace takt::kernels::cpu
