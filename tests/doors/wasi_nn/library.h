#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace headrace::wasi_nn_test {

/// The libraries of the two C interfaces, as hosts that were compiled elsewhere have them: the structures are
/// written down here, and not taken from Headrace's headers. onnx has llamacpp's interface.
enum class Abi { backend, llamacpp, onnx };
std::string name_of(Abi abi);

struct Dimensions {
    std::uint32_t* buf;
    std::uint32_t size;
};
struct PlainTensor {  // HyperBEAM's
    Dimensions* dimensions;
    std::int32_t type;
    std::uint8_t* data;
};
struct SizedBytes {
    std::uint8_t* buf;
    std::uint32_t size;
};
struct SizedTensor {  // WAMR's
    Dimensions* dimensions;
    std::uint8_t type;
    SizedBytes data;
};
static_assert(sizeof(PlainTensor) == 24 && sizeof(SizedTensor) == 32 && sizeof(SizedBytes) == 16);

/// The error numbers in which the interfaces differ.
struct Numbers {
    int busy, too_large, not_found, outside_root, unsupported, cancelled, timed_out, no_memory;
};

/// The answer of a call that fills a buffer. size: what the library wrote there.
struct Output {
    int code;
    std::uint32_t size;
    std::string bytes;  ///< the whole buffer, with what the library left alone in it
    std::string text() const { return bytes.substr(0, size); }
};

/// A library that was opened with dlopen, and its functions. Closes it at the end.
class Library {
public:
    explicit Library(Abi abi);
    ~Library();
    Library(const Library&) = delete;
    Library& operator=(const Library&) = delete;

    const Abi abi;
    const Numbers numbers;

private:
    void* handle_;
    void* symbol(const char* name) const;

public:
    int (*const init_backend)(void** ctx);
    int (*const init_backend_with_config)(void** ctx, const char* config, std::uint32_t size);
    int (*const deinit_backend)(void* ctx);
    int (*const load)(void* ctx, void* builders, std::uint32_t encoding, std::uint32_t target,
                      std::uint32_t* graph);
    int (*const load_by_name)(void* ctx, const char* name, std::uint32_t size, std::uint32_t* graph);
    int (*const load_by_name_with_config)(void* ctx, const char* name, std::uint32_t name_size,
                                          const char* config, std::uint32_t config_size,
                                          std::uint32_t* graph);
    int (*const unload)(void* ctx, std::uint32_t graph);
    int (*const init_execution_context)(void* ctx, std::uint32_t graph, std::uint32_t* context);
    int (*const init_execution_context_with_session_id)(void* ctx, const char* session,
                                                        std::uint32_t* context);
    int (*const close_execution_context)(void* ctx, std::uint32_t context);
    int (*const raw_set_input)(void* ctx, std::uint32_t context, std::uint32_t index, void* tensor);
    int (*const compute)(void* ctx, std::uint32_t context);
    int (*const raw_get_output)(void* ctx, std::uint32_t context, std::uint32_t index, void* output,
                                std::uint32_t* size);
    int (*const compute_single)(void* ctx, std::uint32_t context);
    int (*const raw_get_output_single)(void* ctx, std::uint32_t context, std::uint32_t index, void* output,
                                       std::uint32_t* size);
    int (*const fini_single)(void* ctx, std::uint32_t context);
    int (*const cancel_inference)(void* ctx, std::uint32_t context);
    int (*const raw_get_statistics)(void* ctx, void* output, std::uint32_t* size);
    int (*const raw_run_inference)(void* ctx, std::uint32_t context, std::uint32_t index, void* tensor,
                                   void* output, std::uint32_t* size, const char* options,
                                   std::uint32_t options_size);

    int load_bytes(void* ctx, std::string_view bytes, std::uint32_t encoding, std::uint32_t target,
                   std::uint32_t* graph) const;
    /// The calls with tensors and outputs in this interface's layout.
    int set_input(void* ctx, std::uint32_t context, std::uint32_t index, std::string_view bytes) const;
    Output get_output(void* ctx, std::uint32_t context, std::uint32_t index,
                      std::uint32_t capacity = 65536) const;
    Output get_output_single(void* ctx, std::uint32_t context, std::uint32_t index,
                             std::uint32_t capacity = 65536) const;
    Output run_inference(void* ctx, std::uint32_t context, std::string_view prompt,
                         std::string_view options = {}, std::uint32_t capacity = 65536) const;
    std::string statistics(void* ctx) const;
};

/// A tensor in both layouts: of bytes, or with a type's number and dimensions.
class Tensor {
public:
    Tensor(Abi abi, std::string_view bytes);
    Tensor(Abi abi, std::string_view bytes, int type, std::vector<std::uint32_t> dimensions);
    Tensor(const Tensor&) = delete;
    Tensor& operator=(const Tensor&) = delete;
    void* get() { return abi_ == Abi::backend ? static_cast<void*>(&plain_) : &sized_; }
    /// The same with no data.
    void* without_data();

private:
    Abi abi_;
    std::string bytes_;
    std::vector<std::uint32_t> extents_;
    Dimensions dimensions_;
    PlainTensor plain_;
    SizedTensor sized_;
};

/// An output buffer as each interface passes it: a pointer with *size as the capacity, or a structure.
class Buffer {
public:
    Buffer(Abi abi, std::uint32_t capacity);
    void* get() { return abi_ == Abi::backend ? static_cast<void*>(bytes_.data()) : &sized_; }
    void* without_data();
    std::uint32_t size;  ///< of the call's last argument
    Output output(int code) const;

private:
    Abi abi_;
    std::uint32_t capacity_;
    std::string bytes_;
    SizedBytes sized_;
};

}  // namespace headrace::wasi_nn_test
