// What an object without a measured box is taken for.
#pragma once

#include "pipeline/messages/messages.h"

namespace takt::pipeline {

struct Extent {
  double length, width, height;  // m
};
constexpr Extent usual_extent(ObjectClass object_class) {
  switch (object_class) {
    case ObjectClass::kVehicle: return {4.5, 1.8, 1.6};
    case ObjectClass::kPedestrian: return {0.6, 0.6, 1.75};
    case ObjectClass::kCyclist: return {1.8, 0.6, 1.7};
    default: return {1.0, 1.0, 1.5};
  }
}

}  // namespace takt::pipeline
