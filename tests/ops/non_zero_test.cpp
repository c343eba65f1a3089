#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

#include "ir/graph.h"
#include "ops/run_reference.h"

namespace headrace::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

NamedAttrs count(Dim counted) { return {{"counts", Shape{std::move(counted)}}}; }

TEST(NonZero, GivesAColumnForEachElementThatIsNotZero) {
    const auto x = tensor(DType::f32, {2, 3}, {0, 1, 0, 2, 0, -3});
    const auto out = run("non_zero", {x}, count(3));
    EXPECT_EQ(out[0].type.str(), "i64[2, 3]");
    EXPECT_THAT(out[0].as<std::int64_t>(), ElementsAre(0, 1, 1, 1, 0, 2));
    EXPECT_THAT(run("non_zero", {tensor(DType::i32, {3}, {0, 0, 0})}, count(0))[0].as<std::int64_t>(),
                IsEmpty());
}

TEST(NonZero, CountsBeforeItRuns) {
    const auto x = tensor(DType::u8, {4}, {7, 0, 0, 1});
    const OpDef& op = *find_op("non_zero");
    const auto attrs = op.make_attrs(count(Dim::symbolic("k", 0))).value();
    const auto sizes = x.type.sizes();
    const std::array in{ConstView{x.type.dtype, sizes, x.bytes.data()}};
    EXPECT_THAT(op.count(in, attrs.get()), ElementsAre(2));
    EXPECT_THAT(counted_symbols(Node{.op = &op, .attrs = attrs}), ElementsAre("k"));
    EXPECT_THAT(counted_symbols(Node{.op = &op, .attrs = op.make_attrs(count(2)).value()}), IsEmpty());
}

TEST(NonZero, TakesOneSymbol) {
    const TensorType x{DType::f32, {2, 3}};
    EXPECT_EQ(infer("non_zero", {x}, count(Dim::symbolic("k"))).value()[0].str(), "i64[2, k]");
    EXPECT_THAT(infer_error("non_zero", {x}, {{"counts", Shape{1, 2}}}), HasSubstr("counts has 2 entries"));
    EXPECT_THAT(infer_error("non_zero", {TensorType{DType::f32, {}}}, count(1)), HasSubstr("rank 1 to 8"));
}

}  // namespace
}  // namespace headrace::testing
