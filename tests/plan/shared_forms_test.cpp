#include "plan/shared_forms.h"

#include <gtest/gtest.h>

#include <array>
#include <vector>

namespace headrace {
namespace {

Constant constant_at(const std::vector<std::byte>& bytes) { return {.bytes = bytes}; }

SharedForms::Form some_form() { return std::make_shared<const std::byte>(std::byte{1}); }

TEST(SharedForms, AreFoundByPlaceSizeAndKernelAsLongAsSomebodyHasThem) {
    SharedForms forms;
    const std::vector<std::byte> bytes(8);
    const Constant whole = constant_at(bytes), part{.bytes = std::span(bytes).first(4)};
    SharedForms::Form form = some_form();
    forms.add(whole, "gemm", form);
    EXPECT_EQ(forms.find(whole, "gemm"), form);
    EXPECT_EQ(forms.find(whole, "conv"), nullptr);
    EXPECT_EQ(forms.find(part, "gemm"), nullptr);
    form.reset();
    EXPECT_EQ(forms.find(whole, "gemm"), nullptr);
}

TEST(SharedForms, OfThoseThatAreGoneNoneTakesTheirPlace) {
    SharedForms forms;
    const std::vector<std::byte> bytes(1000);
    std::vector<SharedForms::Form> kept;
    for (std::size_t i = 0; i < bytes.size(); ++i) {
        const Constant constant{.bytes = std::span(bytes).subspan(i, 1)};
        const SharedForms::Form form = some_form();
        forms.add(constant, "gemm", form);
        if (i % 100 == 0) kept.push_back(form);
    }
    for (std::size_t i = 0; i < bytes.size(); ++i) {
        const Constant constant{.bytes = std::span(bytes).subspan(i, 1)};
        EXPECT_EQ(forms.find(constant, "gemm"), i % 100 == 0 ? kept[i / 100] : nullptr);
    }
}

}  // namespace
}  // namespace headrace
