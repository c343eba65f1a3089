// libwasi_nn_backend.so: tensors without a length, outputs that are plain buffers.
#define HEADRACE_WASI_NN_NO_MACROS
#include "headrace/wasi_nn_backend.h"

#include <cstring>

#include "doors/wasi_nn/door.h"

namespace {

using headrace::wasi_nn::Door;

static_assert(sizeof(tensor) == 24 && offsetof(tensor, type) == 8 && offsetof(tensor, data) == 16);

Door& door() {
    static Door door({.numbers = {.missing_memory = wasi_nn_error_runtime_error,
                                  .busy = wasi_nn_error_runtime_error,
                                  .timeout = wasi_nn_error_timeout,
                                  .runtime_error = wasi_nn_error_runtime_error,
                                  .unsupported = wasi_nn_error_unsupported_operation,
                                  .too_large = wasi_nn_error_too_large,
                                  .not_found = wasi_nn_error_not_found,
                                  .security = wasi_nn_error_security,
                                  .unknown = wasi_nn_error_unknown},
                      .replaces = true,
                      .history = true,
                      .truncates = true,
                      .lenient = true});
    return door;
}

wasi_nn_error result(int number) { return static_cast<wasi_nn_error>(number); }

/// The bytes of a tensor; see the header for what its dimensions mean.
std::string_view bytes_of(const tensor& input) {
    uint64_t size = 0;
    if (input.dimensions && input.dimensions->buf && input.dimensions->size) {
        size = 1;
        for (uint32_t i = 0; i < input.dimensions->size && size <= UINT32_MAX; ++i)
            size *= input.dimensions->buf[i];
    }
    const char* text = reinterpret_cast<const char*>(input.data);
    if (size <= 1 || size > UINT32_MAX) return {text, strlen(text)};
    return {text, strnlen(text, size)};
}

}  // namespace

wasi_nn_error init_backend(void** ctx) { return result(door().init(ctx, nullptr, 0)); }

wasi_nn_error init_backend_with_config(void** ctx, const char* config, uint32_t config_len) {
    return result(door().init(ctx, config, config_len));
}

wasi_nn_error deinit_backend(void* ctx) { return result(door().deinit(ctx)); }

wasi_nn_error load(void* ctx, graph_builder_array* builder, uint32_t encoding, uint32_t target, graph* g) {
    if (!builder || !builder->buf || !builder->size)
        return result(door().refuse(ctx, "load", "the builder is NULL or empty"));
    return result(
        door().load(ctx, builder->buf->buf, builder->buf->size, builder->size, encoding, target, g));
}

wasi_nn_error load_by_name(void* ctx, const char* filename, uint32_t filename_len, graph* g) {
    return result(door().load_by_name(ctx, filename, filename_len, nullptr, 0, g));
}

wasi_nn_error load_by_name_with_config(void* ctx, const char* filename, uint32_t filename_len,
                                       const char* config, uint32_t config_len, graph* g) {
    return result(door().load_by_name(ctx, filename, filename_len, config, config_len, g));
}

wasi_nn_error unload(void* ctx, graph g) { return result(door().unload(ctx, g)); }

wasi_nn_error init_execution_context(void* ctx, graph g, graph_execution_context* exec_ctx) {
    return result(door().open(ctx, g, exec_ctx));
}

wasi_nn_error init_execution_context_with_session_id(void* ctx, const char* session_id,
                                                     graph_execution_context* exec_ctx) {
    return result(door().open_session(ctx, session_id, exec_ctx));
}

wasi_nn_error close_execution_context(void* ctx, graph_execution_context exec_ctx) {
    return result(door().close(ctx, exec_ctx));
}

wasi_nn_error set_input(void* ctx, graph_execution_context exec_ctx, uint32_t index, tensor* input) {
    if (!input || !input->data)
        return result(door().refuse(ctx, "set_input", "the tensor or its data is NULL"));
    return result(door().set_input(ctx, exec_ctx, index, bytes_of(*input)));
}

wasi_nn_error compute(void* ctx, graph_execution_context exec_ctx) {
    return result(door().compute(ctx, exec_ctx));
}

wasi_nn_error get_output(void* ctx, graph_execution_context exec_ctx, uint32_t index, tensor_data output,
                         uint32_t* size) {
    return result(door().get_output(ctx, exec_ctx, index, {output, size ? *size : 0, size}));
}

wasi_nn_error compute_single(void* ctx, graph_execution_context exec_ctx) {
    return result(door().compute_single(ctx, exec_ctx));
}

wasi_nn_error get_output_single(void* ctx, graph_execution_context exec_ctx, uint32_t index,
                                tensor_data output, uint32_t* size) {
    return result(door().get_output_single(ctx, exec_ctx, index, {output, size ? *size : 0, size}));
}

wasi_nn_error fini_single(void* ctx, graph_execution_context exec_ctx) {
    return result(door().fini_single(ctx, exec_ctx));
}

wasi_nn_error cancel_inference(void* ctx, graph_execution_context exec_ctx) {
    return result(door().cancel(ctx, exec_ctx));
}

wasi_nn_error get_statistics(void* ctx, tensor_data output, uint32_t* size) {
    return result(door().statistics(ctx, {output, size ? *size : 0, size}));
}

wasi_nn_error run_inference(void* ctx, graph_execution_context exec_ctx, uint32_t index, tensor* input_tensor,
                            tensor_data output_tensor, uint32_t* output_tensor_size, const char* options,
                            uint32_t options_len) {
    if (!input_tensor || !input_tensor->data)
        return result(door().refuse(ctx, "run_inference", "the tensor or its data is NULL"));
    return result(
        door().run(ctx, exec_ctx, index, bytes_of(*input_tensor),
                   {output_tensor, output_tensor_size ? *output_tensor_size : 0, output_tensor_size},
                   headrace::wasi_nn::options_text(options, options_len)));
}

wasi_nn_error headrace_run_inference_6(void* ctx, graph_execution_context exec_ctx, uint32_t index,
                                       tensor* input_tensor, tensor_data output_tensor,
                                       uint32_t* output_tensor_size) {
    return run_inference(ctx, exec_ctx, index, input_tensor, output_tensor, output_tensor_size, nullptr, 0);
}

wasi_nn_error headrace_run_inference_7(void* ctx, graph_execution_context exec_ctx, uint32_t index,
                                       tensor* input_tensor, tensor_data output_tensor,
                                       uint32_t* output_tensor_size, const char* options) {
    const uint32_t size = options ? static_cast<uint32_t>(strnlen(options, 1u << 20)) : 0;
    return run_inference(ctx, exec_ctx, index, input_tensor, output_tensor, output_tensor_size, options,
                         size);
}
