#pragma once
#include <optional>
#include <string>
#include <vector>

#include "headrace/webnn.h"
#include "values.h"

namespace headrace::node {

/// `kind` is one of boolean, integer, number, real, text, integers, reals, data_type, dimensions.
Option to_option(napi_env env, std::string_view kind, napi_value value);
/// Numbers, and objects {name, maxSize} for extents that a run decides.
std::vector<webnn::MLDimension> to_dimensions(napi_env env, napi_value value);
/// What the object does not have is as C++ has it.
webnn::MLContextOptions to_context_options(napi_env env, napi_value given);

/// What load() compiles a model with: a context's options, and those of CompileOptions that it has not.
struct LoadOptions {
    webnn::MLContextOptions context;
    std::optional<bool> round_activations;
    MemoryUse memory = MemoryUse::normal;
    std::string tuning;
    std::optional<std::size_t> cache_bytes;

    /// Throws for bad ones, and for a device that is not there.
    CompileOptions compiling() const;
};
LoadOptions to_load_options(napi_env env, napi_value given);
/// The reverse of to_dimensions().
napi_value dimension_list(napi_env env, const std::vector<webnn::MLDimension>& shape);

}  // namespace headrace::node
