#include "values.h"

#include <algorithm>

namespace headrace::node {

void check(napi_status status) {
    if (status != napi_ok) throw PendingException{};
}

napi_value text(napi_env env, std::string_view value) {
    napi_value result;
    check(napi_create_string_utf8(env, value.data(), value.size(), &result));
    return result;
}

napi_value number(napi_env env, double value) {
    napi_value result;
    check(napi_create_double(env, value, &result));
    return result;
}

napi_value boolean(napi_env env, bool value) {
    napi_value result;
    check(napi_get_boolean(env, value, &result));
    return result;
}

napi_value undefined(napi_env env) {
    napi_value result;
    check(napi_get_undefined(env, &result));
    return result;
}

napi_value list(napi_env env, std::span<const napi_value> items) {
    napi_value result;
    check(napi_create_array_with_length(env, items.size(), &result));
    for (std::size_t i = 0; i < items.size(); ++i)
        check(napi_set_element(env, result, static_cast<std::uint32_t>(i), items[i]));
    return result;
}

void set(napi_env env, napi_value object, const char* name, napi_value value) {
    check(napi_set_named_property(env, object, name, value));
}

napi_value property(napi_env env, napi_value object, const char* name) {
    napi_value value;
    check(napi_get_named_property(env, object, name, &value));
    return value;
}

std::optional<napi_value> member(napi_env env, napi_value object, const char* name) {
    const napi_value value = property(env, object, name);
    napi_valuetype type{};
    check(napi_typeof(env, value, &type));
    return type == napi_undefined ? std::nullopt : std::optional(value);
}

napi_value shape_list(napi_env env, std::span<const std::int64_t> shape) {
    std::vector<napi_value> items;
    for (const std::int64_t extent : shape) items.push_back(number(env, static_cast<double>(extent)));
    return list(env, items);
}

napi_value error_value(napi_env env, Code code, std::string_view message) {
    napi_value result;
    check(napi_create_error(env, text(env, to_string(code)), text(env, message), &result));
    return result;
}

std::string to_text(napi_env env, napi_value value) {
    std::size_t size = 0;
    check(napi_get_value_string_utf8(env, value, nullptr, 0, &size));
    std::string result(size, '\0');
    check(napi_get_value_string_utf8(env, value, result.data(), size + 1, &size));
    return result;
}

std::int64_t to_integer(napi_env env, napi_value value) {
    std::int64_t result = 0;
    check(napi_get_value_int64(env, value, &result));
    return result;
}

double to_double(napi_env env, napi_value value) {
    double result = 0;
    check(napi_get_value_double(env, value, &result));
    return result;
}

bool to_boolean(napi_env env, napi_value value) {
    bool result = false;
    check(napi_get_value_bool(env, value, &result));
    return result;
}

std::vector<napi_value> to_list(napi_env env, napi_value value) {
    std::uint32_t length = 0;
    check(napi_get_array_length(env, value, &length));
    std::vector<napi_value> items(length);
    for (std::uint32_t i = 0; i < length; ++i) check(napi_get_element(env, value, i, &items[i]));
    return items;
}

std::vector<std::int64_t> to_integers(napi_env env, napi_value value) {
    std::vector<std::int64_t> result;
    for (const napi_value item : to_list(env, value)) result.push_back(to_integer(env, item));
    return result;
}

std::vector<std::string> to_texts(napi_env env, napi_value value) {
    std::vector<std::string> result;
    for (const napi_value item : to_list(env, value)) result.push_back(to_text(env, item));
    return result;
}

std::span<std::byte> to_bytes(napi_env env, napi_value value) {
    napi_typedarray_type type{};
    std::size_t length = 0;
    void* data = nullptr;
    check(napi_get_typedarray_info(env, value, &type, &length, &data, nullptr, nullptr));
    if (type != napi_uint8_array) throw Exception(Code::invalid_argument, "bytes come in a Uint8Array");
    return {static_cast<std::byte*>(data), length};
}

Handle& to_handle(napi_env env, napi_value value, Handle::Kind kind) {
    void* data = nullptr;
    check(napi_get_value_external(env, value, &data));
    auto* handle = static_cast<Handle*>(data);
    if (handle->kind != kind) throw Exception(Code::invalid_argument, "a handle is of another kind");
    return *handle;
}

void hold(napi_env env, Handle& handle, std::size_t bytes) {
    const auto change = static_cast<std::int64_t>(bytes) - static_cast<std::int64_t>(handle.held_);
    handle.held_ = bytes;
    std::int64_t total = 0;
    if (change != 0) napi_adjust_external_memory(env, change, &total);
}

napi_value external(napi_env env, Handle* handle, std::size_t bytes) {
    std::unique_ptr<Handle> owned(handle);
    const auto release = [](napi_env where, void* data, void*) {
        const std::unique_ptr<Handle> freed(static_cast<Handle*>(data));
        hold(where, *freed, 0);
    };
    napi_value result;
    check(napi_create_external(env, handle, release, nullptr, &result));
    hold(env, *owned.release(), bytes);
    return result;
}

Call::Call(napi_env env, napi_callback_info info) : env_(env) {
    std::size_t count = std::size(arguments_);
    check(napi_get_cb_info(env, info, &count, arguments_, nullptr, nullptr));
}

void throw_unless_pending(napi_env env) {
    bool is_pending = false;
    if (napi_is_exception_pending(env, &is_pending) == napi_ok && !is_pending)
        throw_error(env, Code::invalid_argument, "an argument has a type that the addon does not take");
}

void throw_error(napi_env env, Code code, std::string_view message) {
    try {
        napi_throw(env, error_value(env, code, message));
    } catch (const PendingException&) {  // the environment ends: nobody is there to catch
    }
}

}  // namespace headrace::node
