#include "doors/webnn/files/json_reader.h"

#include "doors/webnn/files/json_document.h"
#include "doors/webnn/state.h"

namespace headrace::webnn {
namespace {

Result<MLOperandDescriptor> read_type(const JsonValue& object) {
    HR_ASSIGN(const JsonValue type, object.at("dataType"));
    HR_ASSIGN(const std::string name, type.string());
    const auto found = find_data_type(name);
    if (!found.ok()) return type.error(found.error());
    MLOperandDescriptor descriptor{.dataType = found.value(), .shape = {}};
    HR_ASSIGN(const JsonValue shape, object.at("shape"));
    HR_TRY(shape.each([&](const JsonValue& extent) -> Status {
        const auto dimension = to_dimension(extent.value());
        if (!dimension.ok()) return extent.error(dimension.error());
        descriptor.shape.push_back(dimension.value());
        return success();
    }));
    return descriptor;
}

Status read_init(const JsonValue& init, SourceConstant& constant) {
    HR_ASSIGN(const JsonValue kind, init.at("kind"));
    HR_ASSIGN(const std::string name, kind.string());
    if (name == "weights") {
        HR_ASSIGN(const JsonValue key, init.at("ref"));
        HR_ASSIGN(constant.key, key.string());
    } else if (name == "scalar") {
        constant.kind = SourceConstant::Kind::scalar;
        HR_ASSIGN(const JsonValue value, init.at("value"));
        constant.value = value.value();
    } else if (name == "inlineBytes") {
        constant.kind = SourceConstant::Kind::bytes;
        HR_ASSIGN(const JsonValue bytes, init.at("bytes"));
        auto read = to_bytes(bytes.value());
        if (!read.ok()) return bytes.error(read.error());
        constant.bytes = std::move(read).value();
    } else {
        return kind.error(invalid("unknown kind '{}'; known: weights, scalar, inlineBytes",
                                  excerpt(std::string_view(name))));
    }
    return success();
}

Result<SourceNode> read_node(const JsonValue& object) {
    SourceNode node;
    HR_ASSIGN(const JsonValue op, object.at("op"));
    HR_ASSIGN(node.op, op.string());
    HR_ASSIGN(const JsonValue inputs, object.at("inputs"));
    HR_TRY(inputs.each([&](const JsonValue& input) -> Status {
        if (!input.value().is_null()) HR_TRY(input.string());
        node.arguments.push_back(input.value());
        return success();
    }));
    HR_ASSIGN(const FileValue* options, object.find("options"));
    if (options) {
        HR_ASSIGN(const auto* members, object.member("options", *options).object());
        for (const auto& [name, value] : *members) node.options.push_back({name, value});
    }
    HR_ASSIGN(const FileValue* outputs, object.find("outputs"));
    node.takes_all = outputs != nullptr;
    if (!outputs) {
        HR_ASSIGN(const JsonValue id, object.at("id"));
        HR_ASSIGN(std::string name, id.string());
        node.results.push_back(std::move(name));
        return node;
    }
    HR_TRY(object.member("outputs", *outputs).each([&](const JsonValue& output) -> Status {
        HR_ASSIGN(std::string name, output.string());
        node.results.push_back(std::move(name));
        return success();
    }));
    return node;
}

Status read_operands(const JsonValue& document, GraphSource& source) {
    HR_ASSIGN(const JsonValue inputs, document.at("inputs"));
    HR_ASSIGN(const auto* input_members, inputs.object());
    for (const auto& [name, value] : *input_members) {
        HR_ASSIGN(MLOperandDescriptor type, read_type(inputs.member(name, value)));
        source.inputs.push_back({name, std::move(type)});
    }
    HR_ASSIGN(const FileValue* consts, document.find("consts"));
    if (!consts) return success();
    const JsonValue constants = document.member("consts", *consts);
    HR_ASSIGN(const auto* members, constants.object());
    for (const auto& [name, value] : *members) {
        const JsonValue object = constants.member(name, value);
        SourceConstant constant{.name = name};
        HR_ASSIGN(constant.type, read_type(object));
        HR_ASSIGN(const JsonValue init, object.at("init"));
        HR_TRY(read_init(init, constant));
        source.constants.push_back(std::move(constant));
    }
    return success();
}

/// The path of a spot; names of inputs and constants are looked up only for an error.
std::string path_of(const Spot& spot, const std::vector<std::string>& inputs,
                    const std::vector<std::string>& constants, const std::vector<std::string>& outputs) {
    std::string path;
    switch (spot.section) {
        case Spot::Section::inputs: path = "inputs." + inputs[spot.index]; break;
        case Spot::Section::consts: path = "consts." + constants[spot.index]; break;
        case Spot::Section::outputs: path = "outputs." + outputs[spot.index]; break;
        case Spot::Section::nodes: path = fmt::format("nodes[{}]", spot.index); break;
    }
    return spot.detail.empty() ? path : fmt::format("{}.{}", path, spot.detail);
}

template <class T>
std::vector<std::string> names_of(const std::vector<T>& list) {
    std::vector<std::string> names;
    names.reserve(list.size());
    for (const T& item : list) names.push_back(item.name);
    return names;
}

}  // namespace

Result<GraphSource> parse_json(std::string_view text) {
    HR_ASSIGN(const FileValue tree, parse_json_document(text));
    const JsonValue document(tree, "");
    HR_TRY(check_format(document, "webnn-graph-json", 2));
    GraphSource source;
    HR_ASSIGN(const FileValue* name, document.find("name"));
    if (name) {
        HR_ASSIGN(source.name, document.member("name", *name).string());
    }
    HR_TRY(read_operands(document, source));
    HR_ASSIGN(const JsonValue nodes, document.at("nodes"));
    HR_TRY(nodes.each([&](const JsonValue& object) -> Status {
        HR_ASSIGN(SourceNode node, read_node(object));
        source.nodes.push_back(std::move(node));
        return success();
    }));
    HR_ASSIGN(const JsonValue outputs, document.at("outputs"));
    HR_ASSIGN(const auto* members, outputs.object());
    for (const auto& [output, value] : *members) {
        HR_ASSIGN(std::string id, outputs.member(output, value).string());
        source.outputs.push_back({output, std::move(id)});
    }
    source.place = [inputs = names_of(source.inputs), constants = names_of(source.constants),
                    results = names_of(source.outputs)](const Spot& spot) {
        return path_of(spot, inputs, constants, results);
    };
    return source;
}

}  // namespace headrace::webnn
