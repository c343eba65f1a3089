// Largest elements of windows of images of bytes.
#pragma once

#include "kernels/int8/requantization.h"
#include "kernels/tensor/pool2d_f32.h"

namespace headrace::kernels {

// What pool2d_f32() computes with is_max, where args.x and args.y are not read but x and y are; images have
// their channels last. A window without any element of the image gives the type's lowest number. Runs thread
// ith's share of nth, split over images and rows.
void max_pool_bytes(const Pool2dArgs& args, const Bytes& x, void* y, int ith, int nth);

}  // namespace headrace::kernels
