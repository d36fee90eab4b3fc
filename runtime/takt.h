// Running compiled networks from C++: the whole of it in a dozen calls (docs/cpp_api.md).
#pragma once

#include "runtime/exec/buffers.h"
#include "runtime/exec/session.h"
#include "runtime/plan/buckets.h"
#include "runtime/plan/plan.h"
