#include "cli/operands.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>

#include "cli/array_conversion.h"
#include "ir/condition.h"
#include "ir/graph.h"
#include "ir/tensor_type.h"

namespace headrace::cli {
namespace {

Result<std::vector<std::int64_t>> parse_shape(const std::string& text) {
    std::vector<std::int64_t> shape;
    std::size_t at = 0;
    while (at < text.size()) {
        std::size_t used = 0;
        try {
            shape.push_back(std::stoll(text.substr(at), &used));
        } catch (const std::exception&) {
            return invalid("'{}' is not a list of extents such as 1,16", text);
        }
        at += used;
        if (at < text.size() && text[at] != ',')
            return invalid("'{}' is not a list of extents such as 1,16", text);
        ++at;
    }
    return shape;
}

}  // namespace

Result<std::pair<std::string, std::string>> named_text(const std::string& text) {
    const std::size_t equals = text.find('=');
    if (equals == std::string::npos) return invalid("'{}' is not of the form NAME=VALUE", text);
    return std::pair{text.substr(0, equals), text.substr(equals + 1)};
}

Result<std::pair<std::string, std::vector<std::int64_t>>> named_shape(const std::string& text) {
    HR_ASSIGN(auto named, named_text(text));
    HR_ASSIGN(auto shape, parse_shape(named.second));
    return std::pair{std::move(named.first), std::move(shape)};
}

Result<std::map<std::string, std::vector<std::int64_t>>> shapes_by_input(const InputOptions& options) {
    std::map<std::string, std::vector<std::int64_t>> shapes;
    for (const std::string& text : options.files) {
        HR_ASSIGN(const auto file, named_text(text));
        HR_ASSIGN(Array array, read_npy(file.second));
        shapes[file.first] = std::move(array.shape);
    }
    for (const std::string& text : options.shapes) {
        HR_ASSIGN(auto named, named_shape(text));
        shapes.insert_or_assign(std::move(named.first), std::move(named.second));
    }
    return shapes;
}

namespace {

bool has_dimension(const Graph& graph, const std::string& name) {
    return std::ranges::any_of(graph.inputs, [&](ValueId id) {
        const Shape& shape = graph.value(id).type.shape;
        return std::ranges::any_of(shape, [&](const Dim& d) { return d.is_symbolic() && d.name() == name; });
    });
}

/// Splits "name=value" arguments; names must be inputs of the graph.
Result<std::map<std::string, std::string>> by_name(const std::vector<std::string>& arguments,
                                                   const Graph& graph) {
    std::map<std::string, std::string> map;
    for (const std::string& argument : arguments) {
        HR_ASSIGN(auto named, named_text(argument));
        const std::string name = std::move(named.first);
        std::string known;
        for (const ValueId id : graph.inputs) known += (known.empty() ? "" : ", ") + graph.value(id).name;
        if (std::none_of(graph.inputs.begin(), graph.inputs.end(),
                         [&](ValueId id) { return graph.value(id).name == name; }))
            return invalid(
                "the graph has no input '{}'; it has: {}{}", name, known,
                has_dimension(graph, name)
                    ? fmt::format(". That is a dimension: --dimension {} fixes it in an ONNX model", argument)
                    : "");
        map[name] = std::move(named.second);
    }
    return map;
}

Result<Array> generate(DType dtype, const std::vector<std::int64_t>& shape, std::mt19937& random) {
    Array array{.dtype = dtype, .shape = shape};
    HR_TRY((TensorType{dtype, Shape(shape.begin(), shape.end())}.check()));
    const std::int64_t n = ConstView{dtype, shape}.elements();
    array.bytes.resize(bytes_of(dtype, n));
    if (bits_of(dtype) == 4) return array;
    visit_dtype(dtype, [&]<class T>() {
        T* values = reinterpret_cast<T*>(array.bytes.data());
        std::uniform_real_distribution<float> real(-1, 1);
        std::uniform_int_distribution<int> bit(0, 1);
        for (std::int64_t i = 0; i < n; ++i)
            values[i] = is_float(dtype) ? static_cast<T>(real(random)) : static_cast<T>(bit(random));
    });
    return array;
}

/// What an open extent is where nobody says it: one text or picture of a usual size.
std::int64_t usual_extent(const Shape& shape, std::size_t axis, const std::string& symbol) {
    constexpr std::int64_t kWords = 16, kPixels = 224;
    if (axis == 0 || symbol.starts_with("batch")) return 1;
    const bool is_picture = shape.size() == 4 && axis >= 2 && shape[2].is_symbolic() &&
                            shape[3].is_symbolic() && (shape[1].is(1) || shape[1].is(3));
    return is_picture ? kPixels : kWords;
}

/// The symbols that an input's given shape determines.
void bind_given(const Shape& shape, const std::vector<std::int64_t>& given, SymbolBindings& known) {
    if (shape.size() != given.size()) return;  // the run says so
    for (std::size_t i = 0; i < shape.size(); ++i) {
        const auto line = shape[i].expression().line();
        if (!line || (given[i] - line->offset) % line->factor != 0) continue;
        known.emplace(line->name, (given[i] - line->offset) / line->factor);
    }
}

void make_up(const Shape& shape, SymbolBindings& known, SymbolBindings& made_up) {
    for (std::size_t i = 0; i < shape.size(); ++i)
        for (const auto& [symbol, range] : shape[i].expression().symbols()) {
            if (known.contains(symbol)) continue;
            const std::int64_t usual = std::clamp(usual_extent(shape, i, symbol),
                                                  std::max<std::int64_t>(range.least, 0), range.most);
            known[symbol] = made_up[symbol] = usual;
        }
}

Result<std::vector<std::int64_t>> shape_with(const Value& input, const SymbolBindings& known) {
    std::vector<std::int64_t> extents;
    for (const Dim& dim : input.type.shape) {
        const auto number = dim.number([&](const std::string& name) -> std::optional<Expression> {
            const auto found = known.find(name);
            if (found == known.end()) return std::nullopt;
            return Expression(found->second);
        });
        if (!number || *number < 0)
            return invalid("input '{}' is {}: give its extents with --shape {}=...", input.name,
                           input.type.str(), input.name);
        extents.push_back(*number);
    }
    return extents;
}

struct Summary {
    double low = INFINITY, high = -INFINITY, mean = 0;
    std::vector<double> first;  ///< of no elements, or of 4 bits: none
    bool is_cut = false;        ///< there are more
};

Summary summary_of(const Array& array) {
    constexpr std::int64_t kFirst = 6;
    Summary summary;
    const std::int64_t n = ConstView{array.dtype, array.shape}.elements();
    if (n == 0 || bits_of(array.dtype) == 4) return summary;
    visit_dtype(array.dtype, [&]<class T>() {
        const T* values = reinterpret_cast<const T*>(array.bytes.data());
        double sum = 0;
        for (std::int64_t i = 0; i < n; ++i) {
            const auto v = static_cast<double>(static_cast<compute_t<T>>(values[i]));
            summary.low = std::min(summary.low, v);
            summary.high = std::max(summary.high, v);
            sum += v;
            if (i < kFirst) summary.first.push_back(v);
        }
        summary.mean = sum / static_cast<double>(n);
    });
    summary.is_cut = n > kFirst;
    return summary;
}

}  // namespace

Result<InputShapes> input_shapes(const Graph& graph, const InputOptions& options) {
    HR_ASSIGN(const auto files, by_name(options.files, graph));
    HR_ASSIGN(const auto given, by_name(options.shapes, graph));
    InputShapes found;
    SymbolBindings known;
    std::vector<std::size_t> open;
    for (std::size_t i = 0; i < graph.inputs.size(); ++i) {
        const Value& input = graph.value(graph.inputs[i]);
        std::vector<std::int64_t>& shape = found.shapes.emplace_back();
        if (const auto file = files.find(input.name); file != files.end()) {
            HR_ASSIGN(Array array, read_npy(file->second));
            shape = array.shape;
            found.arrays.emplace(i, std::move(array));
        } else if (const auto text = given.find(input.name); text != given.end()) {
            HR_ASSIGN(shape, parse_shape(text->second));
        } else {
            open.push_back(i);
            continue;
        }
        bind_given(input.type.shape, shape, known);
    }
    const auto input = [&](std::size_t i) -> const Value& { return graph.value(graph.inputs[i]); };
    for (const std::size_t i : open) make_up(input(i).type.shape, known, found.made_up);
    for (const std::size_t i : open) {
        HR_ASSIGN(found.shapes[i], shape_with(input(i), known));
    }
    return found;
}

std::string made_up_text(const Graph& graph, const InputShapes& inputs, bool is_onnx) {
    if (inputs.made_up.empty()) return "";
    std::string extents;
    for (const auto& [symbol, extent] : inputs.made_up)
        extents += fmt::format("{}{} = {}", extents.empty() ? "" : ", ", symbol, extent);
    std::string remedy;
    for (std::size_t i = 0; i < graph.inputs.size() && remedy.empty(); ++i) {
        const Value& input = graph.value(graph.inputs[i]);
        if (!std::ranges::all_of(input.type.shape, [](const Dim& d) { return !d.is_symbolic(); }))
            remedy = fmt::format("--shape {}={}", input.name, fmt::join(inputs.shapes[i], ","));
    }
    const auto& [symbol, extent] = *inputs.made_up.begin();
    if (is_onnx) remedy += fmt::format(" or --dimension {}={}", symbol, extent);
    return fmt::format("note: dynamic dimensions are made up, {}; to choose: {}", extents, remedy);
}

Result<std::vector<Array>> gather_inputs(const Graph& graph, InputShapes&& inputs, unsigned seed) {
    std::mt19937 random(seed);
    std::vector<Array> arrays;
    for (std::size_t i = 0; i < graph.inputs.size(); ++i) {
        const Value& input = graph.value(graph.inputs[i]);
        if (const auto read = inputs.arrays.find(i); read != inputs.arrays.end()) {
            const std::string what = fmt::format("input '{}'", input.name);
            HR_ASSIGN(Array given, with_dtype(std::move(read->second), input.type.dtype, what));
            arrays.push_back(std::move(given));
            continue;
        }
        HR_ASSIGN(Array array, generate(input.type.dtype, inputs.shapes[i], random));
        arrays.push_back(std::move(array));
    }
    return arrays;
}

nlohmann::json described(const Array& array) {
    nlohmann::json value{{"dtype", name_of(array.dtype)}, {"shape", array.shape}};
    const Summary summary = summary_of(array);
    if (summary.first.empty()) return value;
    value.update(
        {{"min", summary.low}, {"max", summary.high}, {"mean", summary.mean}, {"first", summary.first}});
    return value;
}

std::string summarize(const Array& array) {
    std::string text = fmt::format("{}{}", name_of(array.dtype), str(array.shape));
    const Summary summary = summary_of(array);
    if (summary.first.empty()) return text;
    std::string first;
    for (const double value : summary.first)
        first += fmt::format("{}{:.6g}", first.empty() ? "" : ", ", value);
    return text + fmt::format("  min {:.6g}  max {:.6g}  mean {:.6g}  first {}{}", summary.low, summary.high,
                              summary.mean, first, summary.is_cut ? ", ..." : "");
}

}  // namespace headrace::cli
