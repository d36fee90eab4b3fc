// A device that accepts everything and computes nothing: what an executor or a dispatcher costs by itself.
#pragma once

#include "runtime/device/device.h"

namespace takt::device {

// Takes plans of every target, also those whose kernels were not built. Memory is the host's and stays as it was.
Device& null();

}  // namespace takt::device
