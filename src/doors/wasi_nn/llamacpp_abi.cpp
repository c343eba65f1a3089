// libwasi_nn_llamacpp.so and libwasi_nn_onnx.so: tensors and outputs with their sizes, as WAMR passes them.
#include "headrace/wasi_nn_llamacpp.h"

#include <array>
#include <cstddef>

#include "doors/wasi_nn/door.h"

namespace {

using headrace::DType;
using headrace::wasi_nn::Door;
using headrace::wasi_nn::GuestTensor;
using headrace::wasi_nn::Output;

static_assert(sizeof(tensor) == 32 && offsetof(tensor, type) == 8 && offsetof(tensor, data) == 16);

// The last one is ours: WAMR numbers the others.
constexpr std::array kTypes{DType::f16, DType::f32, DType::f64, DType::u8,
                            DType::i32, DType::i64, DType::bf16};

Door& door() {
    static Door door({.codes = {.missing_memory = missing_memory,
                                .busy = busy,
                                .timeout = runtime_error,
                                .runtime_error = runtime_error,
                                .unsupported = unsupported_operation,
                                .too_large = too_large,
                                .not_found = not_found,
                                .security = not_found},
                      .types = kTypes,
                      .replaces = false,
                      .history = false,
                      .truncates = false,
                      .lenient = false});
    return door;
}

using AbiOutput = tensor_data*;

bool is_missing(const tensor* input) { return !input || (!input->data.buf && input->data.size); }

GuestTensor tensor_of(const tensor& input) {
    const bool has_dimensions = input.dimensions && input.dimensions->buf;
    return {.dimensions = has_dimensions ? input.dimensions->buf : nullptr,
            .rank = has_dimensions ? input.dimensions->size : 0,
            .type_number = input.type,
            .data = input.data.buf,
            .size = input.data.size};
}

Output output_of(AbiOutput output, std::uint32_t* size) {
    return output ? Output{output->buf, output->size, size} : Output{nullptr, 0, size};
}

}  // namespace

#include "doors/wasi_nn/abi.inc"

headrace::wasi_nn::Door& headrace::wasi_nn::guests_door() { return door(); }
