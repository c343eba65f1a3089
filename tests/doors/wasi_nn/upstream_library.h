/* libwasi_nn_backend.so as hosts of wasi_nn_backend open it: its structures and numbers are written down
 * here. UPSTREAM_OPTIONS: run_inference has eight arguments, the last two a request's options; else six. */
#pragma once
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "check.h"

typedef struct {
    uint32_t* buf;
    uint32_t size;
} tensor_dimensions;
typedef struct {
    tensor_dimensions* dimensions;
    int32_t type;
    uint8_t* data;
} tensor;

#ifndef UPSTREAM_OPTIONS
#define UPSTREAM_OPTIONS
#endif

enum {
    success = 0,
    invalid_argument = 1,
    runtime_error = 4,
    too_large = 6,
    not_found = 7,
    prompt_too_long = 102,
    model_not_found = 103
};

static struct {
    int (*init_backend)(void** ctx);
    int (*init_backend_with_config)(void** ctx, const char* config, uint32_t config_len);
    int (*deinit_backend)(void* ctx);
    int (*load_by_name_with_config)(void* ctx, const char* name, uint32_t size, const char* config,
                                    uint32_t config_size, uint32_t* graph);
    int (*unload)(void* ctx, uint32_t graph);
    int (*init_execution_context)(void* ctx, uint32_t graph, uint32_t* context);
    int (*init_execution_context_with_session_id)(void* ctx, const char* session, uint32_t* context);
    int (*close_execution_context)(void* ctx, uint32_t context);
    int (*set_input)(void* ctx, uint32_t context, uint32_t index, tensor* input);
    int (*compute)(void* ctx, uint32_t context);
    int (*get_output)(void* ctx, uint32_t context, uint32_t index, uint8_t* output, uint32_t* size);
    int (*run_inference)(void* ctx, uint32_t context, uint32_t index, tensor* input, uint8_t* output,
                         uint32_t* size UPSTREAM_OPTIONS);
    int (*cancel_inference)(void* ctx, uint32_t context);
    int (*get_statistics)(void* ctx, uint8_t* output, uint32_t* size);
} nn;

static int find(void* library, const char* name, void* function) {
    void* found = dlsym(library, name);
    memcpy(function, &found, sizeof found);
    return found != NULL;
}
#define FIND(name) find(library, #name, &nn.name)

static int open_library(void) {
    void* library = dlopen("libwasi_nn_backend.so", RTLD_LAZY);
    if (!library) return printf("%s\n", dlerror()), 0;
    return FIND(init_backend) && FIND(init_backend_with_config) && FIND(deinit_backend) &&
           FIND(load_by_name_with_config) && FIND(unload) && FIND(init_execution_context) &&
           FIND(init_execution_context_with_session_id) && FIND(close_execution_context) && FIND(set_input) &&
           FIND(compute) && FIND(get_output) && FIND(run_inference) && FIND(cancel_inference) &&
           FIND(get_statistics);
}
