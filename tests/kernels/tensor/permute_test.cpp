#include "kernels/tensor/permute.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <numeric>
#include <vector>

#include "kernels/each_target.h"

namespace headrace::kernels {
namespace {

using testing::for_each_target;
using Shape = std::array<size_t, 4>;

// Permutes a dense tensor of distinct elements into a dense one and compares element by element.
template <class T>
void expect_permuted(const Shape& src_shape, const std::array<int, 4>& order, int nth) {
    SCOPED_TRACE(::testing::Message() << src_shape[0] << "x" << src_shape[1] << "x" << src_shape[2] << "x"
                                      << src_shape[3] << " by " << order[0] << order[1] << order[2]
                                      << order[3] << ", " << sizeof(T) << " bytes, threads " << nth);
    const size_t count = src_shape[0] * src_shape[1] * src_shape[2] * src_shape[3];
    std::vector<T> src(count), dst(count + 1, T(0xA5));
    for (size_t i = 0; i < count; ++i) src[i] = static_cast<T>(i * 2654435761u + i);
    ptrdiff_t src_stride[4] = {1, 1, 1, 1};
    for (int i = 3; i-- > 0;) src_stride[i] = src_stride[i + 1] * static_cast<ptrdiff_t>(src_shape[i + 1]);

    PermuteArgs g;
    ptrdiff_t stride = 1;
    for (int i = 4; i-- > 0;) {
        g.extent[i] = src_shape[order[i]], g.src_stride[i] = src_stride[order[i]], g.dst_stride[i] = stride;
        stride *= static_cast<ptrdiff_t>(g.extent[i]);
    }
    g.src = src.data(), g.dst = dst.data(), g.element_size = sizeof(T);
    for (int ith = 0; ith < nth; ++ith) permute(g, ith, nth);

    for (size_t i = 0; i < count; ++i) {
        size_t rest = i;
        ptrdiff_t from = 0;
        for (int axis = 4; axis-- > 0;) {
            from += static_cast<ptrdiff_t>(rest % g.extent[axis]) * g.src_stride[axis];
            rest /= g.extent[axis];
        }
        ASSERT_EQ(dst[i], src[from]) << "at " << i;
    }
    ASSERT_EQ(dst[count], T(0xA5));
}

TEST(Permute, MatchesElementwiseCopyForEveryOrderOfAxes) {
    for_each_target([] {
        size_t turn = 0;
        for (const Shape& shape :
             {Shape{2, 3, 5, 7}, Shape{1, 4, 17, 18}, Shape{3, 1, 1, 33}, Shape{2, 16, 2, 20}}) {
            std::array<int, 4> order = {0, 1, 2, 3};
            do {
                const int nth = testing::thread_count(turn++);
                expect_permuted<uint8_t>(shape, order, nth);
                expect_permuted<uint16_t>(shape, order, nth);
                expect_permuted<uint32_t>(shape, order, nth);
                expect_permuted<uint64_t>(shape, order, nth);
            } while (std::next_permutation(order.begin(), order.end()));
        }
    });
}

TEST(Permute, TransposesMatricesOfAnySize) {
    for_each_target([] {
        size_t turn = 0;
        for (size_t rows : {1, 2, 15, 16, 17, 64, 65, 130})
            for (size_t cols : {1, 3, 4, 31, 64, 67, 200})
                expect_permuted<uint32_t>({1, 1, rows, cols}, {0, 1, 3, 2}, testing::thread_count(turn++));
    });
}

TEST(Permute, CopiesLongRuns) {
    for_each_target([] {
        for (int nth : testing::kThreadCounts)
            expect_permuted<uint32_t>({1, 2, 3, 10'000}, {0, 2, 1, 3}, nth);
    });
}

TEST(Permute, ReversesWithNegativeStrides) {
    std::vector<uint32_t> src(40), dst(40), expected(40);
    std::iota(src.begin(), src.end(), 0u);
    std::reverse_copy(src.begin(), src.end(), expected.begin());
    PermuteArgs g;
    g.extent[2] = 5, g.extent[3] = 8;
    g.src = src.data() + 39, g.src_stride[2] = -8, g.src_stride[3] = -1;
    g.dst = dst.data(), g.dst_stride[2] = 8, g.dst_stride[3] = 1;
    for (int ith = 0; ith < 3; ++ith) permute(g, ith, 3);
    EXPECT_EQ(dst, expected);
}

TEST(Permute, BroadcastsWithZeroStrides) {
    const std::vector<uint32_t> src = {10, 20, 30};
    std::vector<uint32_t> dst(12);
    PermuteArgs g;
    g.extent[1] = 2, g.extent[2] = 3, g.extent[3] = 2;
    g.src = src.data(), g.src_stride[2] = 1;
    g.dst = dst.data(), g.dst_stride[1] = 6, g.dst_stride[2] = 2, g.dst_stride[3] = 1;
    permute(g, 0, 1);
    EXPECT_EQ(dst, (std::vector<uint32_t>{10, 10, 20, 20, 30, 30, 10, 10, 20, 20, 30, 30}));
}

TEST(Permute, WritesIntoASliceOfALargerTensor) {
    std::vector<uint16_t> src(6), dst(20, 9);
    std::iota(src.begin(), src.end(), uint16_t(1));
    PermuteArgs g;
    g.extent[2] = 2, g.extent[3] = 3, g.element_size = 2;
    g.src = src.data(), g.src_stride[2] = 3, g.src_stride[3] = 1;
    g.dst = dst.data() + 6, g.dst_stride[2] = 5, g.dst_stride[3] = 1;
    for (int ith = 0; ith < 2; ++ith) permute(g, ith, 2);
    EXPECT_EQ(dst, (std::vector<uint16_t>{9, 9, 9, 9, 9, 9, 1, 2, 3, 9, 9, 4, 5, 6, 9, 9, 9, 9, 9, 9}));
}

TEST(Permute, DoesNothingForAnEmptyTensor) {
    PermuteArgs g;
    g.extent[1] = 0, g.extent[3] = 5;
    permute(g, 0, 1);  // null pointers: any access would crash
}

}  // namespace
}  // namespace headrace::kernels
