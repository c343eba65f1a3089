// Imports of components, by libwasi_nn_llamacpp.so and libwasi_nn_onnx.so.
#include "doors/wasi_nn/component_host.h"
#include "doors/wasi_nn/door.h"
#include "headrace/wasi_nn_guests.h"

namespace {

using headrace::wasi_nn::component::Host;
using headrace::wasi_nn::component::Wasmtime;

}  // namespace

void* headrace_components_new(void* backend, void* (*function_of)(const char* name), std::uint64_t most_bytes,
                              void (*on_failed_load)(const char* name, std::uint32_t size)) {
    const auto table = headrace::wasi_nn::table_of(backend);
    const auto wasmtime = function_of ? Wasmtime::found_by(function_of) : std::nullopt;
    return table && wasmtime ? new Host(*wasmtime, table, most_bytes, on_failed_load) : nullptr;
}

void* headrace_components_define(void* components, void* linker) {
    return static_cast<Host*>(components)->define(linker);
}

const char* headrace_components_failure(const void* components) {
    const auto& failure = static_cast<const Host*>(components)->failure();
    return failure ? failure->c_str() : nullptr;
}

void headrace_components_delete(void* components) { delete static_cast<Host*>(components); }
