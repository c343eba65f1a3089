/* libwasi_nn_llamacpp.so for Node: open(library, config) gives a guest's { imports, close }, and
 * imports.NAME(memory, i32, ...) makes a call of the guest on its ArrayBuffer. */
#include <node_api.h>
#include <stdlib.h>

#include "../guest_calls.h"

/* A guest's backend, and what its functions are called with. It lives as long as one of them. */
typedef struct guest guest;
typedef struct {
    guest* of;
    uint32_t number;
} guest_function;
struct guest {
    guest_backend nn;
    size_t uses;
    guest_function functions[import_count];
};

static void give_up(napi_env env, void* data, void* hint) {
    (void)env, (void)hint;
    guest* left = data;
    if (--left->uses) return;
    close_backend(&left->nn);
    free(left);
}

static napi_value call_import(napi_env env, napi_callback_info info) {
    napi_value values[headrace_guest_most_parameters + 1], result = NULL;
    size_t count = headrace_guest_most_parameters + 1;
    void *data = NULL, *memory = NULL;
    size_t size = 0;
    uint32_t parameters[headrace_guest_most_parameters];
    napi_get_cb_info(env, info, &count, values, NULL, &data);
    const guest_function* called = data;
    guest_backend* nn = &called->of->nn;
    const uint32_t wanted = imports[called->number].parameters;
    bool fine = count == wanted + 1 && napi_get_arraybuffer_info(env, values[0], &memory, &size) == napi_ok;
    for (uint32_t i = 0; fine && i < wanted; ++i)
        fine = napi_get_value_uint32(env, values[i + 1], &parameters[i]) == napi_ok;
    if (!fine || !nn->backend) {
        napi_throw_type_error(env, NULL, "(memory, i32, ...) of a guest that is not closed");
        return NULL;
    }
    const uint32_t error = nn->headrace_guest_call(nn->backend, called->number, memory, size, parameters);
    napi_create_uint32(env, error, &result);
    return result;
}

static napi_value close_guest(napi_env env, napi_callback_info info) {
    void* data = NULL;
    napi_get_cb_info(env, info, NULL, NULL, NULL, &data);
    close_backend(&((guest*)data)->nn);
    return NULL;
}

/* A function that keeps the guest. */
static void add_function(napi_env env, napi_value object, const char* name, napi_callback function,
                         void* data, guest* of) {
    napi_value value;
    napi_create_function(env, name, NAPI_AUTO_LENGTH, function, data, &value);
    if (napi_add_finalizer(env, value, of, give_up, NULL, NULL) == napi_ok) ++of->uses;
    napi_set_named_property(env, object, name, value);
}

static napi_value open_guest(napi_env env, napi_callback_info info) {
    char path[4096];
    napi_value values[2], opened, calls;
    size_t count = 2, size = 0, config_size = 0;
    napi_get_cb_info(env, info, &count, values, NULL, NULL);
    char* config = NULL;
    guest* made = calloc(1, sizeof *made);
    if (count == 2 && napi_get_value_string_utf8(env, values[0], path, sizeof path, &size) == napi_ok &&
        napi_get_value_string_utf8(env, values[1], NULL, 0, &config_size) == napi_ok)
        config = malloc(config_size + 1);
    if (!made || !config) {
        free(made);
        napi_throw_type_error(env, NULL, "open takes a library's path and a configuration as JSON");
        return NULL;
    }
    napi_get_value_string_utf8(env, values[1], config, config_size + 1, &config_size);
    const char* problem = open_backend(&made->nn, path, config, (uint32_t)config_size);
    free(config);
    if (problem) {
        free(made);
        napi_throw_error(env, NULL, problem);
        return NULL;
    }
    made->uses = 1; /* until all functions are there */
    napi_create_object(env, &opened);
    napi_create_object(env, &calls);
    for (uint32_t i = 0; i < import_count; ++i) {
        made->functions[i] = (guest_function){made, i};
        add_function(env, calls, imports[i].name, call_import, &made->functions[i], made);
    }
    napi_set_named_property(env, opened, "imports", calls);
    add_function(env, opened, "close", close_guest, made, made);
    give_up(env, made, NULL);
    return opened;
}

NAPI_MODULE_INIT() {
    napi_value value;
    napi_create_function(env, "open", NAPI_AUTO_LENGTH, open_guest, NULL, &value);
    napi_set_named_property(env, exports, "open", value);
    return exports;
}
