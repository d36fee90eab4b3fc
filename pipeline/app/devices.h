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

// --device and --device-memory, for open_device().
void add_device_options(CLI::App& verb, std::string& device, std::string& memory);

}  // namespace takt::app
