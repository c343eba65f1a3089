/* A C program over headrace/wasi_nn_llamacpp.h, linked with the library: llamacpp_header MODEL.gguf. */
#include <headrace/wasi_nn_llamacpp.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "check.h"

_Static_assert(sizeof(tensor) == 32, "WAMR's tensor");
_Static_assert(offsetof(tensor, type) == 8 && offsetof(tensor, data) == 16, "WAMR's tensor");
_Static_assert(sizeof(tensor_data) == 16 && offsetof(tensor_data, size) == 8, "outputs have their size");
_Static_assert(sizeof(wasi_nn_error) == 4, "errors are int");

static uint8_t bytes[8192];
static tensor_data output = {bytes, sizeof bytes};
static uint32_t size;
static const char prompt[] = "What is 2+3?";
static const char config[] = "{\"n-threads\": 1, \"n-ctx\": 512, \"temp\": 0}";
static const char options[] = "{\"grammar\": \"root ::= \\\"seven\\\"\"}";

static int starts_with(const char* text) {
    return size >= strlen(text) && memcmp(bytes, text, strlen(text)) == 0;
}

static int stream(void* ctx, graph_execution_context context) {
    char answer[64];
    uint32_t length = 0;
    wasi_nn_error error;
    while ((error = compute_single(ctx, context)) == success) {
        CHECK(get_output_single(ctx, context, 0, &output, &size) == success);
        CHECK(size <= sizeof answer - length);
        memcpy(answer + length, bytes, size);
        length += size;
    }
    CHECK(error == end_of_sequence);
    CHECK(length >= 5 && memcmp(answer, "2+3=5", 5) == 0);
    CHECK(fini_single(ctx, context) == success);
    return 0;
}

int main(int argc, char** argv) {
    void* ctx = NULL;
    graph g = 77;
    graph_execution_context context = 0, session = 0;
    uint32_t one = 1; /* as WasmEdge's guests say it, whatever the length */
    tensor_dimensions dimensions = {&one, 1};
    tensor input = {&dimensions, 3, {(uint8_t*)prompt, strlen(prompt)}};
    tensor_data nothing = {NULL, 0}, short_output = {bytes, 2};
    if (argc != 2) return printf("usage: llamacpp_header MODEL.gguf\n"), 2;
    CHECK(init_backend(&ctx) == success);
    CHECK(deinit_backend(ctx) == success);
    CHECK(deinit_backend(ctx) == invalid_argument);
    CHECK(init_backend_with_config(&ctx, config, strlen(config)) == success);
    CHECK(load(ctx, NULL, 5, 0, &g) == invalid_argument);
    CHECK(load_by_name(ctx, "/nowhere", 8, &g) == model_not_found);
    CHECK(load_by_name(ctx, argv[1], strlen(argv[1]), &g) == success);
    CHECK(load_by_name_with_config(ctx, argv[1], strlen(argv[1]), config, strlen(config), &g) == success);
    CHECK(init_execution_context(ctx, g, &context) == success);
    CHECK(init_execution_context_with_session_id(ctx, "anna", &session) == success);
    CHECK(set_input(ctx, context, 0, &input) == success);
    CHECK(compute(ctx, context) == success);
    CHECK(get_output(ctx, context, 0, &output, &size) == success && starts_with("2+3=5"));
    CHECK(get_output(ctx, context, 0, &short_output, &size) == too_large && size > 2);
    CHECK(get_output(ctx, context, 0, &nothing, &size) == invalid_argument);
    CHECK(get_output(ctx, context, 1, &output, &size) == success && starts_with("{"));
    CHECK(run_inference(ctx, context, 0, &input, &output, &size, options, strlen(options)) == success);
    CHECK(starts_with("seven") && size == 5);
    CHECK(set_input(ctx, context, 0, &input) == success);
    if (stream(ctx, context)) return 1;
    CHECK(cancel_inference(ctx, session) == success);
    CHECK(get_statistics(ctx, &output, &size) == success && starts_with("{"));
    CHECK(close_execution_context(ctx, session) == success);
    CHECK(unload(ctx, g) == success);
    CHECK(deinit_backend(ctx) == success);
    printf("wasi_nn_llamacpp.h: all calls from C as they should be\n");
    return 0;
}
