#include "cli/implementation_status.h"

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "doors/webnn/op_table.h"
#include "ops/catalog.h"
#include "ops/op_name.h"

namespace headrace::cli {
namespace {

using webnn::kWebnnTypes;

struct Implementations {
    bool any = false;  ///< the op accepts the dtype, and so its reference kernel computes it
    bool native = false;
    std::set<std::string_view> kernels;
};
using ByDType = std::map<DType, Implementations>;

std::vector<DType> webnn_types() {
    std::vector<DType> list;
    for (int i = 0; i < kDTypeCount; ++i)
        if (const auto t = static_cast<DType>(i); kWebnnTypes.has(t)) list.push_back(t);
    return list;
}

int count(DTypeSet types) {
    int n = 0;
    for (DType t : webnn_types()) n += types.has(t);
    return n;
}

/// The operand whose dtype a row of the table is about: the first of those with the most dtypes. It is the
/// data rather than a condition or indices.
std::size_t data_operand(const OpDef& op) {
    std::size_t best = 0;
    for (std::size_t i = 0; i < op.operands.size(); ++i)
        if (op.operands[i].same_dtype_as < 0 &&
            count(op.operands[i].dtypes) > count(op.operands[best].dtypes))
            best = i;
    return best;
}

/// The sample's operand types, with `type` for the data operand and for those that must agree with it.
std::vector<TensorType> with_dtype(const OpDef& op, const Sample& sample, DType type) {
    const std::size_t data = data_operand(op);
    std::vector<TensorType> types;
    for (std::size_t i = 0; i < sample.operands.size(); ++i) {
        types.push_back(sample.operands[i].type);
        const int same_as = op.rule(static_cast<int>(i)).same_dtype_as;
        const bool repeats = op.variadic && i >= op.operands.size() - 1 && data == op.operands.size() - 1;
        if (i == data || repeats)
            types[i].dtype = type;
        else if (same_as >= 0 && same_as < static_cast<int>(i))
            types[i].dtype = types[static_cast<std::size_t>(same_as)].dtype;
    }
    return types;
}

void try_sample(const OpDef& op, const Sample& sample, DType type, Implementations& found) {
    auto attrs = op.make_attrs(sample.attrs);
    if (!attrs.ok()) return;
    const std::vector<TensorType> types = with_dtype(op, sample, type);
    std::vector<const TensorType*> pointers;
    for (std::size_t i = 0; i < types.size(); ++i)
        pointers.push_back(sample.operands[i].absent ? nullptr : &types[i]);
    const Operands in(pointers);
    const void* values = attrs.value().get();
    if (!check_and_infer(op, in, values).ok()) return;
    found.any = true;
    found.native = found.native || (op.lower && op.lowerable(in, values).ok());
    // A kernel may want its weights known: all operands but the first are constants here.
    const auto constant = std::make_unique<bool[]>(types.size());
    for (std::size_t i = 1; i < types.size(); ++i) constant[i] = true;
    for (const KernelDef& kernel : op.kernels) {
        // The page is the same on every processor: it leaves out what some have and only "fast" asks for.
        if (kernel.name.find("bf16") != kernel.name.npos) continue;
        if (kernel.applies(in, {constant.get(), types.size()}, values)) found.kernels.insert(kernel.name);
    }
}

/// Derived by asking the op about each of its samples in each dtype, so it shows what the plan would find.
ByDType implementations_of(const OpDef& op) {
    ByDType found;
    const std::vector<Sample> samples = op.samples ? op.samples() : std::vector<Sample>{};
    for (DType type : webnn_types())
        for (const Sample& sample : samples) try_sample(op, sample, type, found[type]);
    // hoist_recurrent_input_projection leaves this of them, which has their kernels.
    const OpDef* recurrence = is(op, "lstm") || is(op, "lstm_cell") ? &catalog_op("lstm_recurrence")
                              : is(op, "gru") || is(op, "gru_cell") ? &catalog_op("gru_recurrence")
                                                                    : nullptr;
    if (recurrence)
        for (auto& [type, left] : implementations_of(*recurrence)) found[type].kernels.merge(left.kernels);
    return found;
}

std::string cell(const Implementations& found) {
    if (!found.any) return "";
    return std::string(found.kernels.empty() ? "" : "K") + (found.native ? "G" : "") + "R";
}

}  // namespace

std::string implementation_status() {
    std::string header = "| operator | operand |", rule = "|---|---|";
    for (DType type : webnn_types()) {
        header += fmt::format(" {} |", webnn::data_type_name(type));
        rule += "---|";
    }
    std::string rows;
    int native = 0, packed = 0;
    for (const webnn::OpRow& row : webnn::op_rows()) {
        const OpDef& op = *webnn::find_row(row.name).op;
        const ByDType found = implementations_of(op);
        std::set<std::string_view> kernels;
        rows += fmt::format("| {} | {} |", row.idl, webnn::camel_case(op.operands[data_operand(op)].name));
        for (const auto& [type, implementations] : found) {
            rows += fmt::format(" {} |", cell(implementations));
            kernels.insert(implementations.kernels.begin(), implementations.kernels.end());
        }
        rows += fmt::format(" {} |\n", fmt::join(kernels, ", "));
        native += std::any_of(found.begin(), found.end(), [](const auto& f) { return f.second.native; });
        packed += !kernels.empty();
    }
    return fmt::format(
        "# Implementation status\n\n"
        "Written by `headrace ops --webnn` from the op catalog; `make docs` renews it.\n\n"
        "Each cell lists what can run the operator on the CPU when the operand has that data type, the "
        "plan's\n"
        "first choice first: **K** a packed kernel of Headrace, **G** ggml's own ops (which also run on "
        "ggml's\n"
        "other devices), **R** the reference kernel, for any shape and options. K and G may "
        "hold for some\nshapes and options only. An empty cell: the operator does not take the type.\n\n"
        "{} operators, {} with a lowering to ggml, {} with packed kernels, all with a reference kernel.\n\n"
        "{} packed kernels |\n{}---|\n{}",
        webnn::op_rows().size(), native, packed, header, rule, rows);
}

}  // namespace headrace::cli
