// A scene becomes a drive: one MCAP log with everything its rig records, ground truth beside it (docs/log_format.md).
//
// The bytes of the log are a function of the scene file, the rig file and takt's version; pictures also of the version
// of libjpeg-turbo (recorded in the log's metadata). A shorter duration gives a prefix of every sensor's messages.
#pragma once

#include <functional>
#include <string>

#include "runtime/base/status.h"
#include "sensors/rig/rig.h"
#include "sensors/sim/scene.h"

namespace takt::sensors {

using sim::load_scene;
using sim::Scene;

// Called after every message with how much of the work is done; false stops the simulation (kInterrupted, no file).
using SimulationProgress = std::function<bool(double done, double total)>;

// Writes the drive of `rig` through `scene`; the file appears when it is complete. kEnvironment: disk, rights.
// kConfiguration: a rig that the simulator cannot drive (recorded, or with declared delays). One thread.
Status simulate(const Scene& scene, const Rig& rig, const std::string& out, const SimulationProgress& progress = {});
// The same with the scene's own rig file.
Status simulate(const Scene& scene, const std::string& out, const SimulationProgress& progress = {});

}  // namespace takt::sensors
