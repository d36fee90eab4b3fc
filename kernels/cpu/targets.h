// Which targets hwy/foreach_target.h visits: those of plans (kernels::Target) and the compiler's own baseline. Included
// before any header of Highway.
#pragma once

#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4 | HWY_AVX3_DL | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128)
