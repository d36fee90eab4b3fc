// Marks what GPU kernels may call and read beside host code. A source of reference functions that kernels use stands in
// `inline namespace TAKT_SIDE`: kernels/cuda compiles it once more, for the device and for the SIMT harness, and the
// linker never takes one side's body for another's.
#pragma once

#if defined(__CUDACC__)
#define TAKT_SIDE on_device
#define TAKT_BOTH __device__
#define TAKT_TABLE_OF static __device__ constexpr
#else
#if defined(TAKT_SIMT_CHECKED)
#define TAKT_SIDE on_simt_checked
#elif defined(TAKT_SIMT)
#define TAKT_SIDE on_simt
#else
#define TAKT_SIDE on_host
#endif
#define TAKT_BOTH
#define TAKT_TABLE_OF inline constexpr
#endif
#define TAKT_FUNCTION TAKT_BOTH inline
