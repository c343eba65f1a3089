#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

#include "ir/graph.h"
#include "ir/kernel_error.h"
#include "ops/run_reference.h"

namespace headrace::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(ReadExtents, CountsItsElements) {
    const auto x = tensor(DType::i64, {3}, {7, 0, 5});
    const OpDef& op = *find_op("read_extents");
    const auto attrs =
        op.make_attrs({{"counts", Shape{Dim::symbolic("a", 1), 0, Dim::symbolic("b", 0, 5)}}}).value();
    const auto sizes = x.type.sizes();
    const std::array in{ConstView{x.type.dtype, sizes, x.bytes.data()}};
    EXPECT_THAT(op.count(in, attrs.get()), ElementsAre(7, 5));
    EXPECT_THAT(counted_symbols(Node{.op = &op, .attrs = attrs}), ElementsAre("a", "b"));
    const auto negative = tensor(DType::i64, {3}, {7, 0, -1});
    const std::array wrong{ConstView{x.type.dtype, sizes, negative.bytes.data()}};
    EXPECT_THROW(op.count(wrong, attrs.get()), KernelError);
}

TEST(ReadExtents, TakesASymbolForEachElement) {
    const TensorType x{DType::i64, {2}};
    EXPECT_THAT(infer_error("read_extents", {x}, {{"counts", Shape{1}}}),
                HasSubstr("counts has 1 entries for the 2 elements of i64[2]"));
    EXPECT_THAT(
        values<std::int64_t>("read_extents", {tensor(DType::i64, {2}, {4, 5})}, {{"counts", Shape{4, 5}}}),
        ElementsAre(4, 5));
}

}  // namespace
}  // namespace headrace::testing
