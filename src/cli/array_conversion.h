#pragma once
#include <string_view>

#include "cli/npy.h"

namespace headrace::cli {

/// The array with the elements of another dtype, by Python's rule: floats round, integers and bool take what
/// they hold. `what` names it in errors: a number that is lost, and 4-bit elements, which files have none of.
Result<Array> with_dtype(Array array, DType wanted, std::string_view what);

}  // namespace headrace::cli
