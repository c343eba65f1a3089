#include "cli/operands.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>

#include "ir/tensor_type.h"

namespace headrace::cli {
namespace {

/// Splits "name=value" arguments; names must be inputs of the graph.
Result<std::map<std::string, std::string>> by_name(const std::vector<std::string>& arguments,
                                                   const std::vector<TensorInfo>& infos) {
    std::map<std::string, std::string> map;
    for (const std::string& argument : arguments) {
        const std::size_t equals = argument.find('=');
        if (equals == std::string::npos) return invalid("'{}' is not of the form NAME=VALUE", argument);
        const std::string name = argument.substr(0, equals);
        std::string known;
        for (const TensorInfo& info : infos) known += (known.empty() ? "" : ", ") + info.name;
        if (std::none_of(infos.begin(), infos.end(),
                         [&](const TensorInfo& info) { return info.name == name; }))
            return invalid("the graph has no input '{}'; it has: {}", name, known);
        map[name] = argument.substr(equals + 1);
    }
    return map;
}

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

Result<Array> generate(const TensorInfo& info, const std::vector<std::int64_t>& shape, std::mt19937& random) {
    Array array{.dtype = info.dtype, .shape = shape};
    HR_TRY((TensorType{info.dtype, Shape(shape.begin(), shape.end())}.check()));
    const std::int64_t n = ConstView{info.dtype, shape}.elements();
    array.bytes.resize(bytes_of(info.dtype, n));
    if (bits_of(info.dtype) == 4) return array;
    visit_dtype(info.dtype, [&]<class T>() {
        T* values = reinterpret_cast<T*>(array.bytes.data());
        std::uniform_real_distribution<float> real(-1, 1);
        std::uniform_int_distribution<int> bit(0, 1);
        for (std::int64_t i = 0; i < n; ++i)
            values[i] = is_float(info.dtype) ? static_cast<T>(real(random)) : static_cast<T>(bit(random));
    });
    return array;
}

Result<std::vector<std::int64_t>> concrete_shape(const TensorInfo& info, const std::string& given) {
    if (!given.empty()) return parse_shape(given);
    for (std::size_t i = 0; i < info.shape.size(); ++i)
        if (info.shape[i] < 0)
            return invalid("input '{}' is {}: give its extents with --shape {}=...", info.name,
                           type_text(info), info.name);
    return info.shape;
}

}  // namespace

std::string type_text(const TensorInfo& info) {
    std::string text(name_of(info.dtype));
    text += '[';
    for (std::size_t i = 0; i < info.shape.size(); ++i)
        text +=
            (i ? ", " : "") + (info.shape[i] < 0 ? info.dimension_names[i] : std::to_string(info.shape[i]));
    return text + ']';
}

Result<std::vector<Array>> gather_inputs(const std::vector<TensorInfo>& infos, const InputOptions& options) {
    HR_ASSIGN(auto files, by_name(options.files, infos));
    HR_ASSIGN(auto shapes, by_name(options.shapes, infos));
    std::mt19937 random(options.seed);
    std::vector<Array> arrays;
    for (const TensorInfo& info : infos) {
        if (files.contains(info.name)) {
            HR_ASSIGN(Array array, read_npy(files[info.name]));
            arrays.push_back(std::move(array));
            continue;
        }
        HR_ASSIGN(const auto shape, concrete_shape(info, shapes[info.name]));
        HR_ASSIGN(Array array, generate(info, shape, random));
        arrays.push_back(std::move(array));
    }
    return arrays;
}

std::string summarise(const Array& array) {
    std::string text = fmt::format("{}{}", name_of(array.dtype), str(array.shape));
    const std::int64_t n = ConstView{array.dtype, array.shape}.elements();
    if (n == 0 || bits_of(array.dtype) == 4) return text;
    visit_dtype(array.dtype, [&]<class T>() {
        const T* values = reinterpret_cast<const T*>(array.bytes.data());
        double low = INFINITY, high = -INFINITY, sum = 0;
        std::string first;
        for (std::int64_t i = 0; i < n; ++i) {
            const auto v = static_cast<double>(static_cast<compute_t<T>>(values[i]));
            low = std::min(low, v);
            high = std::max(high, v);
            sum += v;
            if (i < 6) first += fmt::format("{}{:.6g}", i ? ", " : "", v);
        }
        text += fmt::format("  min {:.6g}  max {:.6g}  mean {:.6g}  first {}{}", low, high,
                            sum / static_cast<double>(n), first, n > 6 ? ", ..." : "");
    });
    return text;
}

}  // namespace headrace::cli
