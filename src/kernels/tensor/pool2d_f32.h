// 2-D pooling of f32 images: largest element or mean of a window.
#pragma once

#include <cstddef>

namespace headrace::kernels {

// x and y are dense: [batch][channels][h][w], or [batch][h][w][channels] if channels_last. Padding at the end
// is whatever out_h and out_w reach beyond the input; it never counts. A window without any element of the
// image gives -Inf as its largest and 0 as its mean. NaN in a window gives NaN.
struct Pool2dArgs {
    bool is_max = false;  // else the mean
    bool channels_last = false;
    size_t batch = 1, channels = 0, in_h = 0, in_w = 0, out_h = 0, out_w = 0;
    size_t window_h = 1, window_w = 1;
    size_t stride_h = 1, stride_w = 1, dilation_h = 1, dilation_w = 1;
    ptrdiff_t pad_top = 0, pad_left = 0;
    const float* x = nullptr;
    float* y = nullptr;
};

// Whether pool2d_f32 computes this, by all but x and y: with channels last everything, else windows of 2 × 2
// and 3 × 3 with steps of 1 or 2, and whole images.
bool pool2d_f32_applies(const Pool2dArgs& args);

// Runs thread ith's share of nth, split over images, channels and rows.
void pool2d_f32(const Pool2dArgs& args, int ith, int nth);

}  // namespace headrace::kernels
