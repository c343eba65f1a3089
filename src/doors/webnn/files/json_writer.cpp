#include "doors/webnn/files/json_writer.h"

#include "base/utf8.h"
#include "doors/webnn/files/text_lexer.h"
#include "doors/webnn/state.h"

namespace headrace::webnn {
namespace {

FileValue::Object type_members(const MLOperandDescriptor& type) {
    FileValue shape{FileValue::Integers{}};
    for (const MLDimension& d : type.shape) append_element(shape, from_dimension(d));
    return {{"dataType", {std::string(data_type_name(type.dataType))}}, {"shape", std::move(shape)}};
}

FileValue constant_value(const SourceConstant& constant) {
    FileValue::Object members = type_members(constant.type);
    FileValue::Object init;
    if (constant.kind == SourceConstant::Kind::scalar)
        init = {{"kind", {std::string("scalar")}}, {"value", constant.value}};
    else
        init = {{"kind", {std::string("weights")}}, {"ref", {constant.key}}};
    members.emplace_back("init", FileValue{std::move(init)});
    return {std::move(members)};
}

FileValue node_value(const SourceNode& node) {
    const auto list = [](const std::vector<std::string>& names) {
        FileValue::List values;
        for (const std::string& name : names) values.push_back({name});
        return FileValue{std::move(values)};
    };
    FileValue::Object options;
    for (const SourceOption& option : node.options) options.emplace_back(option.name, option.value);
    FileValue::Object members{{"id", {node.results[0]}},
                              {"op", {node.op}},
                              {"inputs", {FileValue::List(node.arguments)}},
                              {"options", {std::move(options)}}};
    if (node.takes_all) members.emplace_back("outputs", list(node.results));
    return {std::move(members)};
}

/// Writes "key": {members}, a line each.
template <class T, class ToValue>
void append_members(std::string& out, std::string_view key, const std::vector<T>& items, ToValue&& to_value) {
    out.append("  \"").append(key).append("\": {");
    for (std::size_t i = 0; i < items.size(); ++i) {
        out += i ? ",\n    " : "\n    ";
        append_quoted(out, items[i].name, Syntax::json);
        out += ": ";
        append_value(out, to_value(items[i]), Syntax::json);
    }
    out += items.empty() ? "}" : "\n  }";
}

}  // namespace

Result<std::string> write_json(const GraphSource& source) {
    std::string out = "{\n  \"format\": \"webnn-graph-json\",\n  \"version\": 2,\n  \"name\": ";
    append_quoted(out, source.name, Syntax::json);
    out += source.quantized ? ",\n  \"quantized\": true,\n" : ",\n";
    append_members(out, "inputs", source.inputs,
                   [](const SourceInput& input) { return FileValue{type_members(input.type)}; });
    out += ",\n";
    append_members(out, "consts", source.constants, constant_value);
    out += ",\n  \"nodes\": [";
    for (std::size_t i = 0; i < source.nodes.size(); ++i) {
        out += i ? ",\n    " : "\n    ";
        append_value(out, node_value(source.nodes[i]), Syntax::json);
    }
    out += source.nodes.empty() ? "],\n" : "\n  ],\n";
    append_members(out, "outputs", source.outputs,
                   [](const SourceOutput& output) { return FileValue{output.value}; });
    out += "\n}\n";
    if (const auto at = find_invalid_utf8(out))
        return invalid("{}: a name is not UTF-8, which graph files need", line_and_column(out, *at));
    return out;
}

}  // namespace headrace::webnn
