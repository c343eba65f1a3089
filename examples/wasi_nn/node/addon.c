/* libwasi_nn_llamacpp.so for Node: imports.NAME(memory, i32, ...) makes a guest's call on its ArrayBuffer. */
#include <node_api.h>

#include "../guest_calls.h"

static napi_value call_import(napi_env env, napi_callback_info info) {
    napi_value values[headrace_guest_most_parameters + 1], result = NULL;
    size_t count = headrace_guest_most_parameters + 1;
    void *data = NULL, *memory = NULL;
    size_t size = 0;
    uint32_t parameters[headrace_guest_most_parameters];
    napi_get_cb_info(env, info, &count, values, NULL, &data);
    const headrace_guest_import* called = data;
    bool fine = count == called->parameters + 1 &&
                napi_get_arraybuffer_info(env, values[0], &memory, &size) == napi_ok;
    for (uint32_t i = 0; fine && i < called->parameters; ++i)
        fine = napi_get_value_uint32(env, values[i + 1], &parameters[i]) == napi_ok;
    if (!fine || !nn.backend) {
        napi_throw_type_error(env, NULL, "open(library, config) first; then (memory, i32, ...)");
        return NULL;
    }
    const uint32_t error = nn.headrace_guest_call(nn.backend, number_of(called), memory, size, parameters);
    napi_create_uint32(env, error, &result);
    return result;
}

/* open(library, config): config is JSON. */
static napi_value open_library(napi_env env, napi_callback_info info) {
    static char path[4096], config[1 << 16];
    napi_value values[2];
    size_t count = 2, size = 0;
    napi_get_cb_info(env, info, &count, values, NULL, NULL);
    if (count != 2 || napi_get_value_string_utf8(env, values[0], path, sizeof path, &size) != napi_ok ||
        napi_get_value_string_utf8(env, values[1], config, sizeof config, &size) != napi_ok ||
        size + 1 == sizeof config) {
        napi_throw_type_error(env, NULL, "open takes a library's path and a configuration as JSON");
        return NULL;
    }
    const char* problem = open_backend(path, config, (uint32_t)size);
    if (problem) napi_throw_error(env, NULL, problem);
    return NULL;
}

static napi_value close_library(napi_env env, napi_callback_info info) {
    (void)env, (void)info;
    if (nn.backend) nn.deinit_backend(nn.backend);
    nn.backend = NULL;
    return NULL;
}

static void define(napi_env env, napi_value exports, const char* name, napi_callback function, void* data) {
    napi_value value;
    napi_create_function(env, name, NAPI_AUTO_LENGTH, function, data, &value);
    napi_set_named_property(env, exports, name, value);
}

NAPI_MODULE_INIT() {
    define(env, exports, "open", open_library, NULL);
    define(env, exports, "close", close_library, NULL);
    napi_value calls;
    napi_create_object(env, &calls);
    for (size_t i = 0; i < import_count; ++i)
        define(env, calls, imports[i].name, call_import, (void*)&imports[i]);
    napi_set_named_property(env, exports, "imports", calls);
    return exports;
}
