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
/// Row and op by snake_case name, extensions included; null when unknown.
struct RowAndOp {
    const OpRow* row = nullptr;
    const OpDef* op = nullptr;
};
RowAndOp find_row(std::string_view name);

/// The dtypes of the specification; the catalog knows more.
inline constexpr DTypeSet kWebnnTypes{DType::f32, DType::f16, DType::i32, DType::u32, DType::i64,
                                      DType::u64, DType::i8,  DType::u8,  DType::i4,  DType::u4};

const MLOpSupportLimits& support_limits();

}  // namespace headrace::webnn
