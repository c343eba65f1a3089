/* The C interface of libwasi_nn_backend.so: a WASI-NN backend whose tensors carry no length and whose outputs
 * are plain buffers. For runtimes that pass {buffer, size} pairs, as WAMR does, see wasi_nn_llamacpp.h.
 * Functions are thread-safe; each returns 0 or an error of enum wasi_nn_error, and logs its cause. */
#ifndef HEADRACE_WASI_NN_BACKEND_H
#define HEADRACE_WASI_NN_BACKEND_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HEADRACE_WASI_NN_API __attribute__((visibility("default")))

typedef uint32_t graph;
typedef uint32_t graph_execution_context;
typedef uint8_t* tensor_data;

typedef enum {
    wasi_nn_error_none = 0,
    wasi_nn_error_invalid_argument = 1,
    wasi_nn_error_invalid_encoding = 2,
    wasi_nn_error_timeout = 3,
    wasi_nn_error_runtime_error = 4, /* also: a queue, the sessions or the contexts are full */
    wasi_nn_error_unsupported_operation = 5,
    wasi_nn_error_too_large = 6,
    wasi_nn_error_not_found = 7,
    wasi_nn_error_security = 8, /* a file outside the model root */
    wasi_nn_error_unknown = 9,  /* never: each error has a number of its own */
    wasi_nn_error_end_of_sequence = 100,
    wasi_nn_error_context_full = 101, /* a conversation that may leave nothing out (drop_oldest false) */
    wasi_nn_error_prompt_too_long = 102,
    wasi_nn_error_model_not_found = 103
} wasi_nn_error;

typedef struct {
    uint32_t* buf;
    uint32_t size;
} tensor_dimensions;

/* type: fp16 0, fp32 1, fp64 2, bf16 3, u8 4, i32 5, i64 6. A text's type is not read, as callers send all
 * kinds: the product of the dimensions is the number of bytes; one whose dimensions are missing, empty or
 * 1 ends at its NUL byte. */
typedef struct {
    tensor_dimensions* dimensions;
    int32_t type;
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

/* config: JSON, see docs/parameters.md; HEADRACE_CONFIG (JSON, or @ and a file's path) comes before it. In
 * it, in a load's configuration and in a request's options, text that is no JSON and values that cannot be
 * taken are warnings of the log and the metadata, but for what confines guests: see docs/language-models.md.
 */
HEADRACE_WASI_NN_API wasi_nn_error init_backend(void** ctx);
HEADRACE_WASI_NN_API wasi_nn_error init_backend_with_config(void** ctx, const char* config,
                                                            uint32_t config_len);
HEADRACE_WASI_NN_API wasi_nn_error deinit_backend(void* ctx);

/* A second load replaces the first one's model under the same graph, while requests run: those end on the old
 * one.
 * {"model": {"replace": false}} makes a graph of its own. A load that fails changes nothing. */
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
/* Contexts of one session share its conversation. The session's model is the first graph's. */
HEADRACE_WASI_NN_API wasi_nn_error init_execution_context_with_session_id(void* ctx, const char* session_id,
                                                                          graph_execution_context* exec_ctx);
/* The same for a session of any graph. */
HEADRACE_WASI_NN_API wasi_nn_error headrace_init_execution_context(void* ctx, graph g, const char* session_id,
                                                                   graph_execution_context* exec_ctx);
HEADRACE_WASI_NN_API wasi_nn_error close_execution_context(void* ctx, graph_execution_context exec_ctx);

/* A graph is a language model (GGUF) or a graph of tensors (ONNX; by name also .hrg, .webnn and .json), which
 * docs/guests.md tells of. encoding: 1 for ONNX; 5 and 6, GGML and autodetection, for what the bytes are.
 * target: 0 the CPU, 1 a GPU where there is one. A graph of tensors replaces none. Its inputs and outputs
 * have its own numbers, and output 4294967295 describes them as JSON.
 *
 * Of a language model input 0 is the prompt, 1 the context's parameters as JSON. Output 0 is the answer, 1
 * its metadata as JSON, or
 * {"error": ...} after a call that failed; output 1 of context 0, which is never a context, is the error of
 * the backend's last call that failed, a load's for example. *size: the buffer's capacity, then the bytes
 * written. An answer that is longer ends at a whole character; where not one fits, and where metadata is
 * longer, the result is too_large and *size what is needed. */
HEADRACE_WASI_NN_API wasi_nn_error set_input(void* ctx, graph_execution_context exec_ctx, uint32_t index,
                                             tensor* input);
HEADRACE_WASI_NN_API wasi_nn_error compute(void* ctx, graph_execution_context exec_ctx);
HEADRACE_WASI_NN_API wasi_nn_error get_output(void* ctx, graph_execution_context exec_ctx, uint32_t index,
                                              tensor_data output, uint32_t* size);

/* A piece of the answer at a time: compute_single until it returns end_of_sequence. */
HEADRACE_WASI_NN_API wasi_nn_error compute_single(void* ctx, graph_execution_context exec_ctx);
HEADRACE_WASI_NN_API wasi_nn_error get_output_single(void* ctx, graph_execution_context exec_ctx,
                                                     uint32_t index, tensor_data output, uint32_t* size);
HEADRACE_WASI_NN_API wasi_nn_error fini_single(void* ctx, graph_execution_context exec_ctx);

/* Ends the request that runs in a context, from any thread. */
HEADRACE_WASI_NN_API wasi_nn_error cancel_inference(void* ctx, graph_execution_context exec_ctx);
/* Graphs, sessions, queues, caches and memory as JSON. */
HEADRACE_WASI_NN_API wasi_nn_error get_statistics(void* ctx, tensor_data output, uint32_t* size);

/* Prompt in, answer out, in one call; options go over input 1's parameters. Programs compiled against other
 * headers pass 6 or 7 arguments: they need HEADRACE_RUN_INFERENCE_ARGS=6 (no options) or =7 (options end with
 * a NUL byte) in the environment. */
HEADRACE_WASI_NN_API wasi_nn_error run_inference(void* ctx, graph_execution_context exec_ctx, uint32_t index,
                                                 tensor* input_tensor, tensor_data output_tensor,
                                                 uint32_t* output_tensor_size, const char* options,
                                                 uint32_t options_len);
HEADRACE_WASI_NN_API wasi_nn_error headrace_run_inference_6(void* ctx, graph_execution_context exec_ctx,
                                                            uint32_t index, tensor* input_tensor,
                                                            tensor_data output_tensor,
                                                            uint32_t* output_tensor_size);
HEADRACE_WASI_NN_API wasi_nn_error headrace_run_inference_7(void* ctx, graph_execution_context exec_ctx,
                                                            uint32_t index, tensor* input_tensor,
                                                            tensor_data output_tensor,
                                                            uint32_t* output_tensor_size,
                                                            const char* options);

#ifdef __cplusplus
}
#endif

#ifndef HEADRACE_WASI_NN_NO_MACROS
#define HEADRACE_PICK_RUN_INFERENCE(a, b, c, d, e, f, g, h, name, ...) name
/* The right one of the three by the number of arguments. */
#define run_inference(...)                                                                  \
    HEADRACE_PICK_RUN_INFERENCE(__VA_ARGS__, run_inference, headrace_run_inference_7,       \
                                headrace_run_inference_6, headrace_run_inference_6,         \
                                headrace_run_inference_6, headrace_run_inference_6,         \
                                headrace_run_inference_6, headrace_run_inference_6, unused) \
    (__VA_ARGS__)
#endif

#endif
