#pragma once
#include "ops/elementwise.h"

namespace headrace::ops {

/// out[i] = in[i] of integers; check(i, number) throws a KernelError for one that is not taken.
template <DTypeSet kTypes, class Check>
void copy_checked(const TensorArgs& args, Check check) {
    visit_allowed<kTypes>(args.in[0].dtype, [&]<class T>() {
        const auto part = args.share.of(args.in[0].elements(), 64);
        const T* x = args.in[0].as<T>();
        T* y = args.out[0].as<T>();
        for (std::int64_t i = part.begin; i < part.end; ++i) {
            check(i, static_cast<std::int64_t>(x[i]));
            y[i] = x[i];
        }
    });
}

}  // namespace headrace::ops
