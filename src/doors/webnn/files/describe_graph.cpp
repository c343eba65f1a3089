#include <cmath>
#include <cstring>
#include <optional>
#include <unordered_set>
#include <utility>

#include "doors/webnn/files/graph_source.h"
#include "doors/webnn/files/text_lexer.h"
#include "doors/webnn/state.h"

namespace headrace::webnn {
namespace {

/// Integers up to here are exact in every tool of the formats' family; some read scalars as float32.
constexpr std::int64_t kMostScalar = std::int64_t{1} << 24;

class Description {
public:
    Description(const Graph& graph, std::string name) : graph_(graph), names_(graph.values.size()) {
        source_.name = std::move(name);
    }

    Result<GraphSource> make() {
        if (!graph_.states.empty())
            return unsupported("state '{}': these formats have no states; save the graph as .hrg",
                               graph_.value(graph_.states[0]).name);
        name_values();
        for (const ValueId id : graph_.inputs) {
            HR_ASSIGN(auto type, descriptor(id, "input"));
            source_.inputs.push_back({names_[static_cast<std::size_t>(id)], std::move(type)});
        }
        for (std::size_t i = 0; i < graph_.values.size(); ++i)
            if (graph_.values[i].kind == ValueKind::constant) HR_TRY(constant(static_cast<ValueId>(i)));
        for (const Node& node : graph_.nodes) HR_TRY(add(node));
        for (const auto& [name, id] : graph_.outputs) source_.outputs.push_back({name, name_of(id)});
        return std::move(source_);
    }

private:
    const std::string& name_of(ValueId id) const { return names_[static_cast<std::size_t>(id)]; }

    /// Inputs keep their names, results that are outputs have those where they are free, the rest is
    /// numbered.
    void name_values() {
        const auto give = [&](ValueId id, const std::string& name) {
            std::string& mine = names_[static_cast<std::size_t>(id)];
            if (mine.empty() && taken_.insert(name).second) mine = name;
        };
        for (const ValueId id : graph_.inputs) give(id, graph_.value(id).name);
        for (const auto& [name, id] : graph_.outputs)
            if (graph_.value(id).kind == ValueKind::result) give(id, name);
        for (const auto& [name, id] : graph_.outputs) taken_.insert(name);
        for (std::size_t i = 0; i < graph_.values.size(); ++i) {
            const Value& value = graph_.values[i];
            const auto id = static_cast<ValueId>(i);
            if (value.kind == ValueKind::constant && is_identifier(value.name)) give(id, value.name);
            const std::string_view prefix = value.kind == ValueKind::constant ? "c" : "t";
            std::string name = fmt::format("{}{}", prefix, i);
            while (names_[i].empty()) {
                give(id, name);
                name += '_';
            }
        }
    }

    Result<MLOperandDescriptor> descriptor(ValueId id, std::string_view what) const {
        const TensorType& type = graph_.value(id).type;
        if (!kWebnnTypes.has(type.dtype))
            return unsupported("{} '{}' is {}, which WebNN does not have; save the graph as .hrg", what,
                               name_of(id), type.str());
        for (const Dim& d : type.shape)
            if (d.is(0))
                return unsupported("{} '{}' is {}, and WebNN has no empty tensors; save the graph as .hrg",
                                   what, name_of(id), type.str());
        return MLOperandDescriptor{type.dtype, to_extents(type.shape)};
    }

    Status constant(ValueId id) {
        if (const BlockFormat format = graph_.value(id).type.format; format != BlockFormat::plain)
            return unsupported(
                "constant '{}' is stored as {}, and these formats have plain weights only; save "
                "the graph as .hrg",
                name_of(id), headrace::name_of(format));
        SourceConstant constant{.name = name_of(id)};
        HR_ASSIGN(constant.type, descriptor(id, "constant"));
        const Value& value = graph_.value(id);
        constant.key = constant.name;
        constant.bytes = value.constant;
        if (const auto scalar = scalar_value(value)) {
            constant.kind = SourceConstant::Kind::scalar;
            constant.value = *scalar;
        }
        source_.constants.push_back(std::move(constant));
        return success();
    }

    /// The number of a 0-D constant that both formats can write and read again exactly.
    static std::optional<FileValue> scalar_value(const Value& value) {
        const DType dtype = value.type.dtype;
        if (value.type.rank() != 0 || bits_of(dtype) == 4) return std::nullopt;
        std::optional<FileValue> scalar;
        visit_dtype(dtype, [&]<class T>() {
            T element;
            std::memcpy(&element, value.constant->bytes.data(), sizeof(T));
            const auto number = static_cast<compute_t<T>>(element);
            if constexpr (std::is_floating_point_v<compute_t<T>>) {
                // The shortest text that reads back as this float: 0.1, not 0.10000000149011612.
                if (std::isfinite(number)) scalar = parse_number(fmt::format("{}", number)).value();
            } else if (std::cmp_less_equal(number, kMostScalar) &&
                       std::cmp_greater_equal(number, -kMostScalar)) {
                scalar.emplace().data.emplace<std::int64_t>(number);  // g++ 12 warns of an assignment
            }
        });
        return scalar;
    }
    Status add(const Node& node) {
        const RowAndOp found = find_row(*node.op);
        if (!found.op)
            return unsupported("{}: '{}' is no WebNN operator; save the graph as .hrg", node.title(),
                               node.op->name);
        SourceNode call{.op = std::string(found.row->idl), .takes_all = node.op->outputs != 1};
        for (const ValueId id : node.outputs) call.results.push_back(name_of(id));
        bool positional = true;
        for (std::size_t i = 0; i < node.inputs.size(); ++i) {
            const ValueId id = node.inputs[i];
            positional = positional && id != kNoValue;
            if (positional)
                call.arguments.push_back({name_of(id)});
            else if (id != kNoValue)  // behind an absent one, whose place the formats cannot leave empty
                call.options.push_back(
                    {file_option_name(found, node.op->rule(static_cast<int>(i)).name), {name_of(id)}});
        }
        const std::vector<AttrValue> values =
            node.op->attr_values ? node.op->attr_values(node.attrs.get()) : std::vector<AttrValue>{};
        for (std::size_t i = 0; i < values.size(); ++i) {
            const Field& field = node.op->fields[i];
            if (!field.required && values[i] == field.default_value) continue;
            if (std::holds_alternative<std::monostate>(values[i])) continue;
            if (const auto* type = std::get_if<DType>(&values[i]); type && !kWebnnTypes.has(*type))
                return unsupported("{}: {} is {}, which WebNN does not have; save the graph as .hrg",
                                   node.title(), field.name, headrace::name_of(*type));
            call.options.push_back({file_option_name(found, field.name), from_attr_value(values[i])});
        }
        if (!node.label.empty()) call.options.push_back({"label", {node.label}});
        source_.nodes.push_back(std::move(call));
        return success();
    }

    const Graph& graph_;
    std::vector<std::string> names_;  ///< by value
    std::unordered_set<std::string> taken_;
    GraphSource source_;
};

}  // namespace

Result<GraphSource> describe_graph(const Graph& graph, std::string name) {
    return Description(graph, std::move(name)).make();
}

}  // namespace headrace::webnn
