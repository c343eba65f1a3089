#include "headrace/graph_writer.h"

#include "engine/convert.h"
#include "engine/executable.h"
#include "ir/constant.h"
#include "ir/graph_builder.h"
#include "ir/graph_file.h"
#include "ops/catalog.h"

namespace headrace {
namespace {

std::shared_ptr<const Constant> hold(std::span<const std::byte> bytes, std::shared_ptr<const void> owner,
                                     const std::string& key) {
    return std::make_shared<const Constant>(Constant{.bytes = bytes, .owner = std::move(owner), .key = key});
}

TensorType fixed_type(DType type, const std::vector<std::int64_t>& shape) {
    return {type, Shape(shape.begin(), shape.end())};
}

}  // namespace

struct GraphWriter::Impl {
    GraphBuilder builder;

    void check(Value value) const {
        if (value < 0 || static_cast<std::size_t>(value) >= builder.graph().values.size())
            throw Exception(Code::invalid_argument, fmt::format("the graph has no value {}", value));
    }
};

GraphWriter::GraphWriter() : impl_(std::make_shared<Impl>()) {}

GraphWriter::Value GraphWriter::input(const std::string& name, DType type,
                                      const std::vector<Dimension>& shape) {
    return value_or_throw(impl_->builder.input(name, {type, to_shape(shape)}));
}

GraphWriter::Value GraphWriter::constant(DType type, const std::vector<std::int64_t>& shape,
                                         std::span<const std::byte> bytes, std::shared_ptr<const void> owner,
                                         const std::string& key) {
    return value_or_throw(
        impl_->builder.constant(fixed_type(type, shape), hold(bytes, std::move(owner), key), key));
}

GraphWriter::Value GraphWriter::state(const std::string& name, DType type,
                                      const std::vector<std::int64_t>& shape,
                                      std::span<const std::byte> initial, std::shared_ptr<const void> owner,
                                      const std::string& key) {
    auto constant = initial.empty() ? nullptr : hold(initial, std::move(owner), key);
    return value_or_throw(impl_->builder.state(name, fixed_type(type, shape), std::move(constant)));
}

std::vector<GraphWriter::Value> GraphWriter::op(std::string_view name, const std::vector<Value>& operands,
                                                const Options& options, const std::string& label) {
    const OpDef* def = find_op(name);
    if (!def) throw Exception(Code::invalid_argument, fmt::format("there is no op '{}'", name));
    for (Value v : operands)
        if (v != kAbsent) impl_->check(v);
    return value_or_throw(impl_->builder.op(*def, operands, to_attrs(options), label));
}

DType GraphWriter::dtype(Value value) const {
    impl_->check(value);
    return impl_->builder.type(value).dtype;
}

std::vector<Dimension> GraphWriter::shape(Value value) const {
    impl_->check(value);
    return to_dimensions(impl_->builder.type(value).shape);
}

void GraphWriter::output(const std::string& name, Value value) {
    impl_->check(value);
    value_or_throw(impl_->builder.mark_output(name, value));
}

std::shared_ptr<const Graph> GraphWriter::finish() {
    return std::make_shared<const Graph>(value_or_throw(impl_->builder.finish()));
}

std::vector<std::byte> graph_to_bytes(const Graph& graph) { return value_or_throw(graph_bytes(graph, true)); }

std::shared_ptr<const Graph> graph_from_memory(std::span<const std::byte> bytes,
                                               std::shared_ptr<const void> owner,
                                               const FindNamedWeight& find) {
    const FindWeight lookup = [&](const std::string& key) -> Result<std::shared_ptr<const Constant>> {
        try {
            NamedWeight weight = find(key);
            if (is_constant_aligned(weight.bytes)) return hold(weight.bytes, std::move(weight.owner), key);
            return copy_constant(weight.bytes, "aligned weights", key);
        } catch (const Exception& e) {
            return Error{e.code(), e.what()};
        }
    };
    return std::make_shared<const Graph>(
        value_or_throw(graph_from_bytes(std::move(owner), bytes, find_op, find ? lookup : FindWeight())));
}

}  // namespace headrace
