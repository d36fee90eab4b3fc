// Pooling over NCHW f32. Padding never enters a maximum or a sum.
#pragma once

#include "kernels/reference/conv.h"

namespace takt::kernels::reference {

// acc = -inf; over kh, kw ascending: acc = x > acc ? x : acc.
void max_pool2d(const Tensor& x, const Window& window, const Tensor& y);

// acc = 0; over kh, kw ascending: acc += x; y = acc / count. count: taps inside x; with count_padding also those in
// the declared padding (pad_end: rows and columns behind the last), not those that ceil_mode adds beyond it.
void average_pool2d(const Tensor& x, const Window& window, const std::int64_t pad_end[2], bool count_padding,
                    const Tensor& y);

// y f32[N,C,1,1]: acc = 0; acc += x row by row; y = acc / (H W).
void global_average_pool(const Tensor& x, const Tensor& y);

}  // namespace takt::kernels::reference
