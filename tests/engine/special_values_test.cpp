/// Lowerings to ggml's operations on values that these have no function for, on the CPU's ggml.
#include "engine/special_values.h"

namespace headrace {
namespace {

using namespace testing;

TEST(SpecialValues, OfFunctionsAreThoseOfTheReference) {
    expect_special_values({.threads = 1, .packed_kernels = false});
}

TEST(SpecialValues, OfReductionsPoolsAndMarginsAreThoseOfTheReference) {
    expect_special_largest({.threads = 1, .packed_kernels = false});
}

TEST(SpecialValues, AreChosenAsTheReferenceDoes) {
    expect_special_choices({.threads = 1, .packed_kernels = false});
    expect_special_resizing({.threads = 1, .packed_kernels = false});
}

}  // namespace
}  // namespace headrace
