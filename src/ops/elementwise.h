#pragma once
#include <concepts>

#include "ops/op.h"
#include "ops/strided.h"
#include "ops/through_f32.h"

/// Kernels of ops that compute every output element from the operands' elements at the same place.
namespace headrace::ops {

/// visit_dtype for an operand of one of kTypes: float functions are not instantiated for integers, nor
/// functions of integers for floats.
template <DTypeSet kTypes, class F>
void visit_allowed(DType t, F&& f) {
    constexpr bool kHasFloats = (kTypes.bits_ & kFloats.bits_) != 0;
    constexpr bool kHasIntegers = (kTypes.bits_ & ~kFloats.bits_) != 0;
    visit_dtype(t, [&]<class T>() {
        if constexpr (std::integral<T> ? kHasIntegers : kHasFloats) f.template operator()<T>();
    });
}

/// out[i] = f(in[i]); f works in the compute types.
template <class In, class Out, class F>
void map_elements(const TensorArgs& args, F f) {
    const auto part = args.share.of(args.in[0].elements(), 64);
    const In* x = args.in[0].as<In>();
    Out* y = args.out[0].as<Out>();
    for (std::int64_t i = part.begin; i < part.end; ++i)
        y[i] = static_cast<Out>(static_cast<compute_t<Out>>(f(static_cast<compute_t<In>>(x[i]))));
}

/// out[i] = f(a[i], b[i]) where a and b are broadcast to the output's shape.
template <class In, class Out, class F>
void zip_elements(const TensorArgs& args, F f) {
    using C = compute_t<In>;
    const Sizes shape = args.out[0].shape;
    const StridedWalk<2> walk(
        shape, {broadcast_strides(args.in[0].shape, shape), broadcast_strides(args.in[1].shape, shape)});
    walk.run(args.share,
             [&](std::int64_t position, const auto& offsets, std::int64_t count, const auto& steps) {
                 const In* a = args.in[0].as<In>() + offsets[0];
                 const In* b = args.in[1].as<In>() + offsets[1];
                 Out* y = args.out[0].as<Out>() + position;
                 const auto store = [&](std::int64_t i, C left, C right) {
                     y[i] = static_cast<Out>(static_cast<compute_t<Out>>(f(left, right)));
                 };
                 // An inner step is 1, or 0 where the operand repeats; each case apart can be vectorised.
                 if (steps[0] && steps[1]) {
                     for (std::int64_t i = 0; i < count; ++i)
                         store(i, static_cast<C>(a[i]), static_cast<C>(b[i]));
                 } else if (steps[0]) {
                     const C right = static_cast<C>(*b);
                     for (std::int64_t i = 0; i < count; ++i) store(i, static_cast<C>(a[i]), right);
                 } else {
                     const C left = static_cast<C>(*a);
                     for (std::int64_t i = 0; i < count; ++i) store(i, left, static_cast<C>(b[i * steps[1]]));
                 }
             });
}

/// The reference of Op as a kernel for what its lowering takes, too: on the CPU one pass over the elements is
/// faster than ggml's several, which are there for devices.
template <class Op>
struct OnePass {
    static bool applies(const Operands& in, std::span<const bool>, const void*) {
        return works_through_f32(in[0].dtype).ok();
    }
    static void run(const TensorArgs& args, const void* attrs) {
        Op::reference(args, detail::attrs_ref<attrs_t<Op>>(attrs));
    }
    static constexpr KernelDef kKernel{.name = "one_pass", .applies = &applies, .run = &run};
};

}  // namespace headrace::ops
