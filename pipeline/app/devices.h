// The devices that this build of the program knows, by name.
#pragma once

#include <string>

#include "pipeline/assembly/pipeline_file.h"
#include "runtime/base/status.h"

namespace takt::app {

// "cpu" (nothing beside the cores), "cuda" or "cuda:N", "cuda-host". `memory`: "in-place", "copied", or "" for what the
// device is made for. kUsage: no such device, one that this build was made without, or a GPU that is not there.
Result<pipeline::DevicePlace> open_device(const std::string& name, const std::string& memory);

}  // namespace takt::app
