/* The functions of libwasi_nn_llamacpp.so as calls of a guest, for hosts in C: each takes the guest's memory
 * and the i32 arguments of its call. Memory is used where it is; a pointer outside of it is invalid_argument.
 */
#ifndef HEADRACE_GUEST_CALLS_H
#define HEADRACE_GUEST_CALLS_H

#include <dlfcn.h>
#include <headrace/wasi_nn_llamacpp.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

static struct {
    void* backend;
    __typeof__(&init_backend_with_config) init_backend_with_config;
    __typeof__(&deinit_backend) deinit_backend;
    __typeof__(&load) load;
    __typeof__(&load_by_name_with_config) load_by_name_with_config;
    __typeof__(&unload) unload;
    __typeof__(&init_execution_context) init_execution_context;
    __typeof__(&headrace_init_execution_context) headrace_init_execution_context;
    __typeof__(&close_execution_context) close_execution_context;
    __typeof__(&set_input) set_input;
    __typeof__(&compute) compute;
    __typeof__(&get_output) get_output;
    __typeof__(&compute_single) compute_single;
    __typeof__(&get_output_single) get_output_single;
    __typeof__(&fini_single) fini_single;
} nn;

/* One call of a guest. */
typedef struct {
    uint8_t* memory;
    size_t size;
    uint32_t a[5];
} guest_call;

static bool inside(const guest_call* call, uint32_t pointer, uint64_t size) {
    return pointer + size <= call->size;
}

/* Guests need not align their words. */
static bool read_words(const guest_call* call, uint32_t pointer, uint32_t* words, uint32_t count) {
    if (!inside(call, pointer, 4ull * count)) return false;
    memcpy(words, call->memory + pointer, 4ull * count);
    return true;
}

static wasi_nn_error give(const guest_call* call, uint32_t pointer, wasi_nn_error error, uint32_t value) {
    if (error == success) memcpy(call->memory + pointer, &value, 4);
    return error;
}

static wasi_nn_error call_load(const guest_call* call) {
    const uint32_t* a = call->a;
    uint32_t part[2], graph = 0; /* the model's bytes, and how many there are */
    if (!read_words(call, a[0], part, 2) || !inside(call, part[0], part[1]) || !inside(call, a[4], 4))
        return invalid_argument;
    graph_builder builder = {call->memory + part[0], part[1]};
    graph_builder_array builders = {&builder, a[1]}; /* the library reads one, and refuses several */
    const wasi_nn_error error = nn.load(nn.backend, &builders, a[2], a[3], &graph);
    return give(call, a[4], error, graph);
}

static wasi_nn_error load_named(const guest_call* call, const uint32_t* config, uint32_t result) {
    const uint32_t* name = call->a;
    uint32_t graph = 0;
    if (!inside(call, name[0], name[1]) || !inside(call, config[0], config[1]) || !inside(call, result, 4))
        return invalid_argument;
    const wasi_nn_error error =
        nn.load_by_name_with_config(nn.backend, (const char*)call->memory + name[0], name[1],
                                    (const char*)call->memory + config[0], config[1], &graph);
    return give(call, result, error, graph);
}

static wasi_nn_error call_load_by_name(const guest_call* call) {
    const uint32_t no_config[2] = {0, 0};
    return load_named(call, no_config, call->a[2]);
}

static wasi_nn_error call_load_by_name_with_config(const guest_call* call) {
    return load_named(call, call->a + 2, call->a[4]);
}

static wasi_nn_error call_unload(const guest_call* call) { return nn.unload(nn.backend, call->a[0]); }

static wasi_nn_error call_init_execution_context(const guest_call* call) {
    uint32_t context = 0;
    if (!inside(call, call->a[1], 4)) return invalid_argument;
    const wasi_nn_error error = nn.init_execution_context(nn.backend, call->a[0], &context);
    return give(call, call->a[1], error, context);
}

static wasi_nn_error call_init_execution_context_with_session(const guest_call* call) {
    const uint32_t* a = call->a;
    char name[256];
    uint32_t context = 0;
    if (!inside(call, a[1], a[2]) || a[2] >= sizeof name || !inside(call, a[3], 4)) return invalid_argument;
    memcpy(name, call->memory + a[1], a[2]);
    name[a[2]] = 0;
    const wasi_nn_error error = nn.headrace_init_execution_context(nn.backend, a[0], name, &context);
    return give(call, a[3], error, context);
}

static wasi_nn_error call_close_execution_context(const guest_call* call) {
    return nn.close_execution_context(nn.backend, call->a[0]);
}

static wasi_nn_error call_set_input(const guest_call* call) {
    uint32_t words[5]; /* dimensions, their number, the type, data, its size */
    if (!read_words(call, call->a[2], words, 5) || !inside(call, words[0], 4ull * words[1]) ||
        !inside(call, words[3], words[4]))
        return invalid_argument;
    tensor_dimensions dimensions = {(uint32_t*)(void*)(call->memory + words[0]), words[1]};
    tensor input = {&dimensions, (uint8_t)words[2], {call->memory + words[3], words[4]}};
    return nn.set_input(nn.backend, call->a[0], call->a[1], &input);
}

static wasi_nn_error call_compute(const guest_call* call) { return nn.compute(nn.backend, call->a[0]); }

static wasi_nn_error call_compute_single(const guest_call* call) {
    return nn.compute_single(nn.backend, call->a[0]);
}

static wasi_nn_error call_fini_single(const guest_call* call) {
    return nn.fini_single(nn.backend, call->a[0]);
}

static wasi_nn_error output(const guest_call* call, __typeof__(&get_output) function) {
    const uint32_t *a = call->a, pointer = a[4];
    uint32_t size = 0;
    if (!inside(call, a[2], a[3]) || !inside(call, pointer, 4)) return invalid_argument;
    tensor_data buffer = {call->memory + a[2], a[3]};
    const wasi_nn_error error = function(nn.backend, a[0], a[1], &buffer, &size);
    memcpy(call->memory + pointer, &size, 4); /* what is needed, where it was too large */
    return error;
}

static wasi_nn_error call_get_output(const guest_call* call) { return output(call, nn.get_output); }

static wasi_nn_error call_get_output_single(const guest_call* call) {
    return output(call, nn.get_output_single);
}

typedef struct {
    const char* name;
    uint32_t parameters;
    wasi_nn_error (*call)(const guest_call*);
} import;
static const import imports[] = {
    {"load", 5, call_load},
    {"load_by_name", 3, call_load_by_name},
    {"load_by_name_with_config", 5, call_load_by_name_with_config},
    {"unload", 1, call_unload},
    {"init_execution_context", 2, call_init_execution_context},
    {"init_execution_context_with_session", 4, call_init_execution_context_with_session},
    {"close_execution_context", 1, call_close_execution_context},
    {"set_input", 3, call_set_input},
    {"compute", 1, call_compute},
    {"get_output", 5, call_get_output},
    {"compute_single", 1, call_compute_single},
    {"get_output_single", 5, call_get_output_single},
    {"fini_single", 1, call_fini_single},
};

static bool find_function(void** function, void* library, const char* name) {
    return (*function = dlsym(library, name)) != NULL;
}
#define FIND(name) find_function((void**)&nn.name, library, #name)

/* Opens the library and a backend; config is JSON. NULL, or what went wrong. */
static const char* open_backend(const char* path, const char* config, uint32_t config_size) {
    void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library || !FIND(init_backend_with_config) || !FIND(deinit_backend) || !FIND(load) ||
        !FIND(load_by_name_with_config) || !FIND(unload) || !FIND(init_execution_context) ||
        !FIND(headrace_init_execution_context) || !FIND(close_execution_context) || !FIND(set_input) ||
        !FIND(compute) || !FIND(get_output) || !FIND(compute_single) || !FIND(get_output_single) ||
        !FIND(fini_single))
        return dlerror();
    if (nn.init_backend_with_config(&nn.backend, config, config_size) != success)
        return "the configuration was refused; the log says why";
    return NULL;
}

#endif
