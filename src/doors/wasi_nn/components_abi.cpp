// Imports of components, by libwasi_nn_llamacpp.so and libwasi_nn_onnx.so.
#include "doors/wasi_nn/component_host.h"
#include "doors/wasi_nn/door.h"
#include "headrace/wasi_nn_guests.h"

namespace {

using headrace::wasi_nn::component::Host;
using headrace::wasi_nn::component::Memories;
using headrace::wasi_nn::component::Wasmtime;

}  // namespace

void* headrace_components_new(void* backend, void* (*function_of)(const char* name), std::uint64_t most_bytes,
                              void (*on_failed_load)(const char* name, std::uint32_t size),
                              const void* memories) {
    const auto table = headrace::wasi_nn::table_of(backend);
    const auto wasmtime = function_of ? Wasmtime::found_by(function_of) : std::nullopt;
    if (!table || !wasmtime) return nullptr;
    return new Host(*wasmtime, table, most_bytes, on_failed_load,
                    memories ? *static_cast<const std::shared_ptr<Memories>*>(memories) : nullptr);
}

void* headrace_components_define(void* components, void* linker) {
    return static_cast<Host*>(components)->define(linker);
}

const char* headrace_components_failure(const void* components) {
    const auto& failure = static_cast<const Host*>(components)->failure();
    return failure ? failure->c_str() : nullptr;
}

void* headrace_memories_new(void* (*function_of)(const char* name), std::uint64_t most_bytes) {
    if (!function_of) return nullptr;
    const auto make_error = reinterpret_cast<Memories::MakeError>(function_of("wasmtime_error_new"));
    return make_error ? new std::shared_ptr<Memories>(std::make_shared<Memories>(make_error, most_bytes))
                      : nullptr;
}

bool headrace_memories_define(const void* memories, void* (*function_of)(const char* name), void* config) {
    const auto set =
        reinterpret_cast<Memories::SetCreator>(function_of("wasmtime_config_host_memory_creator_set"));
    if (set) Memories::define(*static_cast<const std::shared_ptr<Memories>*>(memories), config, set);
    return set != nullptr;
}

void headrace_memories_delete(void* memories) { delete static_cast<std::shared_ptr<Memories>*>(memories); }

void headrace_components_delete(void* components) { delete static_cast<Host*>(components); }
