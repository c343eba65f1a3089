/* A C program over headrace/wasi_nn_backend.h, linked with the library: backend_header MODEL.gguf. */
#include <headrace/wasi_nn_backend.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "check.h"

_Static_assert(sizeof(tensor) == 24, "HyperBEAM's tensor");
_Static_assert(offsetof(tensor, type) == 8 && offsetof(tensor, data) == 16, "HyperBEAM's tensor");
_Static_assert(sizeof(tensor_data) == sizeof(void*), "outputs are plain buffers");
_Static_assert(sizeof(wasi_nn_error) == 4, "errors are int");

static uint8_t output[8192];
static uint32_t size;
static uint8_t prompt[] = "What is 2+3?";
static const char config[] = "{\"n_threads\": 1, \"n_ctx\": 512, \"temperature\": 0}";
static const char options[] = "{\"grammar\": \"root ::= \\\"seven\\\"\"}";

static int starts_with(const char* text) {
    return size >= strlen(text) && memcmp(output, text, strlen(text)) == 0;
}

static uint32_t* whole_buffer(void) {
    size = sizeof output;
    return &size;
}

/* The header picks the function by the number of arguments. */
static int run_with_each_number_of_arguments(void* ctx, graph_execution_context context) {
    tensor input = {NULL, 1, prompt};
    CHECK(run_inference(ctx, context, 0, &input, output, whole_buffer()) == wasi_nn_error_none);
    CHECK(starts_with("2+3=5"));
    CHECK(run_inference(ctx, context, 0, &input, output, whole_buffer(), options) == wasi_nn_error_none);
    CHECK(starts_with("seven") && size == 5 && output[5] == 0);
    CHECK(run_inference(ctx, context, 0, &input, output, whole_buffer(), options, strlen(options)) ==
          wasi_nn_error_none);
    CHECK(starts_with("seven") && size == 5);
    CHECK(run_inference(ctx, context, 0, &input, output, whole_buffer(), NULL, 0) == wasi_nn_error_none);
    CHECK(starts_with("2+3=5"));
    return 0;
}

static int stream(void* ctx, graph_execution_context context) {
    char answer[64] = "";
    wasi_nn_error error;
    tensor input = {NULL, 1, prompt};
    CHECK(set_input(ctx, context, 0, &input) == wasi_nn_error_none);
    while ((error = compute_single(ctx, context)) == wasi_nn_error_none) {
        CHECK(get_output_single(ctx, context, 0, output, whole_buffer()) == wasi_nn_error_none);
        strncat(answer, (const char*)output, sizeof answer - strlen(answer) - 1);
    }
    CHECK(error == wasi_nn_error_end_of_sequence);
    CHECK(strncmp(answer, "2+3=5", 5) == 0);
    CHECK(fini_single(ctx, context) == wasi_nn_error_none);
    return 0;
}

int main(int argc, char** argv) {
    void* ctx = NULL;
    graph g = 77;
    graph_execution_context context = 0, session = 0;
    tensor input = {NULL, 1, prompt};
    if (argc != 2) return printf("usage: backend_header MODEL.gguf\n"), 2;
    CHECK(init_backend(&ctx) == wasi_nn_error_none);
    CHECK(deinit_backend(ctx) == wasi_nn_error_none);
    CHECK(deinit_backend(ctx) == wasi_nn_error_invalid_argument);
    CHECK(init_backend_with_config(&ctx, config, strlen(config)) == wasi_nn_error_none);
    CHECK(load(ctx, NULL, 5, 0, &g) == wasi_nn_error_invalid_argument);
    CHECK(load_by_name(ctx, "/nowhere", 8, &g) == wasi_nn_error_model_not_found);
    CHECK(load_by_name(ctx, argv[1], strlen(argv[1]), &g) == wasi_nn_error_none);
    CHECK(load_by_name_with_config(ctx, argv[1], strlen(argv[1]), config, strlen(config), &g) ==
          wasi_nn_error_none);
    CHECK(init_execution_context(ctx, g, &context) == wasi_nn_error_none);
    CHECK(init_execution_context_with_session_id(ctx, "anna", &session) == wasi_nn_error_none);
    CHECK(set_input(ctx, session, 0, &input) == wasi_nn_error_none);
    CHECK(compute(ctx, session) == wasi_nn_error_none);
    CHECK(get_output(ctx, session, 0, output, whole_buffer()) == wasi_nn_error_none);
    CHECK(starts_with("2+3=5"));
    CHECK(cancel_inference(ctx, session) == wasi_nn_error_none);
    CHECK(get_statistics(ctx, output, whole_buffer()) == wasi_nn_error_none);
    CHECK(starts_with("{"));
    if (run_with_each_number_of_arguments(ctx, context) || stream(ctx, context)) return 1;
    CHECK(close_execution_context(ctx, session) == wasi_nn_error_none);
    CHECK(unload(ctx, g) == wasi_nn_error_none);
    CHECK(deinit_backend(ctx) == wasi_nn_error_none);
    printf("wasi_nn_backend.h: all calls from C as they should be\n");
    return 0;
}
