#include "headrace/onnx.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "doors/onnx/model_bytes.h"
#include "ir/graph.h"
#include "ir/print.h"
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

TEST(LoadOnnx, ReadsNodesThatLieBeforeWhatTheyRead) {
    const std::vector<std::string> forwards{node("Neg", {"x"}, "a"), node("Mul", {"a", "w"}, "z"),
                                            node("Relu", {"z"}, "y")};
    const std::vector<std::string> mixed{forwards[1], forwards[2], forwards[0]};
    const std::string weights = float_tensor("w", 4, quarters());
    EXPECT_EQ(print(*load(model(mixed, weights))), print(*load(model(forwards, weights))));
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

/// y = x · matrix + table, of one name that moves both through all places within 16 bytes.
std::string model_of_large_weights(const std::string& name, const std::vector<float>& numbers) {
    const std::string raw(reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(float));
    const std::string tensor = number_field(1, 64) + number_field(1, 64) + number_field(2, 1) +
                               bytes_field(8, name) + bytes_field(9, raw);
    return model_of({node("MatMul", {"x", name}, "z"), node("Add", {"z", name}, "y")},
                    {float_value("x", {"64", "64"})}, {float_value("y", {})}, tensor);
}

TEST(LoadOnnx, LeavesLargeWeightsInTheFilesPagesAtAnyPlace) {
    const TemporaryFolder folder;
    std::vector<float> numbers(64 * 64), unit(64 * 64), y(64 * 64);
    for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<float>(i % 251) - 100;
    for (std::size_t i = 0; i < 64; ++i) unit[i * 65] = 1;
    const std::array<std::int64_t, 2> shape{64, 64};
    for (std::size_t margin = 0; margin < 16; ++margin) {
        const std::string path = (folder.path() / "model.onnx").string();
        std::ofstream(path, std::ios::binary | std::ios::trunc)
            << model_of_large_weights(std::string(20 + margin, 'w'), numbers);
        const auto graph = load_onnx(path);
        const auto constant = std::ranges::find(graph->values, ValueKind::constant, &Value::kind);
        ASSERT_NE(constant, graph->values.end());
        EXPECT_TRUE(constant->constant->mapped);
        Session session(compile(*graph, {.packed_cache = "off", .tuning = "off"}));
        const std::array in{InputView{DType::f32, shape, unit.data()}};
        const std::array out{OutputView{y.data(), y.size() * sizeof(float)}};
        session.run(in, out);
        for (std::size_t i = 0; i < y.size(); ++i) ASSERT_EQ(y[i], 2 * numbers[i]) << margin << ' ' << i;
        std::filesystem::remove(path);
    }
}

TEST(LoadOnnx, ReadingsOfAModelThatIsGivenAsBytesShareItsConstants) {
    const std::string large(std::size_t{1} << 15, '\1');
    for (std::size_t margin = 0; margin < 16; ++margin) {
        const std::string name(20 + margin, 'w');
        std::string typed = number_field(1, 4) + number_field(2, 3) + bytes_field(8, name);
        for (const int number : {1, -2, 3, -4}) typed += number_field(5, number);
        for (const std::string& tensor :
             {float_tensor(name, 4, quarters()),
              float_tensor(name, static_cast<std::int64_t>(large.size() / sizeof(float)), large), typed}) {
            const auto owner =
                std::make_shared<std::string>(model_of({}, {}, {typed_value(name, "")}, tensor));
            const auto opened = OnnxModel::open(std::as_bytes(std::span(*owner)), owner);
            const auto constant_of = [&](const Graph& graph) {
                return std::ranges::find(graph.values, ValueKind::constant, &Value::kind)->constant;
            };
            const auto one = opened->read({}).graph, other = opened->read({}).graph;
            EXPECT_EQ(constant_of(*one)->bytes.data(), constant_of(*other)->bytes.data()) << margin;
        }
    }
}

TEST(LoadOnnx, TakesRowsAndElementsOutOfLargeWeightsAtAnyPlaceOfTheFile) {
    const TemporaryFolder folder;
    std::vector<float> numbers(64 * 64), rows(2 * 64), elements(64 * 2);
    for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<float>(i);
    const std::string raw(reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(float));
    const std::array<std::int64_t, 1> shape{2};
    const std::array<std::int64_t, 2> at{63, 5};
    for (std::size_t margin = 0; margin < 16; ++margin) {
        const std::string name(20 + margin, 'w'), path = (folder.path() / "model.onnx").string();
        const std::string tensor = number_field(1, 64) + number_field(1, 64) + number_field(2, 1) +
                                   bytes_field(8, name) + bytes_field(9, raw);
        const std::string axis = bytes_field(1, "axis") + number_field(3, 1) + number_field(20, 2);
        const std::string two_of_i64 =
            number_field(1, 7) + bytes_field(2, bytes_field(1, number_field(1, 2)));
        std::ofstream(path, std::ios::binary | std::ios::trunc) << model_of(
            {node("Gather", {name, "i"}, "y"), node("Gather", {name, "i"}, "z") + bytes_field(5, axis)},
            {bytes_field(1, "i") + bytes_field(2, bytes_field(1, two_of_i64))},
            {float_value("y", {}), float_value("z", {})}, tensor);
        Session session(compile(*load_onnx(path), {.packed_cache = "off", .tuning = "off"}));
        const std::array in{InputView{DType::i64, shape, at.data()}};
        const std::array out{OutputView{rows.data(), rows.size() * sizeof(float)},
                             OutputView{elements.data(), elements.size() * sizeof(float)}};
        session.run(in, out);
        for (std::size_t i = 0; i < 64; ++i) {
            ASSERT_EQ(rows[i], numbers[63 * 64 + i]) << margin;
            ASSERT_EQ(rows[64 + i], numbers[5 * 64 + i]) << margin;
            ASSERT_EQ(elements[2 * i], numbers[i * 64 + 63]) << margin;
            ASSERT_EQ(elements[2 * i + 1], numbers[i * 64 + 5]) << margin;
        }
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
                HasSubstr("it has 1 input; Add has 2 in this operator set. ONNX's rules"));
}

TEST(LoadOnnx, RefusesDimensionsThatNoInputHas) {
    try {
        load(model({node("Relu", {"x"}, "y")}), {.dimensions = {{"m", 2}}, .forms = {}});
        ADD_FAILURE() << "it is read";
    } catch (const Exception& error) {
        EXPECT_THAT(error.what(), HasSubstr("no input has a dimension 'm'; run-time dimensions: n"));
    }
}

std::shared_ptr<OnnxModel> opened(const std::string& bytes) {
    const auto owner = std::make_shared<std::string>(bytes);
    return OnnxModel::open(std::as_bytes(std::span(*owner)), owner);
}

/// xs, a sequence, and perhaps, an optional one, are given and taken.
std::string lists() {
    const std::string list = sequence_type(float_list_type());
    return model_of({node("Identity", {"xs"}, "ys"), node("Identity", {"perhaps"}, "still")},
                    {typed_value("xs", list), typed_value("perhaps", optional_type(list))},
                    {typed_value("ys", list), typed_value("still", optional_type(list))});
}

TEST(OnnxModel, SaysWhatItDeclares) {
    const auto lists_model = opened(lists());
    ASSERT_EQ(lists_model->inputs().size(), 2U);
    const OnnxValue &xs = lists_model->inputs()[0], &perhaps = lists_model->inputs()[1];
    EXPECT_EQ(xs.name, "xs");
    EXPECT_EQ(xs.kind, "sequence");
    EXPECT_EQ(xs.type, "f32");
    EXPECT_EQ(xs.shape, (OnnxShape{"n"}));
    EXPECT_EQ(perhaps.kind, "optional of sequence");
    EXPECT_EQ(lists_model->outputs()[1].name, "still");
    EXPECT_EQ(lists_model->metadata().graph_name, "the graph");
    EXPECT_EQ(lists_model->operator_sets().at(""), 21);

    const auto tensors = opened(model_of({node("Mul", {"x", "w"}, "y")},
                                         {float_value("w", {"4"}), float_value("x", {"3", ""})},
                                         {float_value("y", {})}, float_tensor("w", 4, quarters())));
    ASSERT_EQ(tensors->inputs().size(), 1U) << "w is an initializer";
    EXPECT_EQ(tensors->inputs()[0].kind, "tensor");
    EXPECT_EQ(tensors->inputs()[0].shape, (OnnxShape{std::int64_t{3}, "x.1"}));
    EXPECT_EQ(tensors->inputs()[0].dimension_names, (std::vector<std::string>{"", ""}));
    EXPECT_EQ(tensors->inputs()[0].element_type, 1);
    ASSERT_EQ(tensors->overridable_initializers().size(), 1U);
    EXPECT_EQ(tensors->overridable_initializers()[0].name, "w");
}

TEST(OnnxModel, SaysWhatTheFileSaysOfItself) {
    const std::string text = bytes_field(2, "maker") + bytes_field(4, "org") + number_field(5, -3) +
                             bytes_field(6, "no UTF-8: \xff") +
                             bytes_field(14, bytes_field(1, "key") + bytes_field(2, "text"));
    const OnnxMetadata said = opened(model({node("Relu", {"x"}, "y")}) + text)->metadata();
    EXPECT_EQ(said.producer, "maker");
    EXPECT_EQ(said.domain, "org");
    EXPECT_EQ(said.version, -3);
    EXPECT_EQ(said.description, "no UTF-8: \uFFFD");
    EXPECT_EQ(said.graph_name, "the graph");
    EXPECT_EQ(said.properties, (std::map<std::string, std::string>{{"key", "text"}}));
    EXPECT_EQ(opened(model({node("Relu", {"x"}, "y")}))->metadata().version, std::nullopt);
}

TEST(OnnxModel, IsReadForEachFormOfItsInputs) {
    const auto model = opened(lists());
    const std::vector<OnnxShape> two{{"n"}, {std::int64_t{3}}};
    const OnnxReading full = model->read({.dimensions = {}, .forms = {{"xs", two}, {"perhaps", two}}});
    using Kind = OnnxOutput::Kind;
    ASSERT_EQ(full.outputs.size(), 2U);
    EXPECT_EQ(full.outputs[0].kind, Kind::sequence);
    ASSERT_EQ(full.outputs[0].parts.size(), 2U);
    EXPECT_EQ(full.outputs[0].parts[1].tensor, "ys[1]");
    EXPECT_EQ(full.outputs[1].kind, Kind::optional);
    EXPECT_EQ(full.outputs[1].parts.at(0).parts.at(0).tensor, "still[0]");
    EXPECT_EQ(full.graph->outputs.size(), 4U);

    const OnnxReading empty =
        model->read({.dimensions = {}, .forms = {{"xs", OnnxShape{}}, {"perhaps", std::monostate{}}}});
    EXPECT_THAT(empty.outputs[0].parts, testing::IsEmpty());
    EXPECT_EQ(empty.outputs[1].kind, Kind::optional);
    EXPECT_THAT(empty.outputs[1].parts, testing::IsEmpty());
    EXPECT_EQ(empty.graph->outputs.size(), 1U) << "a graph has an output";
}

TEST(OnnxModel, WantsAFormForWhatIsNoTensor) {
    const auto model = opened(lists());
    const auto said = [&](const OnnxOptions& options) -> std::string {
        try {
            model->read(options);
        } catch (const Exception& error) {
            return error.what();
        }
        return "it is read";
    };
    EXPECT_THAT(said({}), HasSubstr("input 'xs': it is sequence; a graph has to know of which tensors"));
    EXPECT_THAT(said({.dimensions = {}, .forms = {{"xs", OnnxShape{"n"}}}}),
                HasSubstr("dimensions['xs'] is no list of tensors' shapes"));
    EXPECT_THAT(said({.dimensions = {}, .forms = {{"zs", OnnxShape{"n"}}}}), HasSubstr("input 'xs'"));
}

TEST(OnnxModel, TakesAWholeShapeWithNamesForOpenExtents) {
    const auto model_of_x = opened(model({node("Relu", {"x"}, "y")}));
    const auto shape_for = [&](const OnnxShape& shape) {
        const OnnxReading reading = model_of_x->read({.dimensions = {}, .forms = {{"x", shape}}});
        return str(reading.graph->values.at(0).type.shape);
    };
    EXPECT_EQ(shape_for({std::int64_t{2}, std::int64_t{5}}), "[2, 5]");
    EXPECT_EQ(shape_for({"rows", std::int64_t{5}}), "[rows, 5]");
}

TEST(OnnxModel, SaysInWhichOutputsElementsAreOfAnotherType) {
    const std::string cast = node("Cast", {"x"}, "y") +
                             bytes_field(5, bytes_field(1, "to") + number_field(3, 16) + number_field(20, 2));
    const std::string halves = bytes_field(1, number_field(1, 16));
    const OnnxReading reading =
        opened(model_of({cast}, {float_value("x", {"n", "4"})}, {typed_value("y", halves)}))->read();
    EXPECT_THAT(reading.declared, testing::ElementsAre(testing::Pair("y", "bf16")));
}

TEST(OnnxModel, RefusesKindsWithinKindsThatNoOperatorHas) {
    std::string type = float_list_type();
    for (int i = 0; i < 5000; ++i) type = optional_type(type);
    const auto model =
        opened(model_of({node("Identity", {"x"}, "y")}, {typed_value("x", type)}, {typed_value("y", type)}));
    EXPECT_LT(model->inputs()[0].kind.size(), 60U);
    try {
        model->read({.dimensions = {}, .forms = {{"x", OnnxShape{"n"}}}});
        ADD_FAILURE() << "it is read";
    } catch (const Exception& error) {
        EXPECT_THAT(error.what(), HasSubstr("it is an optional of optionals"));
    }
}

}  // namespace
}  // namespace headrace::onnx
