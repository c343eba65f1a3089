#include "doors/onnx/reading/op_writer.h"

#include <algorithm>

#include "doors/onnx/reading/carried.h"
#include "doors/onnx/reading/fitting_extents.h"
#include "doors/onnx/reading/folding.h"
#include "ir/constant.h"
#include "ir/shared_forms.h"
#include "ops/catalog.h"

namespace headrace::onnx {
namespace {

/// Ops whose results are truth values.
bool gives_truth(std::string_view op) {
    static const std::set<std::string_view> kOps{
        "equal",  "not_equal",   "greater",     "greater_or_equal", "lesser",      "lesser_or_equal",
        "is_nan", "is_infinite", "logical_and", "logical_or",       "logical_xor", "logical_not"};
    return kOps.contains(op);
}

/// Ops whose errors about numbers that a caller gives name the operator that takes these.
bool is_judge(std::string_view op) {
    return op == "checked_indices" || op == "checked_numbers" || op == "read_extents";
}

bool all_known(const std::vector<Operand>& operands) {
    return std::ranges::all_of(operands, [](const Operand& x) { return !x || x->is_known(); });
}

/// Null where an operand is left out.
std::vector<const TensorType*> types_of(const GraphBuilder& builder, const std::vector<ValueId>& values) {
    std::vector<const TensorType*> types;
    for (const ValueId id : values) types.push_back(id == kNoValue ? nullptr : &builder.type(id));
    return types;
}

}  // namespace

ValueId OpWriter::value(const Operand& x) {
    if (x->id != kNoValue && x->home == this) return x->id;
    if (!x->known) return capture(x);
    if (!x->known->are_numbers()) return computed(x);
    if (!x->home) {
        x->id = constant(x);
        x->home = this;
        return x->id;
    }
    const auto [at, is_new] = constants_.try_emplace(x.get(), x, kNoValue);
    if (is_new) at->second.second = constant(x);
    return at->second.second;
}

void OpWriter::count(const Operand& x) {
    if (!x || !x->has_numbers() || x->is_counted) return;
    budget().constant(x->known->data->bytes.size());
    x->is_counted = true;
}

ValueId OpWriter::constant(const Operand& x) {
    Elements& elements = *x->known;
    count(x);
    if (!stays_in_place(*elements.data)) align(elements);
    TensorType type{stored_as(x->type), Shape(elements.shape.begin(), elements.shape.end())};
    return value_or_refuse(builder_.constant(std::move(type), elements.data));
}

/// A copy in the place of elements that lie where kernels cannot read them, which all readings of the model
/// share; the file's pages are given back.
void OpWriter::align(Elements& elements) {
    const std::shared_ptr<const Constant> given = std::move(elements.data);
    const FilePages* pages = given->mapped ? &shared_.pages : nullptr;
    elements.data =
        own_constant(value_or_refuse(SharedForms::all().aligned(*given, pages)), given->bytes.size());
    if (pages) pages->give_back(given->bytes);
}

ValueId OpWriter::capture(const Operand& /*x*/) {
    throw Refused("it reads a value of a graph that does not surround it");
}

ValueId OpWriter::computed(const Operand& x) {
    std::vector<Operand> parts;
    for (const Item& item : x->known->items) parts.push_back(reshape(at_run_time(item, x->type), {1}));
    const Operand joined = parts.size() == 1 ? parts[0] : op("concat", parts, {{"axis", 0}});
    return value(reshape(joined, Shape(x->known->shape.begin(), x->known->shape.end())));
}

Operand OpWriter::made(ValueId id, ElementType type) {
    auto data = std::make_shared<OperandData>();
    data->type = type;
    data->id = id;
    data->home = this;
    return data;
}

Operand OpWriter::retyped(const Operand& x, ElementType type) {
    if (x->type == type) return x;
    if (x->known) return known(*x->known, type);
    return made(value(x), type);
}

std::vector<Operand> OpWriter::ops(std::string_view name, std::vector<Operand> operands,
                                   const NamedAttrs& attrs) {
    while (!operands.empty() && !operands.back()) operands.pop_back();
    budget().op();
    const OpDef* def = find_op(name);
    if (!def) throw Refused(fmt::format("the catalog has no op '{}'", name));
    const AttrBox box = value_or_refuse(def->make_attrs(attrs));
    std::vector<Operand> results;
    if (!operands.empty() && all_known(operands)) {
        if (auto found = folded({*def, box, attrs, operands})) {
            for (Folded& f : *found) {
                Elements& e = f.elements;
                const ElementType type = element_type(f.stored);
                results.push_back(e.are_numbers() ? known(std::move(e), type)
                                                  : known(std::move(e.items), std::move(e.shape), type));
                count(results.back());
            }
        }
    }
    if (results.empty()) {
        std::vector<ValueId> values;
        for (const Operand& x : operands) values.push_back(x ? value(x) : kNoValue);
        auto added = builder_.op(*def, values, box, is_judge(name) ? operator_title : label);
        if (!added.ok()) refuse_operands(*def, box, types_of(builder_, values), added.error());
        for (ValueId id : added.value()) {
            ranges().learn(builder_.type(id).shape);
            results.push_back(made(id, element_type(builder_.type(id).dtype)));
        }
    }
    return typed(name, operands, std::move(results));
}

ValueId OpWriter::append(std::string_view name, std::vector<ValueId> operands, const NamedAttrs& attrs,
                         const std::string& title) {
    budget().op();
    return value_or_refuse(builder_.op(*find_op(name), std::move(operands), attrs, title)).front();
}

Operand OpWriter::run_number() {
    if (!runs_) {
        const ValueId state = value_or_refuse(builder_.state("random.runs", {DType::i64, {1}}));
        runs_ = made(append("accumulate", {state, value(known(std::vector<std::int64_t>{1}))}, {}, label),
                     ElementType::i64);
    }
    return runs_;
}

std::vector<Operand> OpWriter::typed(std::string_view name, const std::vector<Operand>& operands,
                                     std::vector<Operand> results) {
    const std::size_t at = name == "where" ? 1 : 0;
    const Operand source = operands.size() > at ? operands[at] : nullptr;
    if (name == "cast") return results;
    const bool is_truth = gives_truth(name) || (source && source->type == ElementType::boolean);
    for (Operand& y : results) {
        if (is_truth && y->type == ElementType::u8) y = retyped(y, ElementType::boolean);
        if (source && is_carried(source->type) && y->type == element_type(stored_as(source->type)))
            y = as_carried(*this, y, source->type, name);
    }
    return results;
}

}  // namespace headrace::onnx
