// Pictures of the drive with what the pipeline made of it: camera with boxes, bird's-eye view against truth.
#pragma once

#include <string>

#include "pipeline/report/run_data.h"
#include "pipeline/report/verdict.h"

namespace takt::pipeline {

// HTML of the pictures section: a typical output, the one with most objects and the one with the worst latency. Camera
// and LiDAR are read again from the log; when that is not possible the section says why and shows the rest.
std::string pictures_html(const RunData& run, const Judgement& judgement);

}  // namespace takt::pipeline
