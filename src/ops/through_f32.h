#pragma once
#include "emit/emit.h"
#include "ir/op_def.h"
#include "ops/arithmetic.h"

/// Lowerings to the many functions of ggml that know f32 only: f16 and bf16 operands are converted on the way
/// in and out, and round once.
namespace headrace::ops {

inline Status works_through_f32(DType t) {
    if (DTypeSet{DType::f32, DType::f16, DType::bf16}.has(t)) return success();
    return unsupported("{}", name_of(t));
}

inline ggml_tensor* to_f32(Emit& e, ggml_tensor* x, DType from) {
    return from == DType::f32 ? x : e.cast(x, DType::f32);
}

/// A contiguous f32 result as a value of the output's type.
inline ggml_tensor* from_f32(Emit& e, ggml_tensor* x, const TensorType& type) {
    return e.shaped(type.dtype == DType::f32 ? x : e.cast(x, type.dtype), type);
}

/// y, but NaN where x is, of which ggml's functions make a number: times 0 · sigmoid(x) + 1, which changes
/// nothing else.
inline ggml_tensor* keep_nan(Emit& e, ggml_tensor* y, ggml_tensor* x) {
    return e.binary(Binary::mul, y, e.scale(e.unary(Unary::sigmoid, x), 0, 1));
}

/// Differences between f32 lowerings and references that samples allow: a few units in the last place.
inline double sample_tolerance(DType t) { return t == DType::f16 ? 4e-3 : t == DType::bf16 ? 3e-2 : 2e-5; }

}  // namespace headrace::ops
