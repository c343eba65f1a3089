/* What WAMR does with a library of an encoding: finds it by its bare name in LD_LIBRARY_PATH, needs eight
 * functions, knows a ninth, makes a backend for each module instance, and closes and opens the library
 * between them. Its structures and numbers are written down here: wamr_host MODEL.gguf. */
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
    uint8_t* buf;
    uint32_t size;
} tensor_data;
typedef struct {
    tensor_dimensions* dimensions;
    uint8_t type;
    tensor_data data;
} tensor;
typedef struct {
    uint8_t* buf;
    uint32_t size;
} graph_builder;
typedef struct {
    graph_builder* buf;
    uint32_t size;
} graph_builder_array;

enum { success = 0, invalid_argument = 1, invalid_encoding = 2, not_found = 8, model_not_found = 103 };
enum { openvino = 0, onnx = 1, ggml = 5, autodetect = 6, cpu = 0, u8 = 3 };

/* As WAMR declares them. */
static struct {
    int (*init_backend)(void** ctx);
    int (*deinit_backend)(void* ctx);
    int (*load)(void* ctx, graph_builder_array* builder, int encoding, int target, uint32_t* graph);
    int (*load_by_name)(void* ctx, const char* name, uint32_t size, uint32_t* graph);
    int (*load_by_name_with_config)(void* ctx, const char* name, uint32_t size, const char* config,
                                    uint32_t config_size, uint32_t* graph);
    int (*init_execution_context)(void* ctx, uint32_t graph, uint32_t* context);
    int (*set_input)(void* ctx, uint32_t context, uint32_t index, tensor* input);
    int (*compute)(void* ctx, uint32_t context);
    int (*get_output)(void* ctx, uint32_t context, uint32_t index, tensor_data* output, uint32_t* size);
} nn;

static int find(void* library, const char* name, void* function) {
    void* found = dlsym(library, name);
    memcpy(function, &found, sizeof found);
    return found != NULL;
}
#define FIND(name) find(library, #name, &nn.name)

static void* open_library(const char* name) {
    void* library = dlopen(name, RTLD_LAZY);
    if (!library) return printf("%s\n", dlerror()), NULL;
    const int has_all = FIND(init_backend) && FIND(deinit_backend) && FIND(load) && FIND(load_by_name) &&
                        FIND(init_execution_context) && FIND(set_input) && FIND(compute) && FIND(get_output);
    return has_all && FIND(load_by_name_with_config) ? library : NULL;
}

static const char config[] = "{\"n_threads\": 1, \"n_ctx\": 512, \"temperature\": 0}";

/* A guest asks, with its prompt as WasmEdge's guests have it: u8 [1], whatever its length. */
static int ask(void* ctx, uint32_t graph, char* prompt) {
    uint8_t bytes[8192];
    uint32_t context = 0, size = 0, one = 1;
    tensor_dimensions dimensions = {&one, 1};
    tensor input = {&dimensions, u8, {(uint8_t*)prompt, (uint32_t)strlen(prompt)}};
    tensor_data output = {bytes, sizeof bytes};
    CHECK(nn.init_execution_context(ctx, graph, &context) == success);
    CHECK(nn.set_input(ctx, context, 0, &input) == success);
    CHECK(nn.compute(ctx, context) == success);
    CHECK(nn.get_output(ctx, context, 0, &output, &size) == success);
    CHECK(size >= 5 && memcmp(bytes, "2+3=5", 5) == 0);
    CHECK(nn.set_input(ctx, context, 9, &input) == invalid_argument);
    return 0;
}

/* Two module instances at once: each has a backend, and its handles are none of the other's. */
static int run_instances(const char* model) {
    char prompt[] = "What is 2+3?", nonsense[] = "no model";
    void *first = NULL, *second = NULL;
    uint32_t graph = 77, other = 77, context = 0;
    graph_builder part = {(uint8_t*)nonsense, sizeof nonsense};
    graph_builder_array parts = {&part, 1};
    CHECK(nn.init_backend(&first) == success && nn.init_backend(&second) == success && first != second);
    CHECK(nn.load(first, &parts, openvino, cpu, &graph) == invalid_encoding);
    CHECK(nn.load(first, &parts, ggml, cpu, &graph) == invalid_argument);
    CHECK(nn.load_by_name(first, "/nowhere", 8, &graph) == model_not_found && graph == 77);
    CHECK(nn.load_by_name_with_config(first, model, (uint32_t)strlen(model), config, sizeof config - 1,
                                      &graph) == success);
    CHECK(nn.init_execution_context(second, graph, &context) == not_found);
    CHECK(nn.load_by_name_with_config(second, model, (uint32_t)strlen(model), config, sizeof config - 1,
                                      &other) == success);
    if (ask(first, graph, prompt) || ask(second, other, prompt)) return 1;
    CHECK(nn.deinit_backend(first) == success);
    CHECK(nn.compute(first, 1) == invalid_argument);
    if (ask(second, other, prompt)) return 1;
    return nn.deinit_backend(second) != success;
}

int main(int count, char** arguments) {
    const char* const names[] = {"libwasi_nn_llamacpp.so", "libwasi_nn_onnx.so", "libwasi_nn_llamacpp.so"};
    if (count != 2) return printf("usage: wamr_host MODEL.gguf\n"), 2;
    for (unsigned i = 0; i < sizeof names / sizeof *names; ++i) {
        void* library = open_library(names[i]);
        CHECK(library != NULL);
        if (run_instances(arguments[1])) return 1;
        CHECK(dlclose(library) == 0);
    }
    printf("all calls from C as they should be\n");
    return 0;
}
