#include <cctype>

#include "base/small_letters.h"
#include "base/utf8.h"
#include "doors/webnn/state.h"

namespace headrace::webnn {
namespace {

struct TypeName {
    DType type;
    std::string_view name;
};
constexpr TypeName kTypeNames[] = {{DType::f32, "float32"}, {DType::f16, "float16"}, {DType::i32, "int32"},
                                   {DType::u32, "uint32"},  {DType::i64, "int64"},   {DType::u64, "uint64"},
                                   {DType::i8, "int8"},     {DType::u8, "uint8"},    {DType::i4, "int4"},
                                   {DType::u4, "uint4"}};

}  // namespace

std::string_view data_type_name(DType type) {
    for (const TypeName& row : kTypeNames)
        if (row.type == type) return row.name;
    return name_of(type);
}

DType parse_data_type(std::string_view name) {
    std::string known;
    for (const TypeName& row : kTypeNames) {
        if (row.name == name) return row.type;
        known.append(known.empty() ? "" : ", ").append(row.name);
    }
    fail(invalid("unknown data type '{}'; known: {}", name, known));
}

Result<DType> find_data_type(std::string_view name) {
    const std::string lower = in_small_letters(name.substr(0, 16));
    std::string known;
    for (const TypeName& row : kTypeNames) {
        if (lower == row.name || lower == name_of(row.type)) return row.type;
        known.append(known.empty() ? "" : ", ").append(row.name);
    }
    return invalid("unknown data type '{}'; known: {}", excerpt(name), known);
}

Error with_data_type_names(const Error& error, std::string_view beginning) {
    const std::string& message = error.message;
    const auto is_in_word = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; };
    std::size_t at = message.starts_with(beginning) ? beginning.size() : 0;
    std::string said = message.substr(0, at);
    for (bool is_quoted = false; at < message.size();) {
        std::size_t end = at;
        while (end < message.size() && is_in_word(message[end])) ++end;
        const std::string_view word = std::string_view(message).substr(at, end - at);
        const auto type = is_quoted ? std::nullopt : dtype_from_name(word);
        said += type ? data_type_name(*type) : word;
        if (end < message.size()) {
            // An apostrophe within a word, as in "the tensor's", opens nothing.
            if (message[end] == '\'' && (is_quoted || word.empty())) is_quoted = !is_quoted;
            said += message[end++];
        }
        at = end;
    }
    return {error.code, std::move(said)};
}

TensorType to_type(const MLOperandDescriptor& descriptor, std::string_view what) {
    return value_or_throw(tensor_type(descriptor, what));
}

Result<TensorType> tensor_type(const MLOperandDescriptor& descriptor, std::string_view what) {
    if (!kWebnnTypes.has(descriptor.dataType))
        return invalid("{}: {} is not a WebNN data type", what, name_of(descriptor.dataType));
    TensorType type{descriptor.dataType, {}};
    for (const MLDimension& d : descriptor.shape) {
        type.shape.push_back(d.dim());
        const auto size = d.number();
        if (!size && d.most() < 1)
            return invalid("{}: dimension '{}' has the maximum {}; at least 1", what, d.str(), d.most());
        if (!size) continue;
        // The specification has no empty tensors, unlike our graphs.
        if (*size < 1) return invalid("{}: the extent {} is not positive", what, *size);
        if (*size > UINT32_MAX) return invalid("{}: the extent {} exceeds 4294967295", what, *size);
    }
    return type;
}

}  // namespace headrace::webnn
