#include "doors/wasi_nn/library.h"
#include "checkout.h"

#include <dlfcn.h>

#include <stdexcept>
#include <type_traits>

namespace headrace::wasi_nn_test {
namespace {

constexpr Numbers kBackendNumbers = {.busy = 4,
                                     .too_large = 6,
                                     .not_found = 7,
                                     .outside_root = 8,
                                     .unsupported = 5,
                                     .cancelled = 4,
                                     .timed_out = 3,
                                     .no_memory = 4};
constexpr Numbers kLlamacppNumbers = {.busy = 4,
                                      .too_large = 7,
                                      .not_found = 8,
                                      .outside_root = 8,
                                      .unsupported = 6,
                                      .cancelled = 5,
                                      .timed_out = 5,
                                      .no_memory = 3};

void* open(Abi abi) {
    const std::string file = "/libwasi_nn_" + name_of(abi) + ".so";
    void* handle = dlopen((wasi_nn_folder() + file).c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!handle) throw std::runtime_error(dlerror());
    return handle;
}

/// What a buffer holds before a call, so that a test sees where one wrote.
constexpr char kUntouched = '#';

}  // namespace

std::string name_of(Abi abi) {
    return abi == Abi::backend ? "backend" : abi == Abi::llamacpp ? "llamacpp" : "onnx";
}

void* Library::symbol(const char* name) const {
    void* address = dlsym(handle_, name);
    if (!address) throw std::runtime_error(dlerror());
    return address;
}

#define HR_FUNCTION(member, name) \
    member(reinterpret_cast<std::remove_const_t<decltype(member)>>(symbol(name)))

Library::Library(Abi which)
    : abi(which),
      numbers(which == Abi::backend ? kBackendNumbers : kLlamacppNumbers),
      handle_(open(which)),
      HR_FUNCTION(init_backend, "init_backend"),
      HR_FUNCTION(init_backend_with_config, "init_backend_with_config"),
      HR_FUNCTION(deinit_backend, "deinit_backend"),
      HR_FUNCTION(load, "load"),
      HR_FUNCTION(load_by_name, "load_by_name"),
      HR_FUNCTION(load_by_name_with_config, "load_by_name_with_config"),
      HR_FUNCTION(unload, "unload"),
      HR_FUNCTION(init_execution_context, "init_execution_context"),
      HR_FUNCTION(init_execution_context_with_session_id, "init_execution_context_with_session_id"),
      HR_FUNCTION(close_execution_context, "close_execution_context"),
      HR_FUNCTION(raw_set_input, "set_input"),
      HR_FUNCTION(compute, "compute"),
      HR_FUNCTION(raw_get_output, "get_output"),
      HR_FUNCTION(compute_single, "compute_single"),
      HR_FUNCTION(raw_get_output_single, "get_output_single"),
      HR_FUNCTION(fini_single, "fini_single"),
      HR_FUNCTION(cancel_inference, "cancel_inference"),
      HR_FUNCTION(raw_get_statistics, "get_statistics"),
      HR_FUNCTION(raw_run_inference, "run_inference") {}

#undef HR_FUNCTION

Library::~Library() { dlclose(handle_); }

int Library::load_bytes(void* ctx, std::string_view bytes, std::uint32_t encoding, std::uint32_t target,
                        std::uint32_t* graph) const {
    std::string copy(bytes);  // the library keeps none of the caller's memory
    SizedBytes part{reinterpret_cast<std::uint8_t*>(copy.data()), static_cast<std::uint32_t>(copy.size())};
    struct {
        SizedBytes* buf;
        std::uint32_t size;
    } parts{&part, 1};
    return load(ctx, &parts, encoding, target, graph);
}

int Library::set_input(void* ctx, std::uint32_t context, std::uint32_t index, std::string_view bytes) const {
    return raw_set_input(ctx, context, index, Tensor(abi, bytes).get());
}

Output Library::get_output(void* ctx, std::uint32_t context, std::uint32_t index,
                           std::uint32_t capacity) const {
    Buffer buffer(abi, capacity);
    return buffer.output(raw_get_output(ctx, context, index, buffer.get(), &buffer.size));
}

Output Library::get_output_single(void* ctx, std::uint32_t context, std::uint32_t index,
                                  std::uint32_t capacity) const {
    Buffer buffer(abi, capacity);
    return buffer.output(raw_get_output_single(ctx, context, index, buffer.get(), &buffer.size));
}

Output Library::run_inference(void* ctx, std::uint32_t context, std::string_view prompt,
                              std::string_view options, std::uint32_t capacity) const {
    Buffer buffer(abi, capacity);
    Tensor tensor(abi, prompt);
    return buffer.output(raw_run_inference(ctx, context, 0, tensor.get(), buffer.get(), &buffer.size,
                                           options.data(), static_cast<std::uint32_t>(options.size())));
}

std::string Library::statistics(void* ctx) const {
    Buffer buffer(abi, 1 << 20);
    return buffer.output(raw_get_statistics(ctx, buffer.get(), &buffer.size)).text();
}

Tensor::Tensor(Abi abi, std::string_view bytes)
    : Tensor(abi, bytes, 3, {static_cast<std::uint32_t>(bytes.size())}) {}

Tensor::Tensor(Abi abi, std::string_view bytes, int type, std::vector<std::uint32_t> dimensions)
    : abi_(abi),
      bytes_(bytes),
      extents_(std::move(dimensions)),
      dimensions_{extents_.data(), static_cast<std::uint32_t>(extents_.size())} {
    auto* data = reinterpret_cast<std::uint8_t*>(bytes_.data());
    plain_ = {&dimensions_, type, data};
    sized_ = {
        &dimensions_, static_cast<std::uint8_t>(type), {data, static_cast<std::uint32_t>(bytes_.size())}};
}

void* Tensor::without_data() {
    plain_.data = nullptr;
    sized_.data.buf = nullptr;
    return get();
}

Buffer::Buffer(Abi abi, std::uint32_t capacity)
    : size(abi == Abi::backend ? capacity : 0xdead),
      abi_(abi),
      capacity_(capacity),
      bytes_(capacity + 16, kUntouched),
      sized_{reinterpret_cast<std::uint8_t*>(bytes_.data()), capacity} {}

void* Buffer::without_data() {
    sized_.buf = nullptr;
    return abi_ == Abi::backend ? nullptr : &sized_;
}

Output Buffer::output(int code) const {
    if (bytes_.find_first_not_of(kUntouched, capacity_) != std::string::npos)
        throw std::runtime_error("the library wrote beyond the buffer of " + std::to_string(capacity_));
    return {code, size, bytes_};
}

}  // namespace headrace::wasi_nn_test
