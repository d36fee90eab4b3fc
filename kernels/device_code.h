// Marks what GPU kernels may call and read beside host code.
#pragma once

#if defined(__CUDACC__)
#define TAKT_FUNCTION __device__ inline
#define TAKT_TABLE_OF static __device__ constexpr
#else
#define TAKT_FUNCTION inline
#define TAKT_TABLE_OF inline constexpr
#endif
