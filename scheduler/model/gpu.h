// What a board file declares of its units, to say how plans are cut there, and what copies take at least, before one
// has run.
#pragma once

#include <string>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/base/time.h"

namespace takt::sched {

struct GpuFigures {
  std::string board, unit;
  double gflops = 0;  // peak in f32, a multiply-add counts 2
  double gb_s = 0;    // peak of its memory, GB/s
  Duration step;      // what a step of a plan takes at least
  Duration guard;     // the longest that a segment of a plan may take
};

struct CopyFigures {
  std::string unit;
  double gb_s = 0;  // peak in its direction, GB/s
};

// Of all units that declare them, in the board's order. kConfiguration: errors of the board file.
struct UnitFigures {
  std::vector<GpuFigures> gpus;
  std::vector<CopyFigures> copies;
};
Result<UnitFigures> load_unit_figures(const std::string& board_file);

// Of the gpu unit of that name, or the first one that declares them. kConfiguration: errors of the board file, or no
// unit does.
Result<GpuFigures> load_gpu_figures(const std::string& board_file, const std::string& unit = "");

}  // namespace takt::sched
