#pragma once
#include <string_view>
#include <vector>

#include "headrace/webnn.h"
#include "ir/op_def.h"

namespace headrace::webnn {

/// One operator of the door: which op of the catalog it is, and the order of its parameters.
struct OpRow {
    std::string_view name;  ///< snake_case; also the catalog's name unless `op` says otherwise
    std::string_view idl;   ///< camelCase
    /// Parameters in positional order: an operand's or attribute's name, or "door_name=catalog_name".
    std::string_view parameters;
    std::string_view op = {};
};

/// The rows whose op is in the catalog.
const std::vector<OpRow>& op_rows();
/// The op of a method that the specification lacks and the builder has: assign, accumulate; else null.
const OpDef* find_extension(std::string_view name);
/// Row and op by name in either spelling; null when unknown.
struct RowAndOp {
    const OpRow* row = nullptr;
    const OpDef* op = nullptr;
};
RowAndOp find_row(std::string_view name);
RowAndOp find_row(const OpDef& op);
const MLSignature& signature_of(const OpRow& row);

/// The parameter that a graph file's option names, in snake_case, and what files call a parameter. Both are
/// the specification's names but for those that the WebNN graph tools spell otherwise.
std::string option_name(const RowAndOp& row, std::string_view file_name);
std::string file_option_name(const RowAndOp& row, std::string_view parameter);

/// "trueValue" of "true_value": the specification's spelling.
std::string camel_case(std::string_view snake);

/// The dtypes of the specification; the catalog knows more.
inline constexpr DTypeSet kWebnnTypes{DType::f32, DType::f16, DType::i32, DType::u32, DType::i64,
                                      DType::u64, DType::i8,  DType::u8,  DType::i4,  DType::u4};

/// "float32, float16": those of a set that the specification has.
std::string data_type_names(DTypeSet types);

const MLOpSupportLimits& support_limits();

}  // namespace headrace::webnn
