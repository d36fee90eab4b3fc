// What the fusion stage believes of sensors and objects: the numbers of its graph. Needs neither YAML nor compiler.
#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include "kernels/tracking.h"

namespace takt::pipeline {

using kernels::Modality;
inline constexpr std::size_t kModalities = 3;

struct FusionModel {
  kernels::MotionModel motion = kernels::MotionModel::kConstantVelocity;
  kernels::TrackerModel tracker;
  // By Modality; `modality`, `sensor`, `x` and `y` of a row are those of the rig and set for each input.
  std::array<kernels::ListSource, kModalities> sensors{};
};

// Names of the graph's tensors, for its stage. List k of a job is the k-th oldest of those that are new.
namespace fusion_tensors {
inline constexpr const char* kStamps = "stamps";         // input i64[lists + 1]: of the lists, then the job's instant
inline constexpr const char* kEgoStamp = "ego_stamp";    // input i64[1]; kNever: no new sample
inline constexpr const char* kEgoSample = "ego_sample";  // input f64[13], sensors::EgoMotion
inline constexpr const char* kUsedNow = "used_now";      // input i64[inputs]: newest stamp used, by input of the stage
inline constexpr const char* kUsed = "used";             // state: what used_now was
inline constexpr const char* kTracks = "tracks";         // output: the payload, TrackList
inline constexpr const char* kList = "list_";            // input k: the payload, ObjectList
inline constexpr const char* kListRows = "list_rows_";   // input k i64[2]: objects of it, row of the sources
inline constexpr const char* kRepaired = "repaired_";    // output k i32: something was left out
inline constexpr const char* kDropped = "dropped_";      // output k i32: objects that found no room
}  // namespace fusion_tensors

}  // namespace takt::pipeline
