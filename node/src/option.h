#pragma once
#include "headrace/webnn.h"
#include "values.h"

namespace headrace::node {

/// `kind` is one of boolean, integer, number, real, text, integers, reals, data_type, dimensions.
Option to_option(napi_env env, std::string_view kind, napi_value value);
/// Numbers, and objects {name, maxSize} for extents that a run decides.
std::vector<webnn::MLDimension> to_dimensions(napi_env env, napi_value value);
/// What the object does not have is as C++ has it.
webnn::MLContextOptions to_context_options(napi_env env, napi_value given);
napi_value dimension_list(napi_env env, const std::vector<webnn::MLDimension>& shape);

}  // namespace headrace::node
