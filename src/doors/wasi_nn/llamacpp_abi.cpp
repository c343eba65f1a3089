// libwasi_nn_llamacpp.so: tensors and outputs with their sizes, as WAMR passes them.
#include "headrace/wasi_nn_llamacpp.h"

#include <cstddef>

#include "doors/wasi_nn/door.h"

namespace {

using headrace::wasi_nn::Door;
using headrace::wasi_nn::Output;

static_assert(sizeof(tensor) == 32 && offsetof(tensor, type) == 8 && offsetof(tensor, data) == 16);

Door& door() {
    static Door door({.numbers = {.missing_memory = missing_memory,
                                  .busy = busy,
                                  .timeout = runtime_error,
                                  .runtime_error = runtime_error,
                                  .unsupported = unsupported_operation,
                                  .too_large = too_large,
                                  .not_found = not_found,
                                  .security = not_found,
                                  .unknown = runtime_error},
                      .replaces = false,
                      .history = false,
                      .truncates = false,
                      .lenient = false});
    return door;
}

wasi_nn_error result(int number) { return static_cast<wasi_nn_error>(number); }

std::string_view bytes_of(const tensor& input) {
    return {reinterpret_cast<const char*>(input.data.buf), input.data.size};
}

Output output_of(tensor_data* output, uint32_t* size) {
    return output ? Output{output->buf, output->size, size} : Output{nullptr, 0, size};
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
    if (!input || (!input->data.buf && input->data.size))
        return result(door().refuse(ctx, "set_input", "the tensor or its data is NULL"));
    return result(door().set_input(ctx, exec_ctx, index, bytes_of(*input)));
}

wasi_nn_error compute(void* ctx, graph_execution_context exec_ctx) {
    return result(door().compute(ctx, exec_ctx));
}

wasi_nn_error get_output(void* ctx, graph_execution_context exec_ctx, uint32_t index, tensor_data* output,
                         uint32_t* size) {
    return result(door().get_output(ctx, exec_ctx, index, output_of(output, size)));
}

wasi_nn_error compute_single(void* ctx, graph_execution_context exec_ctx) {
    return result(door().compute_single(ctx, exec_ctx));
}

wasi_nn_error get_output_single(void* ctx, graph_execution_context exec_ctx, uint32_t index,
                                tensor_data* output, uint32_t* size) {
    return result(door().get_output_single(ctx, exec_ctx, index, output_of(output, size)));
}

wasi_nn_error fini_single(void* ctx, graph_execution_context exec_ctx) {
    return result(door().fini_single(ctx, exec_ctx));
}

wasi_nn_error cancel_inference(void* ctx, graph_execution_context exec_ctx) {
    return result(door().cancel(ctx, exec_ctx));
}

wasi_nn_error get_statistics(void* ctx, tensor_data* output, uint32_t* size) {
    return result(door().statistics(ctx, output_of(output, size)));
}

wasi_nn_error run_inference(void* ctx, graph_execution_context exec_ctx, uint32_t index, tensor* input_tensor,
                            tensor_data* output_tensor, uint32_t* output_tensor_size, const char* options,
                            uint32_t options_len) {
    if (!input_tensor || (!input_tensor->data.buf && input_tensor->data.size))
        return result(door().refuse(ctx, "run_inference", "the tensor or its data is NULL"));
    return result(door().run(ctx, exec_ctx, index, bytes_of(*input_tensor),
                             output_of(output_tensor, output_tensor_size),
                             headrace::wasi_nn::options_text(options, options_len)));
}
