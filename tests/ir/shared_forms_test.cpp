#include "ir/shared_forms.h"

#include <gtest/gtest.h>

#include <array>
#include <vector>

namespace headrace {
namespace {

using Bytes = std::shared_ptr<const std::vector<std::byte>>;

Constant constant_of(const Bytes& bytes, std::size_t first, std::size_t count) {
    return {.bytes = std::span(*bytes).subspan(first, count), .owner = bytes, .key = ""};
}
Bytes some_bytes(std::size_t count) { return std::make_shared<const std::vector<std::byte>>(count); }

SharedForms::Form some_form() { return std::make_shared<const std::byte>(std::byte{1}); }

/// Of one source.
SharedForms::Form find(SharedForms& forms, const Constant& of, std::string_view what) {
    return forms.find(std::array<const Constant*, 1>{&of}, what);
}
SharedForms::Form add(SharedForms& forms, const Constant& of, std::string_view what, SharedForms::Form form) {
    return forms.add(std::array<const Constant*, 1>{&of}, what, std::move(form));
}

TEST(SharedForms, AreFoundByPlaceSizeAndWhatTheyAreAsLongAsSomebodyHasThem) {
    SharedForms forms;
    const Bytes bytes = some_bytes(8);
    const Constant whole = constant_of(bytes, 0, 8), part = constant_of(bytes, 0, 4);
    SharedForms::Form form = some_form();
    EXPECT_EQ(add(forms, whole, "gemm", form), form);
    EXPECT_EQ(find(forms, whole, "gemm"), form);
    EXPECT_EQ(find(forms, whole, "conv"), nullptr);
    EXPECT_EQ(find(forms, part, "gemm"), nullptr);
    EXPECT_EQ(add(forms, whole, "gemm", some_form()), form) << "of two that are made at once the first";
    form.reset();
    EXPECT_EQ(find(forms, whole, "gemm"), nullptr);
}

TEST(SharedForms, OfThoseThatAreGoneNoneTakesTheirPlace) {
    SharedForms forms;
    const Bytes bytes = some_bytes(1000);
    std::vector<SharedForms::Form> kept;
    for (std::size_t i = 0; i < bytes->size(); ++i) {
        const SharedForms::Form form = add(forms, constant_of(bytes, i, 1), "gemm", some_form());
        if (i % 100 == 0) kept.push_back(form);
    }
    for (std::size_t i = 0; i < bytes->size(); ++i)
        EXPECT_EQ(find(forms, constant_of(bytes, i, 1), "gemm"), i % 100 == 0 ? kept[i / 100] : nullptr);
}

TEST(SharedForms, OfMemoryThatAnotherOwnsOrNobodyAreNotFound) {
    SharedForms forms;
    const Bytes bytes = some_bytes(8);
    Constant constant = constant_of(bytes, 0, 8);
    constant.owner = std::make_shared<const int>(0);
    const SharedForms::Form form = add(forms, constant, "gemm", some_form());
    EXPECT_EQ(find(forms, constant, "gemm"), form);
    constant.owner = std::make_shared<const int>(0);
    EXPECT_EQ(find(forms, constant, "gemm"), nullptr) << "what lies there now is another's";
    constant.owner = nullptr;
    const SharedForms::Form of_callers = add(forms, constant, "gemm", some_form());
    EXPECT_EQ(find(forms, constant, "gemm"), nullptr) << "callers may change what they have lent";
}

TEST(SharedForms, OfSeveralSourcesAndOfFactorsDependOnEach) {
    SharedForms forms;
    const Bytes bytes = some_bytes(8);
    const Constant first = constant_of(bytes, 0, 4), second = constant_of(bytes, 4, 4);
    const SharedForms::Form form = some_form();
    forms.add(std::array{&first, &second}, "blocks", form);
    EXPECT_EQ(forms.find(std::array{&first, &second}, "blocks"), form);
    EXPECT_EQ(forms.find(std::array{&second, &first}, "blocks"), nullptr);
    Constant doubled = first, tripled = first, again = first;
    doubled.factors = std::make_shared<const ElementFactors>(ElementFactors{{2}, 1});
    tripled.factors = std::make_shared<const ElementFactors>(ElementFactors{{3}, 1});
    again.factors = std::make_shared<const ElementFactors>(*doubled.factors);
    const SharedForms::Form of_doubled = add(forms, doubled, "gemm", some_form());
    EXPECT_EQ(find(forms, again, "gemm"), of_doubled);
    EXPECT_EQ(find(forms, tripled, "gemm"), nullptr);
    EXPECT_EQ(find(forms, first, "gemm"), nullptr);
}

TEST(SharedForms, AreMadeOnceAndNotKeptWhereThereIsNone) {
    SharedForms forms;
    const Bytes bytes = some_bytes(8);
    const Constant constant = constant_of(bytes, 0, 8);
    const std::array<const Constant*, 1> sources{&constant};
    int made = 0;
    const auto make = [&]() -> Result<SharedForms::Form> { return ++made == 1 ? nullptr : some_form(); };
    EXPECT_EQ(forms.get(sources, "blocks", make).value(), nullptr);
    const SharedForms::Form form = forms.get(sources, "blocks", make).value();
    EXPECT_NE(form, nullptr);
    EXPECT_EQ(forms.get(sources, "blocks", make).value(), form);
    EXPECT_EQ(made, 2);
}

}  // namespace
}  // namespace headrace
