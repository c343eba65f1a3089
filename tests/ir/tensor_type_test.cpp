#include "ir/tensor_type.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace headrace {
namespace {

using ::testing::HasSubstr;

TEST(TensorType, KnowsElementsAndPackedBytes) {
    EXPECT_EQ((TensorType{DType::f32, {2, 3}}).bytes(), 24U);
    EXPECT_EQ((TensorType{DType::u4, {3, 3}}).bytes(), 5U) << "two 4-bit elements share a byte";
    EXPECT_EQ((TensorType{DType::f64, {}}).elements(), 1) << "a scalar";
    EXPECT_EQ((TensorType{DType::i8, {4, 0}}).bytes(), 0U);
}

TEST(TensorType, PrintsSymbolsByName) {
    EXPECT_EQ((TensorType{DType::bf16, {1, Dim::symbolic("seq"), 384}}).str(), "bf16[1, seq, 384]");
    EXPECT_EQ((TensorType{DType::boolean, {}}).str(), "bool[]");
}

TEST(Dim, SymbolsAreEqualHoweverTheirExpressionsAreSpelled) {
    EXPECT_EQ(Dim::symbolic("s64+1"), Dim::symbolic("(1 + s64)"));
    EXPECT_EQ(Dim::symbolic("2*s64 + 2"), product({Dim::symbolic("s64+1"), 2}));
    EXPECT_EQ(Dim::symbolic("((h-2)/2+1)"), Dim::symbolic("h//2"));
    EXPECT_FALSE(Dim::symbolic("n+1") == Dim::symbolic("n+2"));
    EXPECT_EQ(count_elements({Dim::symbolic("n+1"), 2, 3}), count_elements({6, Dim::symbolic("1+n")}));
    EXPECT_EQ(count_elements({Dim::symbolic("n+1"), Dim::symbolic("n")}),
              count_elements({Dim::symbolic("n*n + n")}));
}

TEST(TensorType, ComparesSymbolsByNameAndNumbersByValue) {
    EXPECT_EQ(Dim::symbolic("n", 1, 5), Dim::symbolic("n"));
    EXPECT_FALSE(Dim::symbolic("n") == Dim::symbolic("m"));
    EXPECT_FALSE(Dim::symbolic("n", 4, 4) == Dim(4));
    EXPECT_TRUE(Dim(4).is(4));
    EXPECT_FALSE(Dim::symbolic("n", 4, 4).is(4));
}

TEST(TensorType, ChecksRankExtentsAndSize) {
    EXPECT_TRUE((TensorType{DType::f32, Shape(kMaxRank, 2)}).check().ok());
    EXPECT_THAT((TensorType{DType::f32, Shape(kMaxRank + 1, 1)}).check().error().message,
                HasSubstr("rank 9 of shape [1, 1, 1, 1, 1, 1, 1, 1, 1] exceeds 8"));
    EXPECT_THAT((TensorType{DType::f32, {2, -1}}).check().error().message, HasSubstr("negative extent -1"));
    const std::int64_t large = std::int64_t{1} << 31;
    EXPECT_FALSE((TensorType{DType::f32, {large, large}}).check().ok());
    EXPECT_FALSE((TensorType{DType::u4, {INT64_MAX}}).check().ok());
    EXPECT_FALSE((TensorType{DType::f32, {0, large, large}}).check().ok()) << "0 must not hide the others";
}

TEST(TensorType, CountsElementsWithSymbols) {
    const Dim a = Dim::symbolic("a"), b = Dim::symbolic("b");
    EXPECT_EQ(count_elements({2, a, 3, b}), count_elements({b, 6, a}));
    EXPECT_FALSE(count_elements({2, a}) == count_elements({2, b}));
    EXPECT_FALSE(count_elements({2, a}) == count_elements({2, a, a}));
}

TEST(TensorType, CountsTheFactorsOfSymbolsThatAreProducts) {
    const Dim a = Dim::symbolic("a"), b = Dim::symbolic("b"), sum = Dim::symbolic("(2*a+b)");
    EXPECT_EQ(count_elements({Dim::symbolic("6*b*a")}), count_elements({2, a, 3, b}));
    EXPECT_EQ(count_elements({Dim::symbolic("2*(2*a+b)")}), count_elements({sum, 2}));
    EXPECT_EQ(count_elements({a, b}).symbols, (std::vector<std::string>{"a", "b"}));
    for (const std::string name : {"*a", "a*", "8", "99999999999999999999*a"})
        EXPECT_EQ(count_elements({Dim::symbolic(name)}).symbols, std::vector{name});
}

TEST(Dim, ProductsAreEqualWhateverTheyWereMadeOf) {
    const Dim a = Dim::symbolic("a", 2, 5), b = Dim::symbolic("b", 0, 7);
    EXPECT_EQ(product({a, 4, b}).str(), "4*a*b");
    EXPECT_EQ(product({product({b, 2}), product({2, a})}), product({a, 4, b}));
    EXPECT_EQ(product({a, 1}), a);
    EXPECT_EQ(product({a, 0}), Dim(0));
    EXPECT_EQ(product({3, 4}), Dim(12));
    EXPECT_EQ(product({}), Dim(1));
    EXPECT_EQ(product({a, 4, b}).symbol().min, 0);
    EXPECT_EQ(product({a, 4, b}).symbol().max, 140);
    EXPECT_EQ(product({Dim::symbolic("n"), 4}).symbol().max, INT64_MAX);
}

TEST(DType, IsFoundByItsName) {
    for (int i = 0; i < kDTypeCount; ++i) {
        const auto type = static_cast<DType>(i);
        EXPECT_EQ(dtype_from_name(name_of(type)), type);
    }
    EXPECT_EQ(dtype_from_name("float32"), std::nullopt);
}

TEST(DType, SetsHaveMembersAndText) {
    EXPECT_TRUE(kFloats.has(DType::bf16));
    EXPECT_FALSE(kFloats.has(DType::i32));
    EXPECT_EQ((DTypeSet{DType::i32, DType::f32}).str(), "f32, i32");
    for (int i = 0; i < kDTypeCount; ++i) EXPECT_TRUE(kAny.has(static_cast<DType>(i))) << i;
}

TEST(Dim, LongExpressionsAreToldApartByAHash) {
    const std::string expression(600, 'n');
    EXPECT_EQ(Dim::symbolic(expression), Dim::symbolic(expression));
    EXPECT_FALSE(Dim::symbolic(expression) == Dim::symbolic(expression + "+1"));
    EXPECT_LT(Dim::symbolic(expression).str().size(), 100u);
    EXPECT_EQ(Dim::symbolic(std::string(512, 'n')).str().size(), 512u);
}

}  // namespace
}  // namespace headrace
