#include "headrace/graph_writer.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/aligned_buffer.h"
#include "emit/emit.h"
#include "engine/convert.h"
#include "engine/executable.h"
#include "ir/constant.h"
#include "ir/graph_builder.h"
#include "ir/graph_file.h"
#include "ops/catalog.h"
#include "ops/op_name.h"

namespace headrace {
namespace {

std::shared_ptr<const Constant> hold(std::span<const std::byte> bytes, std::shared_ptr<const void> owner,
                                     const std::string& key) {
    return std::make_shared<const Constant>(Constant{.bytes = bytes, .owner = std::move(owner), .key = key});
}

TensorType fixed_type(DType type, const std::vector<std::int64_t>& shape,
                      BlockFormat format = BlockFormat::plain) {
    return {type, Shape(shape.begin(), shape.end()), format};
}

BlockFormat format_named(std::string_view name) {
    std::string known;
    for (int i = 1; i < kBlockFormatCount; ++i) {
        const auto format = static_cast<BlockFormat>(i);
        if (!is_of_ggml(format)) continue;
        if (name_of(format) == name) return format;
        known.append(i > 1 ? ", " : "").append(name_of(format));
    }
    throw Exception(Code::invalid_argument, fmt::format("block format '{}' is none of {}", name, known));
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

GraphWriter::Value GraphWriter::input(const std::string& name, DType type, const std::vector<Extent>& shape) {
    return value_or_throw(impl_->builder.input(name, {type, to_shape(shape)}));
}

GraphWriter::Value GraphWriter::constant(DType type, const std::vector<std::int64_t>& shape,
                                         std::span<const std::byte> bytes, std::shared_ptr<const void> owner,
                                         const std::string& key, std::string_view format) {
    const BlockFormat blocks = format.empty() ? BlockFormat::plain : format_named(format);
    return value_or_throw(
        impl_->builder.constant(fixed_type(type, shape, blocks), hold(bytes, std::move(owner), key), key));
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

bool GraphWriter::is_blocks(Value value) const {
    impl_->check(value);
    return impl_->builder.type(value).format != BlockFormat::plain;
}

std::vector<Extent> GraphWriter::shape(Value value) const {
    impl_->check(value);
    return to_extents(impl_->builder.type(value).shape);
}

void GraphWriter::output(const std::string& name, Value value) {
    impl_->check(value);
    value_or_throw(impl_->builder.mark_output(name, value));
}

std::shared_ptr<const Graph> GraphWriter::finish() {
    return std::make_shared<const Graph>(value_or_throw(impl_->builder.finish()));
}

std::vector<BlockFormatInfo> block_formats() {
    std::vector<BlockFormatInfo> list;
    for (int i = 1; i < kBlockFormatCount; ++i) {
        const auto format = static_cast<BlockFormat>(i);
        if (is_of_ggml(format))
            list.push_back({name_of(format), block_elements(format), block_bytes(format)});
    }
    return list;
}

std::vector<std::byte> quantize_rows(std::string_view format, std::span<const float> values,
                                     std::int64_t columns) {
    const BlockFormat blocks = format_named(format);
    const auto count = static_cast<std::int64_t>(values.size());
    if (columns <= 0 || columns % block_elements(blocks) != 0 || count % columns != 0)
        throw Exception(Code::invalid_argument,
                        fmt::format("{} numbers in rows of {} are not whole blocks of {} for {}", count,
                                    columns, block_elements(blocks), format));
    // ggml's searches for the best scale may assert on NaN.
    if (!std::all_of(values.begin(), values.end(), [](float v) { return std::isfinite(v); }))
        throw Exception(Code::invalid_argument, "weights with infinities or NaN cannot be quantised");
    std::vector<std::byte> bytes(blocks_bytes(blocks, count));
    quantize_rows(blocks, values.data(), count / columns, columns, bytes.data());
    return bytes;
}

std::vector<std::byte> cast_elements(DType from, std::span<const std::byte> elements, std::int64_t count,
                                     DType to) {
    const TensorType given{from, {count}}, wanted{to, {count}};
    if (count < 0 || elements.size() != given.bytes())
        throw Exception(Code::invalid_argument, fmt::format("{} bytes are not {} elements of {}",
                                                            elements.size(), count, name_of(from)));
    AlignedBuffer aligned = value_or_throw(AlignedBuffer::allocate(elements.size(), "elements to cast"));
    std::copy(elements.begin(), elements.end(), aligned.data());
    std::vector<std::byte> result(wanted.bytes());
    const OpDef& cast = catalog_op("cast");
    const auto attrs = value_or_throw(cast.make_attrs({{"data_type", to}}));
    const std::array shape{count};
    const std::array in{ConstView{from, shape, aligned.data()}};
    const std::array out{MutView{to, shape, result.data()}};
    cast.reference({in, out, {}}, attrs.get());
    return result;
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
