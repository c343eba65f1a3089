// Products that are added at once, by WebAssembly's relaxed SIMD, of which Highway knows nothing: hn::MulAdd
// and hn::NegMulAdd are these overloads, as they are no templates. src/CMakeLists.txt has the compiler
// include it first.
#pragma once

#include <wasm_simd128.h>

#include "kernels/simd/targets.h"

// Before highway.h, as in the sources, which find it included: there is one target.
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

namespace hwy::HWY_NAMESPACE {

HWY_API Vec128<float> MulAdd(Vec128<float> a, Vec128<float> b, Vec128<float> sum) {
    return Vec128<float>{wasm_f32x4_relaxed_madd(a.raw, b.raw, sum.raw)};
}
HWY_API Vec128<float> NegMulAdd(Vec128<float> a, Vec128<float> b, Vec128<float> sum) {
    return Vec128<float>{wasm_f32x4_relaxed_nmadd(a.raw, b.raw, sum.raw)};
}

}  // namespace hwy::HWY_NAMESPACE
