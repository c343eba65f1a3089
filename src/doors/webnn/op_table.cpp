#include "doors/webnn/op_table.h"

#include <algorithm>
#include <cctype>
#include <unordered_map>

#include "doors/webnn/state.h"
#include "ops/catalog.h"

namespace headrace::webnn {
namespace {

/// The positional order is pywebnn's where that has the operator, else the specification's.
constexpr OpRow kRows[] = {
    {"abs", "abs", "x=input"},
    {"add", "add", "a b"},
    {"arg_max", "argMax", "input axis keep_dimensions output_data_type"},
    {"arg_min", "argMin", "input axis keep_dimensions output_data_type"},
    {"average_pool2d", "averagePool2d",
     "input window_dimensions strides dilations pads=padding layout output_shape_rounding output_sizes"},
    {"batch_normalization", "batchNormalization", "input mean variance scale bias epsilon axis"},
    {"cast", "cast", "input data_type"},
    {"ceil", "ceil", "x=input"},
    {"clamp", "clamp", "input min_value max_value"},
    {"concat", "concat", "inputs axis"},
    {"conv2d", "conv2d",
     "input filter strides dilations pads=padding groups input_layout filter_layout bias"},
    {"conv_transpose2d", "convTranspose2d",
     "input filter strides dilations pads=padding output_padding output_sizes groups input_layout "
     "filter_layout bias"},
    {"cos", "cos", "x=input"},
    {"cumulative_sum", "cumulativeSum", "input axis exclusive reversed"},
    {"dequantize_linear", "dequantizeLinear", "input scale zero_point"},
    {"div", "div", "a b"},
    {"elu", "elu", "input alpha"},
    {"equal", "equal", "a b"},
    {"erf", "erf", "x=input"},
    {"exp", "exp", "x=input"},
    {"expand", "expand", "input new_shape"},
    {"floor", "floor", "x=input"},
    {"gather", "gather", "input indices axis"},
    {"gather_elements", "gatherElements", "input indices axis"},
    {"gather_nd", "gatherND", "input indices"},
    {"gelu", "gelu", "input"},
    {"gemm", "gemm", "a b c alpha beta a_transpose b_transpose"},
    {"greater", "greater", "a b"},
    {"greater_or_equal", "greaterOrEqual", "a b"},
    {"gru", "gru",
     "input weight recurrent_weight steps hidden_size bias recurrent_bias initial_hidden_state reset_after "
     "return_sequence direction layout activations"},
    {"gru_cell", "gruCell",
     "input weight recurrent_weight hidden_state hidden_size bias recurrent_bias reset_after layout "
     "activations"},
    {"hard_sigmoid", "hardSigmoid", "input alpha beta"},
    {"hard_swish", "hardSwish", "input alpha beta"},
    {"identity", "identity", "x=input"},
    {"instance_normalization", "instanceNormalization", "input scale bias epsilon layout"},
    {"is_infinite", "isInfinite", "x=input"},
    {"is_nan", "isNaN", "x=input"},
    {"l2_pool2d", "l2Pool2d",
     "input window_dimensions strides dilations pads=padding layout output_shape_rounding output_sizes"},
    {"layer_normalization", "layerNormalization", "input scale bias epsilon axes"},
    {"leaky_relu", "leakyRelu", "input alpha"},
    {"lesser", "lesser", "a b"},
    {"lesser_or_equal", "lesserOrEqual", "a b"},
    {"linear", "linear", "input alpha beta"},
    {"log", "log", "x=input"},
    {"logical_and", "logicalAnd", "a b"},
    {"logical_not", "logicalNot", "x=input"},
    {"logical_or", "logicalOr", "a b"},
    {"logical_xor", "logicalXor", "a b"},
    {"lstm", "lstm",
     "input weight recurrent_weight steps hidden_size bias recurrent_bias peephole_weight "
     "initial_hidden_state "
     "initial_cell_state return_sequence direction layout activations"},
    {"lstm_cell", "lstmCell",
     "input weight recurrent_weight hidden_state cell_state hidden_size bias recurrent_bias peephole_weight "
     "layout "
     "activations"},
    {"matmul", "matmul", "a b"},
    {"max", "max", "a b"},
    {"max_pool2d", "maxPool2d",
     "input window_dimensions strides dilations pads=padding layout output_shape_rounding output_sizes"},
    {"min", "min", "a b"},
    {"mul", "mul", "a b"},
    {"neg", "neg", "x=input"},
    {"not_equal", "notEqual", "a b"},
    {"pad", "pad", "input beginning_padding ending_padding mode value"},
    {"pow", "pow", "a b"},
    {"prelu", "prelu", "input slope"},
    {"quantize_linear", "quantizeLinear", "input scale zero_point"},
    {"reciprocal", "reciprocal", "x=input"},
    {"reduce_l1", "reduceL1", "input axes keep_dimensions"},
    {"reduce_l2", "reduceL2", "input axes keep_dimensions"},
    {"reduce_log_sum", "reduceLogSum", "input axes keep_dimensions"},
    {"reduce_log_sum_exp", "reduceLogSumExp", "input axes keep_dimensions"},
    {"reduce_max", "reduceMax", "input axes keep_dimensions"},
    {"reduce_mean", "reduceMean", "input axes keep_dimensions"},
    {"reduce_min", "reduceMin", "input axes keep_dimensions"},
    {"reduce_product", "reduceProduct", "input axes keep_dimensions"},
    {"reduce_sum", "reduceSum", "input axes keep_dimensions"},
    {"reduce_sum_square", "reduceSumSquare", "input axes keep_dimensions"},
    {"relu", "relu", "x=input"},
    {"resample2d", "resample2d", "input mode scales sizes axes"},
    {"reshape", "reshape", "x=input new_shape"},
    {"reverse", "reverse", "input axes"},
    {"round_even", "roundEven", "x=input"},
    {"scatter_elements", "scatterElements", "input indices updates axis"},
    {"scatter_nd", "scatterND", "input indices updates"},
    {"sigmoid", "sigmoid", "x=input"},
    {"sign", "sign", "x=input"},
    {"sin", "sin", "x=input"},
    {"slice", "slice", "input starts sizes strides"},
    {"softmax", "softmax", "x=input axis"},
    {"softplus", "softplus", "input"},
    {"softsign", "softsign", "input"},
    {"split", "split", "input splits axis"},
    {"sqrt", "sqrt", "x=input"},
    {"sub", "sub", "a b"},
    {"tan", "tan", "x=input"},
    {"tanh", "tanh", "x=input"},
    {"tile", "tile", "input repetitions"},
    {"transpose", "transpose", "input permutation"},
    {"triangular", "triangular", "input upper diagonal"},
    {"where", "where", "condition true_value false_value"},
};

/// Options whose name in graph files is not the specification's; the first of a parameter is written.
struct FileSpelling {
    std::string_view row, file, parameter;
};
constexpr FileSpelling kFileSpellings[] = {{"cast", "to", "data_type"}, {"cast", "type", "data_type"}};

std::string python_text(const AttrValue& value) {
    if (const auto* b = std::get_if<bool>(&value)) return *b ? "True" : "False";
    if (std::holds_alternative<std::monostate>(value)) return "None";
    if (const auto* t = std::get_if<DType>(&value)) return fmt::format("\"{}\"", data_type_name(*t));
    return text_of(value);
}

std::string annotation(const Field& field) {
    static constexpr std::string_view kTypes[] = {"bool", "int",           "int | float",     "float",
                                                  "str",  "Sequence[int]", "Sequence[float]", "Sequence[int]",
                                                  "str",  "MLGraph"};
    std::string text(kTypes[static_cast<int>(field.kind)]);
    if (std::holds_alternative<std::monostate>(field.default_value) && !field.required) text += " | None";
    return text;
}

MLParameter operand_parameter(const OpDef& op, std::size_t i, std::string name) {
    const OperandRule& rule = op.operands[i];
    const bool list = op.variadic && i + 1 == op.operands.size();
    return {.name = std::move(name),
            .target = std::string(rule.name),
            .is_operand = true,
            .is_list = list,
            .required = !rule.optional,
            .default_text = "None",
            .type_text = list            ? "Sequence[MLOperand]"
                         : rule.optional ? "MLOperand | None"
                                         : "MLOperand",
            .doc = fmt::format("operand of {}", data_type_names(rule.dtypes))};
}

MLParameter parameter(const OpDef& op, std::string_view word) {
    const std::size_t equals = word.find('=');
    const std::string name(word.substr(0, equals));
    const std::string_view target = equals == std::string_view::npos ? word : word.substr(equals + 1);
    for (std::size_t i = 0; i < op.operands.size(); ++i)
        if (op.operands[i].name == target) return operand_parameter(op, i, name);
    for (const Field& field : op.fields)
        if (field.name == target)
            return {.name = name,
                    .target = std::string(target),
                    .required = field.required,
                    .is_data_type = field.kind == AttrKind::dtype,
                    .default_text = python_text(field.default_value),
                    .type_text = annotation(field),
                    .doc = std::string(field.doc)};
    return {};  // a row may name an option that the op does not have yet; tests list those
}

MLSignature signature(const OpRow& row, const OpDef& op) {
    MLSignature s{.name = std::string(row.name),
                  .idl = std::string(row.idl),
                  .summary = std::string(op.summary),
                  .returns_list = op.outputs != 1};
    std::string_view rest = row.parameters;
    while (!rest.empty()) {
        const std::size_t space = rest.find(' ');
        if (MLParameter p = parameter(op, rest.substr(0, space)); !p.name.empty())
            s.parameters.push_back(std::move(p));
        rest = space == std::string_view::npos ? std::string_view{} : rest.substr(space + 1);
    }
    // A parameter in front of a required one must be given, too.
    for (std::size_t i = s.parameters.size(); i-- > 1;)
        s.parameters[i - 1].required = s.parameters[i - 1].required || s.parameters[i].required;
    return s;
}

MLTensorLimits limits_of(DTypeSet types, int min_rank, int max_rank) {
    MLTensorLimits limits{.minRank = min_rank, .maxRank = max_rank};
    for (int i = 0; i < kDTypeCount; ++i)
        if (const auto t = static_cast<DType>(i); types.has(t) && kWebnnTypes.has(t))
            limits.dataTypes.push_back(t);
    return limits;
}

/// Result dtypes, found by inferring the op's samples with every dtype that its first operand may have.
DTypeSet output_types(const OpDef& op) {
    DTypeSet found;
    const std::vector<Sample> samples = op.samples ? op.samples() : std::vector<Sample>{};
    for (const Sample& sample : samples) {
        auto attrs = op.make_attrs(sample.attrs);
        if (!attrs.ok()) continue;
        for (int d = 0; d < kDTypeCount; ++d) {
            std::vector<TensorType> types;
            std::vector<const TensorType*> operands;
            for (std::size_t i = 0; i < sample.operands.size(); ++i) {
                types.push_back(sample.operands[i].type);
                const OperandRule& rule = op.rule(static_cast<int>(i));
                if (types[i].dtype == types[0].dtype && (i == 0 || rule.same_dtype_as == 0 || op.variadic))
                    types[i].dtype = static_cast<DType>(d);
            }
            for (std::size_t i = 0; i < types.size(); ++i)
                operands.push_back(sample.operands[i].absent ? nullptr : &types[i]);
            auto out = check_and_infer(op, Operands(operands), attrs.value().get());
            if (out.ok()) found = found | DTypeSet{out.value()[0].dtype};
        }
    }
    return found;
}

}  // namespace

std::string data_type_names(DTypeSet types) {
    std::string text;
    for (DType type : limits_of(types, 0, 0).dataTypes)
        text.append(text.empty() ? "" : ", ").append(data_type_name(type));
    return text;
}

const std::vector<OpRow>& op_rows() {
    static const std::vector<OpRow> rows = [] {
        std::vector<OpRow> list;
        for (const OpRow& row : kRows)
            if (find_op(row.op.empty() ? row.name : row.op)) list.push_back(row);
        return list;
    }();
    return rows;
}

const OpDef* find_extension(std::string_view name) {
    return name == "accumulate" || name == "assign" ? find_op(name) : nullptr;
}

RowAndOp find_row(std::string_view name) {
    static const auto by_name = [] {
        std::unordered_map<std::string_view, const OpRow*> map;
        for (const OpRow& row : op_rows()) {
            map.emplace(row.name, &row);
            map.emplace(row.idl, &row);
        }
        return map;
    }();
    const auto it = by_name.find(name);
    if (it == by_name.end()) return {};
    return {it->second, find_op(it->second->op.empty() ? it->second->name : it->second->op)};
}

RowAndOp find_row(const OpDef& op) {
    static const auto by_op = [] {
        std::unordered_map<const OpDef*, RowAndOp> map;
        for (const OpRow& row : op_rows()) {
            const RowAndOp found = find_row(row.name);
            map.emplace(found.op, found);
        }
        return map;
    }();
    const auto it = by_op.find(&op);
    return it == by_op.end() ? RowAndOp{} : it->second;
}

const MLSignature& signature_of(const OpRow& row) {
    return signatures()[static_cast<std::size_t>(&row - op_rows().data())];
}

std::string option_name(const RowAndOp& row, std::string_view file_name) {
    std::string name = snake_case(file_name);
    for (const FileSpelling& s : kFileSpellings)
        if (row.row->name == s.row && name == s.file) return std::string(s.parameter);
    return name;
}

std::string file_option_name(const RowAndOp& row, std::string_view parameter) {
    for (const FileSpelling& s : kFileSpellings)
        if (row.row->name == s.row && parameter == s.parameter) return std::string(s.file);
    return camel_case(parameter);
}

const std::vector<MLSignature>& signatures() {
    static const std::vector<MLSignature> list = [] {
        std::vector<MLSignature> made;
        for (const OpRow& row : op_rows()) made.push_back(signature(row, *find_row(row.name).op));
        return made;
    }();
    return list;
}

std::string camel_case(std::string_view snake) {
    std::string text;
    bool upper = false;
    for (char c : snake) {
        if (c == '_') {
            upper = true;
            continue;
        }
        text += upper ? static_cast<char>(std::toupper(static_cast<unsigned char>(c))) : c;
        upper = false;
    }
    return text;
}

const MLOpSupportLimits& support_limits() {
    static const MLOpSupportLimits limits = [] {
        MLOpSupportLimits l;
        l.maxTensorByteLength = static_cast<std::size_t>(PTRDIFF_MAX);
        l.input = l.constant = l.output = limits_of(kWebnnTypes, 0, kMaxRank);
        for (const OpRow& row : op_rows()) {
            auto& operands = l.operators[std::string(row.idl)];
            const OpDef& op = *find_row(row.name).op;
            for (const OperandRule& rule : op.operands)
                operands[camel_case(rule.name)] = limits_of(rule.dtypes, rule.min_rank, rule.max_rank);
            operands["output"] = limits_of(output_types(op), 0, kMaxRank);
        }
        return l;
    }();
    return limits;
}

}  // namespace headrace::webnn
