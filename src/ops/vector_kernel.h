/// Functions of one operand that src/kernels computes by vectors.
#pragma once
#include <array>
#include <cstddef>
#include <span>

#include "ir/op_def.h"
#include "kernels/tensor/elementwise_f32.h"

namespace headrace::ops {

inline bool is_f32(const Operands& in, std::span<const bool>, const void*) {
    return in[0].dtype == DType::f32;
}

/// A vector function of src/kernels for f32.
template <kernels::Unary kFunction>
struct VectorKernel {
    static void run(const TensorArgs& args, const void*) {
        headrace::kernels::unary_f32(kFunction, args.in[0].as<float>(), args.out[0].as<float>(),
                                     static_cast<std::size_t>(args.in[0].elements()), args.share.ith,
                                     args.share.nth);
    }
    static constexpr std::array kernels{KernelDef{.name = "unary_f32", .applies = &is_f32, .run = &run}};
};

}  // namespace headrace::ops
