/* wasi:nn 0.2 for C: the imports of a component, as the canonical ABI passes them, and what they return.
 * Types and rules are in docs/guests.md. */
#ifndef COMPONENT_CALLS_H
#define COMPONENT_CALLS_H

#include <stdint.h>
#include <stdlib.h>

#define NN_VERSION "@0.2.0-rc-2024-10-28"
#define NN_IMPORT(interface, name) \
    __attribute__((import_module("wasi:nn/" interface NN_VERSION), import_name(name)))

/* A handle: an own resource until it is dropped or handed over. */
typedef uint32_t nn_handle;

typedef struct {
    char* bytes;
    uint32_t size;
} nn_bytes;
typedef struct {
    uint32_t* numbers;
    uint32_t count;
} nn_words;
typedef struct {
    nn_bytes name;
    nn_handle tensor;
} nn_named_tensor;
typedef struct {
    nn_named_tensor* items;
    uint32_t count;
} nn_named_tensors;

/* Of calls that may fail: a handle of what was asked for, or of an error. */
typedef struct {
    uint8_t is_error;
    nn_handle handle;
} nn_result;
typedef struct {
    uint8_t is_error;
    union {
        nn_named_tensors tensors;
        nn_handle error;
    } of;
} nn_outputs;

enum nn_type { NN_FP16, NN_FP32, NN_FP64, NN_BF16, NN_U8, NN_I32, NN_I64 };
enum nn_encoding {
    NN_OPENVINO,
    NN_ONNX,
    NN_TENSORFLOW,
    NN_PYTORCH,
    NN_TENSORFLOWLITE,
    NN_GGML,
    NN_AUTODETECT
};
enum nn_target { NN_CPU, NN_GPU, NN_TPU };

NN_IMPORT("graph", "load")
void nn_load(const nn_bytes* builders, uint32_t count, int encoding, int target, nn_result*);
NN_IMPORT("graph", "load-by-name") void nn_load_by_name(const char* name, uint32_t size, nn_result*);
NN_IMPORT("graph", "[method]graph.init-execution-context") void nn_open(nn_handle graph, nn_result*);
NN_IMPORT("graph", "[resource-drop]graph") void nn_drop_graph(nn_handle);

NN_IMPORT("inference", "[method]graph-execution-context.compute")
void nn_compute(nn_handle context, const nn_named_tensor* inputs, uint32_t count, nn_outputs*);
NN_IMPORT("inference", "[resource-drop]graph-execution-context") void nn_drop_context(nn_handle);

NN_IMPORT("tensor", "[constructor]tensor")
nn_handle nn_tensor(const uint32_t* dimensions, uint32_t count, int type, const void* data, uint32_t size);
NN_IMPORT("tensor", "[method]tensor.dimensions") void nn_dimensions(nn_handle tensor, nn_words*);
NN_IMPORT("tensor", "[method]tensor.ty") int nn_type_of(nn_handle tensor);
NN_IMPORT("tensor", "[method]tensor.data") void nn_data(nn_handle tensor, nn_bytes*);
NN_IMPORT("tensor", "[resource-drop]tensor") void nn_drop_tensor(nn_handle);

NN_IMPORT("errors", "[method]error.code") int nn_error_code(nn_handle error);
NN_IMPORT("errors", "[method]error.data") void nn_error_data(nn_handle error, nn_bytes*);
NN_IMPORT("errors", "[resource-drop]error") void nn_drop_error(nn_handle);

/* Where hosts put what they return. */
__attribute__((export_name("cabi_realloc"))) void* cabi_realloc(void* old, size_t old_size, size_t alignment,
                                                                size_t size) {
    (void)old_size, (void)alignment;
    void* made = realloc(old, size ? size : 1);
    if (!made) abort();
    return made;
}

#endif
