#pragma once
#include <string_view>

#include "../values.h"
#include "headrace/language_model.h"

/// What language models take and give, as JavaScript has it.
namespace headrace::node::llm {

/// {prompt | messages | tokens, parameters} as JSON.
Request request_of(std::string_view json);

napi_value to_value(napi_env env, const Reply& reply);
napi_value to_value(napi_env env, const std::vector<Message>& messages);
napi_value to_value(napi_env env, const ModelInfo& info);
napi_value to_value(napi_env env, const LanguageModelStatistics& statistics);
napi_value to_value(napi_env env, const std::vector<Warning>& warnings);
napi_value to_value(napi_env env, const std::vector<float>& numbers);         // Float32Array
napi_value to_value(napi_env env, const std::vector<std::int32_t>& numbers);  // Int32Array

}  // namespace headrace::node::llm
