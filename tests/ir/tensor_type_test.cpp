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
    EXPECT_EQ(product({Dim::symbolic("n+1"), 2, 3}), product({6, Dim::symbolic("1+n")}));
    EXPECT_EQ(product({Dim::symbolic("n+1"), Dim::symbolic("n")}), Dim::symbolic("n*n + n"));
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

TEST(Dim, NumbersTakeNoMemoryOfTheirOwn) { EXPECT_EQ(sizeof(Dim), 24U); }

TEST(Dim, ComparisonsHaveThreeAnswers) {
    const Dim n = Dim::symbolic("n"), m = Dim::symbolic("m"), some = Dim::symbolic("s", 2, 5);
    EXPECT_EQ(equals(n, n), Answer::yes);
    EXPECT_EQ(equals(n, m), Answer::unknown);
    EXPECT_EQ(equals(n, Dim::of(n.expression() + 1)), Answer::no);
    EXPECT_EQ(equals(some, 6), Answer::no);
    EXPECT_EQ(equals(n, 0), Answer::no);
    EXPECT_EQ(is_at_least(some, 2), Answer::yes);
    EXPECT_EQ(is_at_least(some, 6), Answer::no);
    EXPECT_EQ(is_at_least(n, some), Answer::unknown);
}

TEST(Dim, AnExpressionThatTellsItsSymbolTellsItsRange) {
    const auto symbols = Dim::symbolic("2*n + 1", 3, 11).expression().symbols();
    EXPECT_EQ(symbols.at("n"), (Range{1, 5}));
    EXPECT_EQ(Dim::symbolic("n//2", 0, 4).expression().symbols().at("n"), kAnyExtent);
}

TEST(Dim, ProductsAreTakenApart) {
    const Dim a = Dim::symbolic("a"), b = Dim::symbolic("b"), sum = Dim::symbolic("(2*a+b)");
    EXPECT_EQ(Dim::symbolic("6*b*a"), product({2, a, 3, b}));
    EXPECT_EQ(Dim::symbolic("2*(2*a+b)"), product({sum, 2}));
    EXPECT_FALSE(product({2, a}) == product({2, b}));
    EXPECT_FALSE(product({2, a}) == product({2, a, a}));
    for (const std::string name : {"*a", "a*", "99999999999999999999*a"})
        EXPECT_EQ(Dim::symbolic(name).expression().names(), std::vector{name});
    EXPECT_EQ(Dim::symbolic("8").name(), "8");
}

TEST(Dim, ProductsAreEqualWhateverTheyWereMadeOf) {
    const Dim a = Dim::symbolic("a", 2, 5), b = Dim::symbolic("b", 0, 7);
    EXPECT_EQ(product({a, 4, b}).str(), "4*a*b");
    EXPECT_EQ(product({product({b, 2}), product({2, a})}), product({a, 4, b}));
    EXPECT_EQ(product({a, 1}), a);
    EXPECT_EQ(product({a, 0}), Dim(0));
    EXPECT_EQ(product({3, 4}), Dim(12));
    EXPECT_EQ(product({}), Dim(1));
    EXPECT_EQ(product({a, 4, b}).min_size(), 0);
    EXPECT_EQ(product({a, 4, b}).max_size(), 140);
    EXPECT_EQ(product({Dim::symbolic("n"), 4}).max_size(), INT64_MAX);
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
    const std::string expression(4200, 'n');
    EXPECT_EQ(Dim::symbolic(expression), Dim::symbolic(expression));
    EXPECT_FALSE(Dim::symbolic(expression) == Dim::symbolic(expression + "+1"));
    EXPECT_LT(Dim::symbolic(expression).str().size(), 100u);
    EXPECT_EQ(Dim::symbolic(std::string(4096, 'n')).str().size(), 4096u);
}

}  // namespace
}  // namespace headrace
