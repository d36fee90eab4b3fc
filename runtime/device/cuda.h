// An NVIDIA GPU by the CUDA runtime API, of which only what 12.6 and 13 share is used. Built where a toolkit is found.
//
// Segments are captured graphs, the binding table lies in mapped host memory, so that binding is a store and nothing is
// captured again. Arenas are one plain allocation. Where host and GPU share memory (Orin), imported memory is
// registered and kernels read it in place; elsewhere imported memory is registered too and reached over the bus, and a
// plan's large inputs are better copied first (Stream::copy).
//
// State of things: compiled for sm_87 and sm_90, never run; the device cuda-host runs the same kernels in tests.
#pragma once

#include <memory>

#include "runtime/device/device.h"

namespace takt::device {

// kEnvironment, in words, when there is no such GPU, no driver, or the GPU is older than sm_80.
Result<std::unique_ptr<Device>> cuda(int ordinal = 0);

}  // namespace takt::device
