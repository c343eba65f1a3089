#include "option.h"

#include <algorithm>

namespace headrace::node {
namespace {

/// What an MLDimension of JavaScript's may be at most.
constexpr std::int64_t kMostExtent = 0x7fffffff;

/// A number that keeps the 64 bits of a BigInt.
Option to_number(napi_env env, napi_value value) {
    napi_valuetype type{};
    check(napi_typeof(env, value, &type));
    if (type != napi_bigint) return to_double(env, value);
    std::int64_t number = 0;
    std::uint64_t unsigned_number = 0;
    bool lossless = false;
    check(napi_get_value_bigint_int64(env, value, &number, &lossless));
    if (lossless) return number;
    check(napi_get_value_bigint_uint64(env, value, &unsigned_number, &lossless));
    if (lossless) return unsigned_number;
    throw Exception(Code::invalid_argument, "a BigInt does not fit into 64 bits");
}

webnn::MLDimension to_dimension(napi_env env, napi_value value) {
    napi_valuetype type{};
    check(napi_typeof(env, value, &type));
    if (type != napi_object) return to_integer(env, value);
    return webnn::MLDimension(to_text(env, property(env, value, "name")),
                              to_integer(env, property(env, value, "maxSize")));
}

MemoryUse to_memory_use(const std::string& name) {
    if (name == "normal") return MemoryUse::normal;
    if (name == "low") return MemoryUse::low;
    throw Exception(Code::invalid_argument, "memory '" + name + "' is none of normal, low");
}

}  // namespace

std::vector<webnn::MLDimension> to_dimensions(napi_env env, napi_value value) {
    std::vector<webnn::MLDimension> shape;
    for (const napi_value item : to_list(env, value)) shape.push_back(to_dimension(env, item));
    return shape;
}

webnn::MLContextOptions to_context_options(napi_env env, napi_value given) {
    const auto set_text = [&](const char* name, std::string& to) {
        if (const auto value = member(env, given, name)) to = to_text(env, *value);
    };
    const auto set_integer = [&](const char* name, int& to) {
        if (const auto value = member(env, given, name)) to = static_cast<int>(to_integer(env, *value));
    };
    webnn::MLContextOptions options;
    if (const auto value = member(env, given, "accelerated")) options.accelerated = to_boolean(env, *value);
    set_text("powerPreference", options.powerPreference);
    set_text("device", options.device);
    set_text("deviceType", options.deviceType);
    set_text("weights", options.weights);
    set_text("packedCache", options.packedCache);
    set_text("precision", options.precision);
    set_integer("hostTimeout", options.hostTimeoutMs);
    set_integer("threads", options.threads);
    return options;
}

CompileOptions LoadOptions::compiling() const {
    CompileOptions options = webnn::compileOptions(context);
    if (round_activations) options.round_activations = *round_activations;
    options.memory = memory;
    options.tuning = tuning;
    if (cache_bytes) options.cache_bytes = *cache_bytes;
    return options;
}

LoadOptions to_load_options(napi_env env, napi_value given) {
    LoadOptions options{.context = to_context_options(env, given)};
    if (const auto value = member(env, given, "roundActivations"))
        options.round_activations = to_boolean(env, *value);
    if (const auto value = member(env, given, "memory")) options.memory = to_memory_use(to_text(env, *value));
    if (const auto value = member(env, given, "tuning")) options.tuning = to_text(env, *value);
    if (const auto value = member(env, given, "cacheBytes"))
        options.cache_bytes = static_cast<std::size_t>(to_integer(env, *value));
    return options;
}

napi_value dimension_list(napi_env env, const std::vector<webnn::MLDimension>& shape) {
    std::vector<napi_value> items;
    for (const webnn::MLDimension& dimension : shape) {
        if (const auto extent = dimension.number()) {
            items.push_back(number(env, static_cast<double>(*extent)));
            continue;
        }
        const auto most = std::min(dimension.most(), kMostExtent);
        items.push_back(Record(env).add("name", dimension.str()).add("maxSize", most));
    }
    return list(env, items);
}

Option to_option(napi_env env, std::string_view kind, napi_value value) {
    if (kind == "boolean") return to_boolean(env, value);
    if (kind == "integer") return to_integer(env, value);
    if (kind == "number") return to_number(env, value);
    if (kind == "real") return to_double(env, value);
    if (kind == "text") return to_text(env, value);
    if (kind == "integers") return to_integers(env, value);
    if (kind == "dimensions") return to_dimensions(env, value);
    if (kind == "data_type") return webnn::parse_data_type(to_text(env, value));
    std::vector<double> reals;
    for (const napi_value item : to_list(env, value)) reals.push_back(to_double(env, item));
    return reals;
}

}  // namespace headrace::node
