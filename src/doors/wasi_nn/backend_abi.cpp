// libwasi_nn_backend.so: tensors without a length, outputs that are plain buffers.
#define HEADRACE_WASI_NN_NO_MACROS
#include "headrace/wasi_nn_backend.h"

#include <array>
#include <cstddef>
#include <cstring>

#include "doors/wasi_nn/door.h"

namespace {

using headrace::DType;
using headrace::wasi_nn::Door;
using headrace::wasi_nn::GuestTensor;
using headrace::wasi_nn::Output;

static_assert(sizeof(tensor) == 24 && offsetof(tensor, type) == 8 && offsetof(tensor, data) == 16);

constexpr std::array kTypes{DType::f16, DType::f32, DType::f64, DType::bf16,
                            DType::u8,  DType::i32, DType::i64};

Door& door() {
    static Door door({.codes = {.missing_memory = wasi_nn_error_runtime_error,
                                .busy = wasi_nn_error_runtime_error,
                                .timeout = wasi_nn_error_timeout,
                                .runtime_error = wasi_nn_error_runtime_error,
                                .unsupported = wasi_nn_error_unsupported_operation,
                                .too_large = wasi_nn_error_too_large,
                                .not_found = wasi_nn_error_not_found,
                                .security = wasi_nn_error_security},
                      .types = kTypes,
                      .replaces = true,
                      .history = true,
                      .truncates = true,
                      .lenient = true});
    return door;
}

using AbiOutput = tensor_data;

bool is_missing(const tensor* input) { return !input || !input->data; }

GuestTensor tensor_of(const tensor& input) {
    const bool has_dimensions = input.dimensions && input.dimensions->buf;
    return {.dimensions = has_dimensions ? input.dimensions->buf : nullptr,
            .rank = has_dimensions ? input.dimensions->size : 0,
            .type_number = input.type,
            .data = input.data};
}

Output output_of(AbiOutput output, std::uint32_t* size) { return {output, size ? *size : 0, size}; }

}  // namespace

#include "doors/wasi_nn/abi.inc"

wasi_nn_error headrace_run_inference_6(void* ctx, graph_execution_context exec_ctx, std::uint32_t index,
                                       tensor* input_tensor, tensor_data output_tensor,
                                       std::uint32_t* output_tensor_size) {
    return run_inference(ctx, exec_ctx, index, input_tensor, output_tensor, output_tensor_size, nullptr, 0);
}

wasi_nn_error headrace_run_inference_7(void* ctx, graph_execution_context exec_ctx, std::uint32_t index,
                                       tensor* input_tensor, tensor_data output_tensor,
                                       std::uint32_t* output_tensor_size, const char* options) {
    const std::uint32_t size = options ? static_cast<std::uint32_t>(strnlen(options, 1u << 20)) : 0;
    return run_inference(ctx, exec_ctx, index, input_tensor, output_tensor, output_tensor_size, options,
                         size);
}
