/* The C interface of libwasi_nn_llamacpp.so and libwasi_nn_onnx.so, as WAMR calls its backends for GGML and
 * ONNX graphs: tensors and outputs carry their size. Both serve both. The functions and their rules are those
 * of wasi_nn_backend.h, except for what is said here. */
#ifndef HEADRACE_WASI_NN_LLAMACPP_H
#define HEADRACE_WASI_NN_LLAMACPP_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HEADRACE_WASI_NN_API __attribute__((visibility("default")))

typedef uint32_t graph;
typedef uint32_t graph_execution_context;

typedef enum {
    success = 0,
    invalid_argument = 1,
    invalid_encoding = 2,
    missing_memory = 3, /* also: beyond max_graph_bytes */
    busy = 4,           /* a queue, the sessions or the contexts are full */
    runtime_error = 5,
    unsupported_operation = 6,
    too_large = 7, /* a buffer, or max_model_bytes, is too small */
    not_found = 8, /* also: a file outside the model root */
    end_of_sequence = 100,
    context_full = 101, /* a conversation that may leave nothing out (drop_oldest false) */
    prompt_tool_long = 102,
    model_not_found = 103
} wasi_nn_error;

typedef struct {
    uint8_t* buf;
    uint32_t size;
} tensor_data;

typedef struct {
    uint32_t* buf;
    uint32_t size;
} tensor_dimensions;

/* type: fp16 0, fp32 1, fp64 2, u8 3, i32 4, i64 5, and bf16 6, which is ours. data.size is the number of
 * bytes: of a text whatever the dimensions say, of a tensor what they and the type say. */
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

HEADRACE_WASI_NN_API wasi_nn_error init_backend(void** ctx);
HEADRACE_WASI_NN_API wasi_nn_error init_backend_with_config(void** ctx, const char* config,
                                                            uint32_t config_len);
HEADRACE_WASI_NN_API wasi_nn_error deinit_backend(void* ctx);

/* Each load makes a graph of its own; {"model": {"replace": true}} replaces the first one's model. A context
 * keeps no history unless {"history": true}: guests send whole conversations. */
HEADRACE_WASI_NN_API wasi_nn_error load(void* ctx, graph_builder_array* builder, uint32_t encoding,
                                        uint32_t target, graph* g);
HEADRACE_WASI_NN_API wasi_nn_error load_by_name(void* ctx, const char* filename, uint32_t filename_len,
                                                graph* g);
HEADRACE_WASI_NN_API wasi_nn_error load_by_name_with_config(void* ctx, const char* filename,
                                                            uint32_t filename_len, const char* config,
                                                            uint32_t config_len, graph* g);
HEADRACE_WASI_NN_API wasi_nn_error unload(void* ctx, graph g);

HEADRACE_WASI_NN_API wasi_nn_error init_execution_context(void* ctx, graph g,
                                                          graph_execution_context* exec_ctx);
HEADRACE_WASI_NN_API wasi_nn_error init_execution_context_with_session_id(void* ctx, const char* session_id,
                                                                          graph_execution_context* exec_ctx);
/* The same for a session of any graph. */
HEADRACE_WASI_NN_API wasi_nn_error headrace_init_execution_context(void* ctx, graph g, const char* session_id,
                                                                   graph_execution_context* exec_ctx);
HEADRACE_WASI_NN_API wasi_nn_error close_execution_context(void* ctx, graph_execution_context exec_ctx);

/* output->size is the capacity. What does not fit is too_large, with nothing written and the size that is
 * needed in *size. */
HEADRACE_WASI_NN_API wasi_nn_error set_input(void* ctx, graph_execution_context exec_ctx, uint32_t index,
                                             tensor* input);
HEADRACE_WASI_NN_API wasi_nn_error compute(void* ctx, graph_execution_context exec_ctx);
HEADRACE_WASI_NN_API wasi_nn_error get_output(void* ctx, graph_execution_context exec_ctx, uint32_t index,
                                              tensor_data* output, uint32_t* size);

HEADRACE_WASI_NN_API wasi_nn_error compute_single(void* ctx, graph_execution_context exec_ctx);
HEADRACE_WASI_NN_API wasi_nn_error get_output_single(void* ctx, graph_execution_context exec_ctx,
                                                     uint32_t index, tensor_data* output, uint32_t* size);
HEADRACE_WASI_NN_API wasi_nn_error fini_single(void* ctx, graph_execution_context exec_ctx);

HEADRACE_WASI_NN_API wasi_nn_error cancel_inference(void* ctx, graph_execution_context exec_ctx);
HEADRACE_WASI_NN_API wasi_nn_error get_statistics(void* ctx, tensor_data* output, uint32_t* size);

HEADRACE_WASI_NN_API wasi_nn_error run_inference(void* ctx, graph_execution_context exec_ctx, uint32_t index,
                                                 tensor* input_tensor, tensor_data* output_tensor,
                                                 uint32_t* output_tensor_size, const char* options,
                                                 uint32_t options_len);

#ifdef __cplusplus
}
#endif

#endif
