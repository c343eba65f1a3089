// Calls of WebAssembly guests on the functions of libwasi_nn_llamacpp.so and libwasi_nn_onnx.so.
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "doors/wasi_nn/door.h"
#include "headrace/wasi_nn_guests.h"
#include "headrace/wasi_nn_llamacpp.h"

namespace {

/// A call's numbers, and the guest's memory.
struct GuestCall {
    void* backend;
    std::uint8_t* memory;
    std::uint64_t size;
    const std::uint32_t* a;

    bool has(std::uint32_t pointer, std::uint64_t bytes) const { return pointer + bytes <= size; }
    template <class T>
    T* at(std::uint32_t pointer) const {
        return reinterpret_cast<T*>(memory + pointer);
    }
    /// Guests need not align their words.
    template <std::size_t N>
    bool read(std::uint32_t pointer, std::array<std::uint32_t, N>& words) const {
        if (!has(pointer, sizeof words)) return false;
        std::memcpy(words.data(), memory + pointer, sizeof words);
        return true;
    }
    void write(std::uint32_t pointer, std::uint32_t word) const {
        std::memcpy(memory + pointer, &word, sizeof word);
    }
    /// Refuses a pointer outside the guest's memory; the guest may read why, as of each failed call.
    wasi_nn_error refused(std::string_view function, std::string_view what) const {
        const std::string why = fmt::format("{} reaches outside the guest's memory of {} bytes", what, size);
        return static_cast<wasi_nn_error>(headrace::wasi_nn::guests_door().refuse(backend, function, why));
    }
};

/// Makes a call that gives a number, which the guest gets where it succeeded.
template <class Make>
wasi_nn_error giving_number(const GuestCall& call, std::string_view function, std::uint32_t pointer,
                            Make make) {
    if (!call.has(pointer, 4)) return call.refused(function, "the pointer for the result");
    std::uint32_t number = 0;
    const wasi_nn_error error = make(&number);
    if (error == success) call.write(pointer, number);
    return error;
}

wasi_nn_error call_load(const GuestCall& call) {
    std::array<std::uint32_t, 2> part{};  // the model's bytes, and how many there are
    if (!call.read(call.a[0], part)) return call.refused("load", "the builder");
    if (!call.has(part[0], part[1])) return call.refused("load", "the model");
    graph_builder builder{call.at<std::uint8_t>(part[0]), part[1]};
    graph_builder_array builders{&builder, call.a[1]};  // the library reads one, and refuses several
    return giving_number(call, "load", call.a[4], [&](std::uint32_t* graph) {
        return load(call.backend, &builders, call.a[2], call.a[3], graph);
    });
}

wasi_nn_error load_named(const GuestCall& call, std::uint32_t config, std::uint32_t config_size,
                         std::uint32_t result) {
    constexpr std::string_view function = "load_by_name";
    const std::uint32_t *a = call.a, name = a[0], size = a[1];
    if (!call.has(name, size)) return call.refused(function, "the model's name");
    if (!call.has(config, config_size)) return call.refused(function, "the configuration");
    return giving_number(call, function, result, [&](std::uint32_t* graph) {
        return load_by_name_with_config(call.backend, call.at<char>(name), size, call.at<char>(config),
                                        config_size, graph);
    });
}

wasi_nn_error call_load_by_name(const GuestCall& call) { return load_named(call, 0, 0, call.a[2]); }

wasi_nn_error call_load_by_name_with_config(const GuestCall& call) {
    return load_named(call, call.a[2], call.a[3], call.a[4]);
}

wasi_nn_error call_unload(const GuestCall& call) { return unload(call.backend, call.a[0]); }

wasi_nn_error call_init_execution_context(const GuestCall& call) {
    return giving_number(call, "init_execution_context", call.a[1], [&](std::uint32_t* context) {
        return init_execution_context(call.backend, call.a[0], context);
    });
}

wasi_nn_error call_init_execution_context_with_session(const GuestCall& call) {
    constexpr std::string_view function = "init_execution_context";
    const std::uint32_t name = call.a[1], size = call.a[2];
    if (!call.has(name, size)) return call.refused(function, "the session's name");
    // Ends with a NUL, as the library wants it, which refuses a name that is too long.
    const std::string session(call.at<char>(name),
                              std::min<std::size_t>(size, headrace::wasi_nn::kLongestName + 1));
    return giving_number(call, function, call.a[3], [&](std::uint32_t* context) {
        return headrace_init_execution_context(call.backend, call.a[0], session.c_str(), context);
    });
}

wasi_nn_error call_close_execution_context(const GuestCall& call) {
    return close_execution_context(call.backend, call.a[0]);
}

wasi_nn_error call_set_input(const GuestCall& call) {
    std::array<std::uint32_t, 5> words{};  // dimensions, their number, the type, data, its size
    if (!call.read(call.a[2], words)) return call.refused("set_input", "the tensor");
    if (!call.has(words[0], 4ull * words[1])) return call.refused("set_input", "the list of dimensions");
    if (!call.has(words[3], words[4])) return call.refused("set_input", "the tensor's data");
    // Not by the C interface, whose types have 8 bits: a guest's have 32.
    const headrace::wasi_nn::GuestTensor input{.dimensions = call.at<std::uint32_t>(words[0]),
                                               .rank = words[1],
                                               .type_number = words[2],
                                               .data = call.at<std::uint8_t>(words[3]),
                                               .size = words[4]};
    return static_cast<wasi_nn_error>(
        headrace::wasi_nn::guests_door().set_input(call.backend, call.a[0], call.a[1], input));
}

wasi_nn_error call_compute(const GuestCall& call) { return compute(call.backend, call.a[0]); }

wasi_nn_error call_compute_single(const GuestCall& call) { return compute_single(call.backend, call.a[0]); }

wasi_nn_error call_fini_single(const GuestCall& call) { return fini_single(call.backend, call.a[0]); }

wasi_nn_error read_output(const GuestCall& call, decltype(&get_output) read) {
    const std::uint32_t *a = call.a, buffer = a[2], capacity = a[3], written = a[4];
    if (!call.has(buffer, capacity)) return call.refused("get_output", "the buffer");
    if (!call.has(written, 4)) return call.refused("get_output", "the pointer for the size");
    tensor_data output{call.at<std::uint8_t>(buffer), capacity};
    std::uint32_t size = 0;
    const wasi_nn_error error = read(call.backend, a[0], a[1], &output, &size);
    call.write(written, size);  // what is needed, where it was too large
    return error;
}

wasi_nn_error call_get_output(const GuestCall& call) { return read_output(call, &get_output); }

wasi_nn_error call_get_output_single(const GuestCall& call) { return read_output(call, &get_output_single); }

struct Import {
    headrace_guest_import declared;
    wasi_nn_error (*call)(const GuestCall&);
};
#define HEADRACE_IMPORT(name, parameters) Import{{#name, parameters}, &call_##name},
constexpr std::array kImports{HEADRACE_GUEST_IMPORTS(HEADRACE_IMPORT)};
#undef HEADRACE_IMPORT

/// What the module that calls exports as its memory; nothing where it exports none.
std::span<std::uint8_t> memory_of(void* caller, const headrace_wasmtime& wasmtime) {
    alignas(std::max_align_t) std::array<std::uint8_t, 64> item{};
    if (!wasmtime.caller_export_get(caller, "memory", 6, item.data())) return {};
    std::span<std::uint8_t> memory;
    if (item[0] == wasmtime.memory_kind) {
        const void* content = item.data() + wasmtime.item_content;
        const void* context = wasmtime.caller_context(caller);
        memory = {wasmtime.memory_data(context, content), wasmtime.memory_data_size(context, content)};
    }
    wasmtime.extern_delete(item.data());
    return memory;
}

/// Whether it is the guest that the imports are of: one of another store shall not use its handles.
bool is_its_guest(void* caller, headrace_wasmtime& wasmtime) {
    void* const store = wasmtime.caller_context(caller);
    void* first = nullptr;
    return std::atomic_ref(wasmtime.store).compare_exchange_strong(first, store) || first == store;
}

bool loads_by_name(const Import& import) {
    return import.call == &call_load_by_name || import.call == &call_load_by_name_with_config;
}

}  // namespace

const headrace_guest_import* headrace_guest_import_of(std::uint32_t number) {
    return number < kImports.size() ? &kImports[number].declared : nullptr;
}

std::uint32_t headrace_guest_call(void* backend, std::uint32_t number, std::uint8_t* memory,
                                  std::uint64_t size, const std::uint32_t* parameters) {
    if (number >= kImports.size() || !parameters || (size && !memory)) return invalid_argument;
    return kImports[number].call({backend, memory, size, parameters});
}

void* headrace_wasmtime_call(void* import, void* caller, void* values, std::size_t) {
    const auto& called = *static_cast<const headrace_wasmtime_import*>(import);
    headrace_wasmtime& wasmtime = *called.wasmtime;
    const Import& definition = kImports[called.number];
    if (!is_its_guest(caller, wasmtime)) {
        const std::uint32_t refused = invalid_argument;
        std::memcpy(values, &refused, sizeof refused);
        return nullptr;
    }
    std::array<std::uint32_t, headrace_guest_most_parameters> parameters{};
    for (std::uint32_t i = 0; i < definition.declared.parameters; ++i)
        std::memcpy(&parameters[i], static_cast<std::uint8_t*>(values) + std::size_t{i} * wasmtime.value_size,
                    4);
    const auto memory = memory_of(caller, wasmtime);
    const GuestCall call{called.backend, memory.data(), memory.size(), parameters.data()};
    const std::uint32_t error = definition.call(call);
    std::memcpy(values, &error, 4);
    if (error && wasmtime.on_failed_load && loads_by_name(definition) &&
        call.has(parameters[0], parameters[1]))
        wasmtime.on_failed_load(call.at<char>(parameters[0]), parameters[1]);
    return nullptr;
}
