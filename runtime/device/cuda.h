// An NVIDIA GPU by the CUDA runtime API, of which only what 12.6 and 13 share is used. Built where a toolkit is found.
//
// Segments are captured graphs, the binding table lies in mapped host memory, so that binding is a store and nothing is
// captured again. Arenas are one plain allocation. Imported memory is registered once; where host and GPU share memory
// (Orin: Properties::shares_memory) kernels read it in place, elsewhere over the bus, where large inputs are better
// copied first (exec::Offload does). Modules are loaded eagerly. Every thread that uses a stream or an event chooses
// the GPU for itself. A call that the API refuses costs the work that it was to hand over; an error that poisons the
// context loses the device.
//
// State of things: compiled for sm_87 and sm_90, never run; the device cuda-host runs the same kernels in tests.
#pragma once

#include <memory>

#include "runtime/device/device.h"

namespace takt::device {

// kEnvironment, in words, when there is no such GPU, no driver, or the GPU is older than sm_80.
Result<std::unique_ptr<Device>> cuda(int ordinal = 0);

}  // namespace takt::device
