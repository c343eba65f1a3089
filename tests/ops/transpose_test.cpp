#include <gmock/gmock.h>

#include <array>
#include <numeric>

#include "ops/run_reference.h"

namespace headrace::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Integers = std::vector<std::int64_t>;

TEST(Transpose, ReversesTheDimensionsByDefault) {
    const auto out = run("transpose", {tensor(DType::f32, {2, 3}, {1, 2, 3, 4, 5, 6})});
    EXPECT_EQ(out[0].type.str(), "f32[3, 2]");
    EXPECT_THAT(out[0].as<float>(), ElementsAre(1, 4, 2, 5, 3, 6));
    EXPECT_THAT(values("transpose", {tensor(DType::f32, {}, {5})}), ElementsAre(5));
}

/// Index arithmetic written out, against the strided copy of the kernel.
TEST(Transpose, FollowsAnyPermutationOfFiveDimensionsForEveryElementSize) {
    const Shape shape{2, 3, 1, 4, 2};
    const Integers extents{2, 3, 1, 4, 2}, permutation{3, 0, 4, 2, 1};
    std::vector<double> x(48);
    std::iota(x.begin(), x.end(), 0);
    std::vector<int> expected;
    for (int a = 0; a < 4; ++a)
        for (int b = 0; b < 2; ++b)
            for (int c = 0; c < 2; ++c)
                for (int e = 0; e < 3; ++e) expected.push_back(((b * 3 + e) * 4 + a) * 2 + c);
    for (DType t : {DType::f32, DType::f16, DType::f64, DType::i8, DType::u8, DType::i64, DType::boolean})
        EXPECT_EQ(values<int>("transpose", {tensor(t, shape, x)}, {{"permutation", permutation}}), expected)
            << name_of(t);
}

TEST(Transpose, MovesPackedNibbles) {
    EXPECT_THAT(values<int>("transpose", {tensor(DType::i4, {3, 3}, {0, 1, 2, 3, 4, 5, 6, 7, -8})}),
                ElementsAre(0, 3, 6, 1, 4, 7, 2, 5, -8));
}

TEST(Transpose, HandlesEmptyTensors) {
    EXPECT_EQ(run("transpose", {tensor(DType::f32, {0, 3}, {})})[0].type.str(), "f32[3, 0]");
}

TEST(Transpose, RefusesWhatIsNoPermutation) {
    const TensorType x{DType::f32, {2, 3, 4}};
    EXPECT_EQ(infer_error("transpose", {x}, {{"permutation", Integers{0, 1}}}),
              "permutation [0, 1] has 2 entries, input [2, 3, 4] has rank 3");
    EXPECT_THAT(infer_error("transpose", {x}, {{"permutation", Integers{0, 1, 1}}}),
                HasSubstr("Duplicate axis 1"));
    EXPECT_THAT(infer_error("transpose", {x}, {{"permutation", Integers{0, 1, 3}}}),
                HasSubstr("Axis 3 out of bounds for rank 3"));
}

TEST(Transpose, IsItsInputWhenOnlyUnitExtentsTradePlaces) {
    const OpDef& op = *find_op("transpose");
    const auto same = [&](TensorType x, Integers permutation) {
        const TensorType* types[] = {&x};
        return op.same_as(Operands(types), op.make_attrs({{"permutation", permutation}}).value().get());
    };
    EXPECT_EQ(same({DType::f32, {2, 3}}, {0, 1}), 0);
    EXPECT_EQ(same({DType::f32, {1, 1, 3}}, {1, 0, 2}), 0);
    EXPECT_EQ(same({DType::f32, {3, 3}}, {1, 0}), std::nullopt);
    EXPECT_EQ(same({DType::f32, {1, 3}}, {1, 0}), std::nullopt);
    const Dim n = Dim::symbolic("n");
    EXPECT_EQ(same({DType::f32, {n, n}}, {1, 0}), std::nullopt);
}

TEST(Transpose, IsLowerableWhereGgmlCopiesTheType) {
    const OpDef& op = *find_op("transpose");
    const auto lowerable = [&](TensorType x, Integers permutation) {
        const TensorType* types[] = {&x};
        return op.lowerable(Operands(types), op.make_attrs({{"permutation", permutation}}).value().get())
            .ok();
    };
    EXPECT_TRUE(lowerable({DType::f32, {2, 3, 2, 2, 2, 3}}, {3, 4, 5, 0, 1, 2}));
    EXPECT_TRUE(lowerable({DType::f32, {2, 1, 3, 2, 4, 5}}, {5, 4, 1, 3, 2, 0}));
    EXPECT_FALSE(lowerable({DType::i64, {2, 1, 3, 2, 4, 5}}, {5, 4, 1, 3, 2, 0}));
    EXPECT_TRUE(lowerable({DType::u8, {5, 1}}, {1, 0}));
    EXPECT_FALSE(lowerable({DType::u8, {5, 2}}, {1, 0}));
}

TEST(Transpose, PermuteKernelAgreesWithTheReference) {
    const OpDef& op = *find_op("transpose");
    const KernelDef& kernel = op.kernels[0];
    const Integers permutation{2, 0, 3, 1};
    for (DType t : {DType::f32, DType::f16, DType::i64, DType::u8}) {
        std::vector<double> x(2 * 17 * 3 * 19);
        std::iota(x.begin(), x.end(), 0);
        if (t == DType::u8 || t == DType::f16)
            for (double& v : x) v = static_cast<int>(v) % 251;
        const auto in = tensor(t, {2, 17, 3, 19}, x);
        auto expected = run("transpose", {in}, {{"permutation", permutation}})[0];
        const AttrBox attrs = op.make_attrs({{"permutation", permutation}}).value();
        const TensorType* types[] = {&in.type};
        const std::array constant{false};
        ASSERT_TRUE(kernel.applies(Operands(types), constant, attrs.get())) << name_of(t);

        std::vector<std::byte> out(expected.bytes.size());
        const auto from = in.type.sizes(), to = expected.type.sizes();
        const ConstView view{t, from, in.bytes.data()};
        const MutView result{t, to, out.data()};
        for (int ith = 0; ith < 3; ++ith) kernel.run({{&view, 1}, {&result, 1}, {ith, 3}}, attrs.get());
        EXPECT_EQ(out, expected.bytes) << name_of(t);
    }
}

}  // namespace
}  // namespace headrace::testing
