#include "ops/strided.h"

#include <cstring>

namespace headrace::ops {
namespace {

template <class T>
void copy_as(const std::byte* source, std::int64_t start, const StridedWalk<1>& walk, std::byte* destination,
             Share share) {
    const T* in = reinterpret_cast<const T*>(source) + start;
    T* out = reinterpret_cast<T*>(destination);
    walk.run(share, [&](std::int64_t position, const auto& offsets, std::int64_t count, const auto& steps) {
        const T* from = in + offsets[0];
        if (steps[0] == 1) {
            std::memcpy(out + position, from, static_cast<std::size_t>(count) * sizeof(T));
        } else {
            for (std::int64_t i = 0; i < count; ++i) out[position + i] = from[i * steps[0]];
        }
    });
}

}  // namespace

void strided_copy(const std::byte* source, std::int64_t start, Sizes shape,
                  const std::vector<std::int64_t>& strides, std::byte* destination, std::size_t element_bytes,
                  Share share) {
    const StridedWalk<1> walk(shape, {strides});
    visit_width(element_bytes, [&]<class T>() { copy_as<T>(source, start, walk, destination, share); });
}

}  // namespace headrace::ops
