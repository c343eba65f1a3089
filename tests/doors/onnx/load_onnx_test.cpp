#include "headrace/onnx.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "doors/onnx/model_bytes.h"
#include "ir/graph.h"
#include "temporary_folder.h"

namespace headrace::onnx {
namespace {

using testing::AllOf;
using testing::HasSubstr;

std::shared_ptr<const Graph> load(const std::string& bytes, const OnnxOptions& options = {}) {
    const auto owner = std::make_shared<std::string>(bytes);
    return load_onnx(std::as_bytes(std::span(*owner)), owner, options);
}

std::string error_of(const std::string& bytes, Code code) {
    try {
        load(bytes);
    } catch (const Exception& error) {
        EXPECT_EQ(error.code(), code) << error.what();
        return error.what();
    }
    ADD_FAILURE() << "it is read";
    return "";
}

std::string quarters() {
    const std::array<float, 4> numbers{0.25F, 0.5F, 0.75F, 1};
    std::string raw(sizeof(numbers), '\0');
    std::memcpy(raw.data(), numbers.data(), raw.size());
    return raw;
}

TEST(LoadOnnx, RunsWhatItReadsWithOpenAndWithFixedDimensions) {
    const std::string bytes =
        model({node("Mul", {"x", "w"}, "z"), node("Relu", {"z"}, "y")}, float_tensor("w", 4, quarters()));
    const std::vector<float> x{4, -4, 4, 4, 8, 8, 8, -8};
    const std::vector<float> expected{1, 0, 3, 4, 2, 4, 6, 0};
    for (const OnnxOptions& options : {OnnxOptions(), OnnxOptions{.dimensions = {{"n", 2}}, .forms = {}}}) {
        Session session(compile(*load(bytes, options)));
        std::vector<float> y(8);
        const std::array<std::int64_t, 2> shape{2, 4};
        const std::array in{InputView{DType::f32, shape, x.data()}};
        const std::array out{OutputView{y.data(), y.size() * sizeof(float)}};
        session.run(in, out);
        EXPECT_EQ(y, expected);
    }
}

TEST(LoadOnnx, LeavesWeightsInTheFilesPagesWhereTheirPlaceAllowsIt) {
    const TemporaryFolder folder;
    for (std::size_t margin = 0; margin < 16; ++margin) {
        // A name of another length moves the elements behind it.
        const std::string name(20 + margin, 'w');
        const std::string bytes = model({node("Mul", {"x", name}, "y")}, float_tensor(name, 4, quarters()));
        const std::string path = (folder.path() / "model.onnx").string();
        std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
        const auto graph = load_onnx(path);
        const auto constant = std::ranges::find(graph->values, ValueKind::constant, &Value::kind);
        ASSERT_NE(constant, graph->values.end());
        const bool is_aligned = bytes.find(quarters()) % 16 == 0;
        EXPECT_EQ(constant->constant->mapped, is_aligned) << "at " << bytes.find(quarters());
        std::filesystem::remove(path);
    }
}

TEST(LoadOnnx, NamesTheNodeItsOperatorWhatIsInTheWayAndWhatToDo) {
    EXPECT_THAT(
        error_of(model({node("Muul", {"x"}, "y")}), Code::unsupported),
        AllOf(
            HasSubstr("the ONNX model: node 'the node' (Muul, ai.onnx opset 21): this operator is not read"),
            HasSubstr("or run the model with ONNX Runtime")));
    EXPECT_THAT(
        error_of(model({node("Relu", {"z"}, "y")}), Code::invalid_argument),
        HasSubstr("input 'z' is computed by no node before it. ONNX's rules for the operator do not allow"));
    EXPECT_THAT(error_of(model({node("Relu", {"x"}, "y"), node("Relu", {"x"}, "y")}), Code::invalid_argument),
                HasSubstr("there is a value 'y' before it already"));
    EXPECT_THAT(error_of(model({node("Relu", {"x"}, "z")}), Code::invalid_argument),
                HasSubstr("output 'y' is computed by no node"));
    EXPECT_THAT(error_of(model({node("Add", {"x"}, "y")}), Code::invalid_argument),
                HasSubstr("input 1 is missing"));
}

TEST(LoadOnnx, RefusesDimensionsThatNoInputHas) {
    try {
        load(model({node("Relu", {"x"}, "y")}), {.dimensions = {{"m", 2}}, .forms = {}});
        ADD_FAILURE() << "it is read";
    } catch (const Exception& error) {
        EXPECT_THAT(error.what(), HasSubstr("no input has a dimension ['m']; run-time dimensions: n"));
    }
}

}  // namespace
}  // namespace headrace::onnx
