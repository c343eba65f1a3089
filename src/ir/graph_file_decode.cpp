#include <algorithm>
#include <cstring>
#include <map>

#include "ggml_ir_generated.h"
#include "ir/graph_file_tables.h"
#include "ir/verify.h"

namespace headrace::detail {
namespace {

// The file's numbers are fixed for ever; whoever reorders our enum must map them here.
#define HR_SAME_DTYPE(t) static_assert(static_cast<int>(schema::DType::t) == static_cast<int>(DType::t))
HR_SAME_DTYPE(f32);
HR_SAME_DTYPE(f16);
HR_SAME_DTYPE(bf16);
HR_SAME_DTYPE(f64);
HR_SAME_DTYPE(i8);
HR_SAME_DTYPE(u8);
HR_SAME_DTYPE(i16);
HR_SAME_DTYPE(i32);
HR_SAME_DTYPE(u32);
HR_SAME_DTYPE(i64);
HR_SAME_DTYPE(u64);
HR_SAME_DTYPE(i4);
HR_SAME_DTYPE(u4);
HR_SAME_DTYPE(boolean);
static_assert(static_cast<int>(schema::DType::MAX) + 1 == kDTypeCount);
static_assert(static_cast<int>(schema::ValueKind::input) == static_cast<int>(ValueKind::input));
static_assert(static_cast<int>(schema::ValueKind::constant) == static_cast<int>(ValueKind::constant));
static_assert(static_cast<int>(schema::ValueKind::state) == static_cast<int>(ValueKind::state));
static_assert(static_cast<int>(schema::ValueKind::result) == static_cast<int>(ValueKind::result));
static_assert(static_cast<int>(schema::ConditionKind::MAX) + 1 == kConditionKinds);

constexpr std::size_t kLongestName = 256;

template <class T>
std::size_t size_of(const flatbuffers::Vector<T>* list) {
    return list ? list->size() : 0;
}

std::string_view view(const flatbuffers::String* text) {
    return text ? std::string_view(text->c_str(), text->size()) : std::string_view();
}

/// Names in messages, cut where a hostile file made them endless.
std::string_view shown(const flatbuffers::String* text) { return view(text).substr(0, kLongestName); }

class Decoder {
public:
    /// `budget`: how many bytes of strings and lists may be copied. Vectors of a hostile FlatBuffer may
    /// overlap, so that a small file would unfold to an enormous graph; in an honest one they do not.
    /// `depth`: of graphs around this one, which is a body.
    Decoder(const schema::Graph& file, const WeightBytes& weights, const OpLookup& find_op,
            std::size_t& budget, int depth)
        : file_(file), weights_(weights), find_op_(find_op), budget_(budget), depth_(depth) {}

    Result<Graph> run() {
        HR_TRY(read_symbols());
        HR_TRY(read_ops());
        HR_TRY(read_constants());
        HR_TRY(read_values());
        for (std::size_t i = 0; i < size_of(file_.nodes()); ++i) {
            const schema::Node& node = *file_.nodes()->Get(i);
            if (auto status = read_node(node); !status.ok())
                return status.error().within(fmt::format("node {} ({})", i, shown(node.label())));
        }
        HR_TRY(read_ids(file_.inputs(), graph_.inputs));
        HR_TRY(read_ids(file_.states(), graph_.states));
        for (std::size_t i = 0; i < size_of(file_.outputs()); ++i) {
            const schema::Output& output = *file_.outputs()->Get(i);
            HR_ASSIGN(auto name, text(output.name()));
            graph_.outputs.emplace_back(std::move(name), output.value());
        }
        HR_TRY(read_conditions());
        if (depth_ == 0) HR_TRY(verify(graph_));
        return std::move(graph_);
    }

private:
    Status spend(std::size_t bytes) {
        if (bytes > budget_) return invalid("the file's lists overlap");
        budget_ -= bytes;
        return success();
    }

    Result<std::string> text(const flatbuffers::String* s) {
        HR_TRY(spend(view(s).size()));
        return std::string(view(s));
    }

    template <class T>
    Result<std::vector<T>> list(const flatbuffers::Vector<T>* v) {
        HR_TRY(spend(size_of(v) * sizeof(T)));
        std::vector<T> copy(size_of(v));
        // Not by iterators: the verifier lets the elements of a hostile vector be misaligned.
        if (!copy.empty()) std::memcpy(copy.data(), v->Data(), copy.size() * sizeof(T));
        return copy;
    }

    Status read_ids(const flatbuffers::Vector<std::int32_t>* from, std::vector<ValueId>& to) {
        HR_ASSIGN(to, list(from));
        return success();
    }

    /// Expressions take the ranges of the symbols that they name from the list, too.
    Status read_symbols() {
        std::map<std::string, Range> ranges;
        for (std::size_t i = 0; i < size_of(file_.symbols()); ++i) {
            const schema::Symbol& s = *file_.symbols()->Get(i);
            HR_ASSIGN(auto name, text(s.name()));
            if (name.empty() || s.min() < 0 || s.min() > s.max())
                return invalid("symbol {} '{}' has the range {}..{}", i, shown(s.name()), s.min(), s.max());
            symbols_.push_back(Dim::symbolic(std::move(name), s.min(), s.max()));
            const Dim& d = symbols_.back();
            if (d.expression().names() != std::vector{d.str()}) continue;
            Range& range = ranges.try_emplace(d.str(), Range{s.min(), s.max()}).first->second;
            const Range both{std::max(range.least, s.min()), std::min(range.most, s.max())};
            if (both.least <= both.most) range = both;
        }
        const auto find = [&](const std::string& name) {
            const auto it = ranges.find(name);
            return it == ranges.end() ? std::nullopt : std::optional(it->second);
        };
        for (Dim& d : symbols_)
            if (!ranges.contains(d.str())) d = d.with_ranges(find);
        return success();
    }

    Status read_ops() {
        for (std::size_t i = 0; i < size_of(file_.ops()); ++i) {
            const schema::Op& op = *file_.ops()->Get(i);
            const OpDef* def = find_op_(view(op.name()));
            if (!def)
                return failure(Code::unsupported,
                               "unknown op '{}' version {}; this build knows no op of that name",
                               shown(op.name()), op.version());
            if (op.version() < 1 || op.version() > def->version)
                return failure(Code::unsupported,
                               "unknown op '{}' version {}; this build knows versions 1 to {}", def->name,
                               op.version(), def->version);
            ops_.push_back(def);
        }
        return success();
    }

    Status read_constants() {
        const std::uint64_t available = weights_.bytes.size();
        for (std::size_t i = 0; i < size_of(file_.constants()); ++i) {
            const schema::Constant& c = *file_.constants()->Get(i);
            if (c.key()) {
                HR_TRY(read_named_constant(i, c));
                continue;
            }
            if (c.offset() % kWeightAlignment != 0)
                return invalid("constant {} lies at offset {}, not a multiple of {}", i, c.offset(),
                               kWeightAlignment);
            if (c.offset() > available || c.size() > available - c.offset())
                return invalid("constant {}, {} bytes at offset {}, exceeds the {} bytes of weights", i,
                               c.size(), c.offset(), available);
            constants_.push_back(
                std::make_shared<Constant>(Constant{.bytes = weights_.bytes.subspan(c.offset(), c.size()),
                                                    .owner = weights_.owner,
                                                    .mapped = weights_.mapped}));
        }
        return success();
    }

    Status read_named_constant(std::size_t i, const schema::Constant& c) {
        HR_ASSIGN(const auto key, text(c.key()));
        if (!weights_.find)
            return invalid("constant {} is outside the file, under the name '{}'; there is nowhere to look",
                           i, shown(c.key()));
        HR_ASSIGN(auto constant, (*weights_.find)(key));
        if (constant->bytes.size() != c.size())
            return invalid("the weights '{}' have {} bytes, the graph expects {}", shown(c.key()),
                           constant->bytes.size(), c.size());
        constants_.push_back(std::move(constant));
        return success();
    }

    Status read_values() {
        graph_.values.reserve(size_of(file_.values()));
        for (std::size_t i = 0; i < size_of(file_.values()); ++i) {
            const schema::Value& from = *file_.values()->Get(i);
            if (from.kind() > schema::ValueKind::MAX)
                return invalid("value {} is of the unknown kind {}", i, static_cast<int>(from.kind()));
            Value v{.kind = static_cast<ValueKind>(from.kind())};
            HR_ASSIGN(v.type.dtype, dtype(from.dtype()));
            if (from.format() > schema::BlockFormat::MAX)
                return invalid("value {} has the unknown block format {}", i,
                               static_cast<int>(from.format()));
            v.type.format = static_cast<BlockFormat>(from.format());
            if (size_of(from.shape()->sizes()) > kMaxRank)
                return invalid("value {} has rank {}, at most {} is possible", i,
                               size_of(from.shape()->sizes()), kMaxRank);
            HR_ASSIGN(v.type.shape, shape(*from.shape()));
            HR_ASSIGN(v.name, text(from.name()));
            if (from.constant() != -1) {
                if (from.constant() < 0 || static_cast<std::size_t>(from.constant()) >= constants_.size())
                    return invalid("value {} names constant {} of {}", i, from.constant(), constants_.size());
                v.constant = constants_[from.constant()];
            }
            graph_.values.push_back(std::move(v));
        }
        return success();
    }

    static Result<DType> dtype(schema::DType t) {
        if (t > schema::DType::MAX) return invalid("unknown dtype number {}", static_cast<int>(t));
        return static_cast<DType>(t);
    }

    Result<Shape> shape(const schema::Shape& from) {
        HR_ASSIGN(const auto sizes, list(from.sizes()));
        const std::size_t rank = sizes.size();
        if (from.symbols() && from.symbols()->size() != rank)
            return invalid("a shape has {} extents and {} symbols", rank, from.symbols()->size());
        Shape shape(rank);
        for (std::size_t i = 0; i < rank; ++i) {
            const std::int32_t symbol = from.symbols() ? from.symbols()->Get(i) : -1;
            if (symbol < -1 || (symbol >= 0 && static_cast<std::size_t>(symbol) >= symbols_.size()))
                return invalid("a shape names symbol {} of {}", symbol, symbols_.size());
            shape[i] = symbol < 0 ? Dim(sizes[i]) : symbols_[symbol];
        }
        return shape;
    }

    Status read_conditions() {
        for (std::size_t i = 0; i < size_of(file_.conditions()); ++i) {
            const schema::Condition& from = *file_.conditions()->Get(i);
            if (from.kind() > schema::ConditionKind::MAX)
                return invalid("condition {} is of the unknown kind {}", i, static_cast<int>(from.kind()));
            if (size_of(from.extents()->sizes()) != 2)
                return invalid("condition {} is about {} extents; it takes 2", i,
                               size_of(from.extents()->sizes()));
            HR_ASSIGN(const Shape extents, shape(*from.extents()));
            HR_ASSIGN(auto where, text(from.where()));
            graph_.conditions.push_back(
                {static_cast<Condition::Kind>(from.kind()), extents[0], extents[1], std::move(where)});
        }
        return success();
    }

    Status read_node(const schema::Node& from) {
        if (from.op() >= ops_.size()) return invalid("op {} of {}", from.op(), ops_.size());
        Node node{.op = ops_[from.op()]};
        HR_ASSIGN(node.label, text(from.label()));
        HR_ASSIGN(node.inputs, list(from.inputs()));
        HR_ASSIGN(node.outputs, list(from.outputs()));
        for (std::size_t i = 0; i < node.outputs.size(); ++i) {
            const ValueId id = node.outputs[i];
            if (id < 0 || static_cast<std::size_t>(id) >= graph_.values.size())
                return invalid("output {} is value {} of {}", i, id, graph_.values.size());
            graph_.value(id).producer = static_cast<NodeId>(graph_.nodes.size());
            graph_.value(id).output_index = static_cast<std::int32_t>(i);
        }
        NamedAttrs named;
        for (std::size_t i = 0; i < size_of(from.attrs()); ++i) {
            const schema::Attr& attr = *from.attrs()->Get(i);
            if (attr.name()->size() > kLongestName)
                return invalid("attribute {} has a name of {} bytes", i, attr.name()->size());
            HR_ASSIGN(auto value, attr_value(attr));
            named.emplace_back(view(attr.name()), std::move(value));
        }
        auto box = node.op->make_attrs(named);
        if (!box.ok()) return box.error().within(node.op->name);
        node.attrs = std::move(box).value();
        graph_.nodes.push_back(std::move(node));
        return success();
    }

    Result<AttrValue> attr_value(const schema::Attr& attr) {
        // FlatBuffers' verifier accepts a union that says its type but has no value.
        if (attr.value_type() == schema::AttrValue::NONE) return AttrValue{};
        if (!attr.value()) return invalid("attribute {} has no value", view(attr.name()));
        switch (attr.value_type()) {
            case schema::AttrValue::Boolean: return AttrValue(attr.value_as_Boolean()->value());
            case schema::AttrValue::Integer: return AttrValue(attr.value_as_Integer()->value());
            case schema::AttrValue::Unsigned: return AttrValue(attr.value_as_Unsigned()->value());
            case schema::AttrValue::Real:
                if (const auto value = attr.value_as_Real()->value()) return AttrValue(*value);
                return invalid("attribute {} has no value", view(attr.name()));
            case schema::AttrValue::Text: return as_attr(text(attr.value_as_Text()->value()));
            case schema::AttrValue::Integers: return as_attr(list(attr.value_as_Integers()->value()));
            case schema::AttrValue::Reals: return as_attr(list(attr.value_as_Reals()->value()));
            case schema::AttrValue::Shape: return as_attr(shape(*attr.value_as_Shape()));
            case schema::AttrValue::Type: return as_attr(dtype(attr.value_as_Type()->value()));
            case schema::AttrValue::Body: return body(*attr.value_as_Body());
            default: break;
        }
        return invalid("attribute {} is of the unknown kind {}", view(attr.name()),
                       static_cast<int>(attr.value_type()));
    }

    Result<AttrValue> body(const schema::Body& from) {
        if (depth_ == kMostNested) return invalid("graphs lie more than {} deep in one another", kMostNested);
        HR_ASSIGN(Graph graph, Decoder(*from.graph(), weights_, find_op_, budget_, depth_ + 1).run());
        return AttrValue(std::make_shared<const Graph>(std::move(graph)));
    }

    template <class T>
    static Result<AttrValue> as_attr(Result<T> value) {
        if (!value.ok()) return value.error();
        return AttrValue(std::move(value).value());
    }

    const schema::Graph& file_;
    const WeightBytes& weights_;
    const OpLookup& find_op_;
    std::size_t& budget_;
    int depth_;
    std::vector<Dim> symbols_;
    std::vector<const OpDef*> ops_;
    std::vector<std::shared_ptr<const Constant>> constants_;
    Graph graph_;
};

}  // namespace

Result<Graph> decode_graph(std::span<const std::byte> tables, const WeightBytes& weights,
                           const OpLookup& find_op) {
    if (tables.size() > kMostTableBytes)
        return invalid("{} bytes of tables are more than a FlatBuffer holds", tables.size());
    const auto* data = reinterpret_cast<const std::uint8_t*>(tables.data());
    flatbuffers::Verifier::Options limits;
    limits.max_depth = 4 + 4 * (kMostNested + 1);  // Graph, Node, Attr, value, and so on in bodies
    // Each table is reached through an offset of its own; more visits than offsets fit means shared tables,
    // which could make verification take exponential time.
    limits.max_tables = static_cast<flatbuffers::uoffset_t>(tables.size() / sizeof(flatbuffers::uoffset_t));
    flatbuffers::Verifier verifier(data, tables.size(), limits);
    if (!schema::VerifyGraphBuffer(verifier)) return invalid("the graph's tables are damaged");
    std::size_t budget = tables.size();
    return Decoder(*schema::GetGraph(data), weights, find_op, budget, 0).run();
}

}  // namespace headrace::detail
