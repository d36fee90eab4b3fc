// Plans for a GPU on the host: the CUDA device of tests, and of machines without a GPU. Kernels run by the SIMT harness
// (kernels/cuda/simt) on the thread that fills a stream: slowly, and to the byte what the GPU's kernels are written to
// give.
#pragma once

#include <memory>
#include <vector>

#include "kernels/cuda/simt/simt.h"
#include "kernels/cuda/table.h"
#include "runtime/device/device.h"

namespace takt::device {

class CudaHost : public Device {
 public:
  // `launch_of`: kernels::cuda::simt::launch_of, or simt_checked's with options.check: then memory is watched too, and
  // one thread at a time may use the device.
  static std::unique_ptr<CudaHost> create(kernels::cuda::Launch (*launch_of)(kernels::cpu::KernelId),
                                          const simt::Options& options);
  // What kernels did wrong since the last call.
  virtual std::vector<simt::Finding> take_findings() = 0;
};

}  // namespace takt::device
