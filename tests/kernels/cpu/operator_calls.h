// One small valid call of every operator of takt's, for the tests of the table and of check().
#pragma once

#include <vector>

#include "kernels/cpu/host.h"

namespace takt::kernels::cpu {

std::vector<Call> voxel_calls();
std::vector<Call> point_calls();
std::vector<Call> tracking_calls();

}  // namespace takt::kernels::cpu
