#include <algorithm>
#include <map>
#include <tuple>
#include <unordered_map>

#include "ggml_ir_generated.h"
#include "ir/graph_file_tables.h"

namespace headrace::detail {
namespace {

using flatbuffers::Offset;

/// What a graph and its bodies have in common.
struct Content {
    flatbuffers::FlatBufferBuilder builder;
    std::vector<EncodedGraph::Weight> weights;
    std::uint64_t weights_end = 0;
    std::unordered_map<const Constant*, std::uint64_t> offsets;
};

class Encoder {
public:
    Encoder(const Graph& graph, bool by_key, Content& content)
        : graph_(graph), by_key_(by_key), content_(content), builder_(content.builder) {}

    Result<Offset<schema::Graph>> run() {
        std::vector<Offset<schema::Value>> values;
        values.reserve(graph_.values.size());
        for (const Value& v : graph_.values) {
            HR_TRY(expect_room(v.name.size() + (v.constant ? v.constant->key.size() : 0)));
            values.push_back(value(v));
        }
        std::vector<Offset<schema::Node>> nodes;
        nodes.reserve(graph_.nodes.size());
        for (const Node& n : graph_.nodes) {
            HR_ASSIGN(auto offset, node(n));
            nodes.push_back(offset);
        }
        std::vector<Offset<schema::Output>> outputs;
        for (const auto& [name, id] : graph_.outputs) {
            HR_TRY(expect_room(name.size()));
            outputs.push_back(schema::CreateOutput(builder_, builder_.CreateString(name), id));
        }
        std::vector<Offset<schema::Condition>> conditions;
        for (const Condition& c : graph_.conditions) {
            HR_TRY(expect_room(c.where.size() + 256 + c.str().size()));
            const auto extents = shape({c.left, c.right});
            const auto where = builder_.CreateString(c.where);
            conditions.push_back(schema::CreateCondition(builder_, static_cast<schema::ConditionKind>(c.kind),
                                                         extents, where));
        }
        HR_TRY(expect_room((conditions.size() + values.size() + nodes.size() + outputs.size()) * 4 +
                           symbols_.size() * 8 + constants_.size() * 8 +
                           (graph_.inputs.size() + graph_.states.size()) * 4));
        const auto values_at = builder_.CreateVector(values);
        const auto nodes_at = builder_.CreateVector(nodes);
        const auto outputs_at = builder_.CreateVector(outputs);
        const auto symbols_at = builder_.CreateVector(symbols_);
        const auto ops_at = builder_.CreateVector(ops_);
        const auto constants_at = builder_.CreateVector(constants_);
        const auto inputs_at = builder_.CreateVector(graph_.inputs);
        const auto states_at = builder_.CreateVector(graph_.states);
        const auto conditions_at = builder_.CreateVector(conditions);
        return schema::CreateGraph(builder_, symbols_at, ops_at, constants_at, values_at, nodes_at, inputs_at,
                                   states_at, outputs_at, conditions_at);
    }

private:
    /// Asked before anything of variable size is added; FlatBuffers asserts instead. What a table, a shape of
    /// kMaxRank and vtables take besides is within the slack.
    Status expect_room(std::size_t bytes) const {
        constexpr std::size_t kSlack = 4096;
        if (bytes < kMostTableBytes && builder_.GetSize() + bytes + kSlack < kMostTableBytes)
            return success();
        return unsupported("the graph without its weights exceeds the 2 GiB of a graph file");
    }

    Offset<schema::Value> value(const Value& v) {
        const auto shape_at = shape(v.type.shape);
        const auto name_at = v.name.empty() ? Offset<flatbuffers::String>() : builder_.CreateString(v.name);
        return schema::CreateValue(builder_, static_cast<schema::ValueKind>(v.kind),
                                   static_cast<schema::DType>(v.type.dtype), shape_at, name_at,
                                   constant(v.constant), static_cast<schema::BlockFormat>(v.type.format));
    }

    Offset<schema::Shape> shape(const Shape& shape) {
        std::vector<std::int64_t> sizes;
        std::vector<std::int32_t> symbols;
        bool has_symbols = false;
        for (const Dim& d : shape) {
            sizes.push_back(d.is_symbolic() ? 0 : d.size());
            symbols.push_back(d.is_symbolic() ? symbol(d) : -1);
            has_symbols = has_symbols || d.is_symbolic();
        }
        const auto sizes_at = builder_.CreateVector(sizes);
        return schema::CreateShape(
            builder_, sizes_at,
            has_symbols ? builder_.CreateVector(symbols) : Offset<flatbuffers::Vector<int>>());
    }

    std::int32_t symbol(const Dim& d) {
        const std::int64_t least = std::max<std::int64_t>(0, d.min_size());  // as extents are, when known
        const auto listed = symbol_index_.find({d.str(), least, d.max_size()});
        if (listed != symbol_index_.end()) return listed->second;
        for (const auto& [name, range] : d.expression().symbols())
            if (range.least >= 0 && name != d.str()) listed_at(name, range.least, range.most);
        return listed_at(d.str(), least, d.max_size());
    }

    std::int32_t listed_at(const std::string& text, std::int64_t min, std::int64_t max) {
        const auto [it, fresh] =
            symbol_index_.try_emplace({text, min, max}, static_cast<int>(symbols_.size()));
        if (fresh) symbols_.push_back(schema::CreateSymbol(builder_, builder_.CreateString(text), min, max));
        return it->second;
    }

    std::int32_t constant(const std::shared_ptr<const Constant>& c) {
        if (!c) return -1;
        const auto [at, fresh] = constant_index_.try_emplace(c.get(), static_cast<int>(constants_.size()));
        if (fresh && by_key_ && !c->key.empty()) {
            const auto key_at = builder_.CreateString(c->key);
            constants_.push_back(schema::CreateConstant(builder_, 0, c->bytes.size(), key_at));
        } else if (fresh) {
            constants_.push_back(schema::CreateConstant(builder_, weight_offset(*c), c->bytes.size()));
        }
        return at->second;
    }

    std::uint64_t weight_offset(const Constant& c) {
        const auto [at, fresh] = content_.offsets.try_emplace(&c, content_.weights_end);
        if (fresh) {
            content_.weights.push_back({at->second, &c});
            content_.weights_end = align_weight(at->second + c.bytes.size());
        }
        return at->second;
    }

    std::uint32_t op(const OpDef* def) {
        const auto [at, fresh] = op_index_.try_emplace(def, static_cast<std::uint32_t>(ops_.size()));
        if (fresh) {
            const auto name_at = builder_.CreateString(def->name.data(), def->name.size());
            ops_.push_back(schema::CreateOp(builder_, name_at, def->version));
        }
        return at->second;
    }

    Result<Offset<schema::Node>> node(const Node& n) {
        HR_TRY(expect_room(n.label.size() + (n.inputs.size() + n.outputs.size()) * 4));
        const std::uint32_t op_at = op(n.op);
        const auto inputs_at = builder_.CreateVector(n.inputs);
        const auto outputs_at = builder_.CreateVector(n.outputs);
        HR_ASSIGN(const auto attrs_at, attrs(n));
        const auto label_at =
            n.label.empty() ? Offset<flatbuffers::String>() : builder_.CreateString(n.label);
        return schema::CreateNode(builder_, op_at, inputs_at, outputs_at, attrs_at, label_at);
    }

    /// All of them, defaults too: a file keeps its meaning when a default changes.
    Result<Offset<flatbuffers::Vector<Offset<schema::Attr>>>> attrs(const Node& n) {
        const auto values = n.op->attr_values(n.attrs.get());
        if (values.empty()) return Offset<flatbuffers::Vector<Offset<schema::Attr>>>();
        std::vector<Offset<schema::Attr>> list;
        for (std::size_t i = 0; i < values.size(); ++i) {
            HR_TRY(expect_room(content_bytes(values[i])));
            const std::string_view name = n.op->fields[i].name;
            if (const auto* body = std::get_if<GraphPtr>(&values[i])) {
                HR_ASSIGN(const auto graph_at, Encoder(**body, by_key_, content_).run());
                HR_TRY(expect_room(name.size()));
                const auto body_at = schema::CreateBody(builder_, graph_at);
                list.push_back(schema::CreateAttr(builder_,
                                                  builder_.CreateSharedString(name.data(), name.size()),
                                                  schema::AttrValue::Body, body_at.Union()));
                continue;
            }
            const auto name_at = builder_.CreateSharedString(name.data(), name.size());
            const auto [type, value_at] = std::visit([&](const auto& v) { return attr(v); }, values[i]);
            list.push_back(schema::CreateAttr(builder_, name_at, type, value_at));
        }
        return builder_.CreateVector(list);
    }

    static std::size_t content_bytes(const AttrValue& value) {
        if (const auto* s = std::get_if<std::string>(&value)) return s->size();
        if (const auto* list = std::get_if<std::vector<std::int64_t>>(&value)) return list->size() * 8;
        if (const auto* list = std::get_if<std::vector<double>>(&value)) return list->size() * 8;
        if (const auto* shape = std::get_if<Shape>(&value)) {
            std::size_t bytes = shape->size() * 12;
            for (const Dim& d : *shape) bytes += d.is_symbolic() ? 64 + d.str().size() : 0;
            return bytes;
        }
        return 0;
    }

    using Attr = std::pair<schema::AttrValue, Offset<void>>;
    template <class T>
    static Attr tagged(schema::AttrValue type, Offset<T> at) {
        return {type, at.Union()};
    }

    Attr attr(std::monostate) { return {schema::AttrValue::NONE, 0}; }
    Attr attr(bool v) { return tagged(schema::AttrValue::Boolean, schema::CreateBoolean(builder_, v)); }
    Attr attr(std::int64_t v) {
        return tagged(schema::AttrValue::Integer, schema::CreateInteger(builder_, v));
    }
    Attr attr(std::uint64_t v) {
        return tagged(schema::AttrValue::Unsigned, schema::CreateUnsigned(builder_, v));
    }
    Attr attr(double v) { return tagged(schema::AttrValue::Real, schema::CreateReal(builder_, v)); }
    Attr attr(const std::string& v) {
        return tagged(schema::AttrValue::Text, schema::CreateText(builder_, builder_.CreateString(v)));
    }
    Attr attr(const std::vector<std::int64_t>& v) {
        return tagged(schema::AttrValue::Integers,
                      schema::CreateIntegers(builder_, builder_.CreateVector(v)));
    }
    Attr attr(const std::vector<double>& v) {
        return tagged(schema::AttrValue::Reals, schema::CreateReals(builder_, builder_.CreateVector(v)));
    }
    Attr attr(const Shape& v) { return tagged(schema::AttrValue::Shape, shape(v)); }
    Attr attr(const GraphPtr&) { return {schema::AttrValue::NONE, 0}; }  // attrs() writes those
    Attr attr(DType v) {
        return tagged(schema::AttrValue::Type, schema::CreateType(builder_, static_cast<schema::DType>(v)));
    }

    const Graph& graph_;
    bool by_key_;
    Content& content_;
    flatbuffers::FlatBufferBuilder& builder_;
    std::vector<Offset<schema::Symbol>> symbols_;
    std::vector<Offset<schema::Op>> ops_;
    std::vector<Offset<schema::Constant>> constants_;
    std::map<std::tuple<std::string, std::int64_t, std::int64_t>, std::int32_t> symbol_index_;
    std::unordered_map<const Constant*, std::int32_t> constant_index_;
    std::unordered_map<const OpDef*, std::uint32_t> op_index_;
};

}  // namespace

Result<EncodedGraph> encode_graph(const Graph& graph, bool by_key) {
    Content content;
    HR_ASSIGN(const auto root, Encoder(graph, by_key, content).run());
    content.builder.Finish(root, schema::GraphIdentifier());
    return EncodedGraph{content.builder.Release(), std::move(content.weights)};
}

}  // namespace headrace::detail
