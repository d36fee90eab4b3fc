#!/bin/sh
# On a machine with a GPU and a CUDA toolkit, without network: builds the device tests, runs the device suite and the
# tests of every kernel, and compares plans end to end with the CPU. Ten minutes at most. Prints one JSON, which also
# lies in OUT:
#   tests/device/run.sh OUT [MODEL.onnx...]
# Needs cmake, ninja, g++ and the libraries that tools/test installs.
set -eu
[ $# -ge 1 ] || { echo "usage: tests/device/run.sh OUT [MODEL.onnx...]" >&2; exit 2; }
mkdir -p "$1"
out=$(cd "$1" && pwd)
shift
cd "$(dirname "$0")/../.."
command -v nvidia-smi >/dev/null 2>&1 && nvidia-smi --query-gpu=name,driver_version,compute_cap --format=csv,noheader
cmake -S . -B build/device -G Ninja -DCMAKE_BUILD_TYPE=Release -DTAKT_BUILD_TESTS=ON >"$out/configure.log" 2>&1 || {
  tail -20 "$out/configure.log" >&2
  echo "the build could not be configured: tools/test installs what is missing" >&2
  exit 5
}
cmake --build build/device --target device_test device_compare gpu_kernels_test gpu_kernels_f16_test >"$out/build.log" 2>&1 || { tail -20 "$out/build.log" >&2; exit 1; }
result=0
timeout 120 build/device/tests/runtime/device/device_test --gtest_filter='*/cuda' >"$out/suite.log" 2>&1 || result=1
tail -3 "$out/suite.log"
timeout 150 build/device/tests/device/gpu_kernels_test >"$out/kernels.log" 2>&1 || result=1
tail -3 "$out/kernels.log"
timeout 60 build/device/tests/device/gpu_kernels_f16_test >"$out/kernels_f16.log" 2>&1 || result=1
tail -3 "$out/kernels_f16.log"
timeout 200 build/device/tests/device/device_compare cuda configs/models/sim_camera.onnx:height=384:width=640 configs/models/sim_camera.onnx:height=384:width=640:precision=f16 pillars voxels "$@" >"$out/device.json" || result=$?
cat "$out/device.json"
exit "$result"
