// The devices that this build of the program knows, by name.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "pipeline/assembly/pipeline_file.h"
#include "runtime/base/status.h"

namespace takt::app {

// "cpu" (nothing beside the cores), "cuda" or "cuda:N", "cuda-host". `memory`: "in-place", "copied", or "" for what the
// device is made for. kUsage: no such name. kEnvironment: a GPU that is not there or has no driver, one that takt has
// no kernels for, a device that this program was built without.
Result<pipeline::DevicePlace> open_device(const std::string& name, const std::string& memory);

// A device that takes plans for this GPU ("cuda:sm_87", "cuda:sm_90") and does nothing, where none is needed: to
// compile and to plan. `memory` as above; "": an Orin shares its memory, others copy. kUsage: no such target.
Result<pipeline::DevicePlace> stand_in_for(const std::string& target, const std::string& memory = "");

// --device and --device-memory, for open_device().
void add_device_options(CLI::App& verb, std::string& device, std::string& memory);

}  // namespace takt::app
