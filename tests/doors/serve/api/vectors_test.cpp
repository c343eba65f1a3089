#include "doors/serve/api/vectors.h"

#include <gtest/gtest.h>

namespace headrace::serve {
namespace {

TEST(Vectors, AreWrittenAsNumbersOrBase64) {
    EXPECT_EQ(number_list({0.5f, -1.0f, 0.1f}), "[0.5,-1,0.1]");
    EXPECT_EQ(base64_of({1.0f}), "AACAPw==");
    EXPECT_EQ(base64_of({1.0f, 2.0f}), "AACAPwAAAEA=");
    EXPECT_EQ(base64_of({1.0f, 2.0f, 3.0f}), "AACAPwAAAEAAAEBA");
    EXPECT_EQ(base64_of({}), "");
}

}  // namespace
}  // namespace headrace::serve
