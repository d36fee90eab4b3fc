#pragma once

#include "kernels/preprocess.h"
#include "kernels/tensor.h"

namespace takt::kernels::reference {

// image: payload u8[bytes] that holds every pixel that `p` names; y f32[1,3,height,width]. Arithmetic:
// kernels/preprocess.h.
void preprocess(const Tensor& image, const Preprocess& p, const Tensor& y);

}  // namespace takt::kernels::reference
