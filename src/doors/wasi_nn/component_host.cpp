#include "doors/wasi_nn/component_host.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <new>

namespace headrace::wasi_nn::component {
namespace {

#define HEADRACE_WASI_NN_VERSION "@0.2.0-rc-2024-10-28"
constexpr std::string_view kTensor = "wasi:nn/tensor" HEADRACE_WASI_NN_VERSION;
constexpr std::string_view kErrors = "wasi:nn/errors" HEADRACE_WASI_NN_VERSION;
constexpr std::string_view kInference = "wasi:nn/inference" HEADRACE_WASI_NN_VERSION;
constexpr std::string_view kGraph = "wasi:nn/graph" HEADRACE_WASI_NN_VERSION;
#undef HEADRACE_WASI_NN_VERSION
constexpr std::string_view kConversations = "headrace:nn/conversations@0.1.0";

/// Types of resources.
struct Type {
    std::string_view interface, name;
    std::uint32_t number;
};
constexpr std::array kTypes{
    Type{kTensor, "tensor", type_number<Tensor>()},
    Type{kErrors, "error", type_number<Failure>()},
    Type{kInference, "graph-execution-context", type_number<std::shared_ptr<OpenContext>>()},
    Type{kGraph, "graph", type_number<std::shared_ptr<Graph>>()},
    Type{kConversations, "conversation", type_number<std::shared_ptr<Conversation>>()},
    Type{kConversations, "answer", type_number<std::shared_ptr<Reply>>()},
};

/// Error codes of the interface; it has none for the others.
std::string_view name_of_code(Code code) {
    switch (code) {
        case Code::invalid_argument:
        case Code::invalid_state: return "invalid-argument";
        case Code::unsupported: return "unsupported-operation";
        case Code::not_found: return "not-found";
        case Code::denied: return "security";
        case Code::timed_out: return "timeout";
        case Code::prompt_too_long:
        case Code::context_full: return "too-large";
        default: return "runtime-error";
    }
}

}  // namespace

const std::vector<Host::Import>& Host::imports() {
    static const std::vector<Import> imports{
        {kTensor, "[constructor]tensor", &Host::new_tensor},
        {kTensor, "[method]tensor.dimensions", &Host::tensor_dimensions},
        {kTensor, "[method]tensor.ty", &Host::tensor_type},
        {kTensor, "[method]tensor.data", &Host::tensor_data},
        {kErrors, "[method]error.code", &Host::error_code},
        {kErrors, "[method]error.data", &Host::error_data},
        {kInference, "[method]graph-execution-context.compute", &Host::answering<&Host::compute>},
        {kGraph, "[method]graph.init-execution-context", &Host::answering<&Host::open>},
        {kGraph, "load", &Host::load},
        {kGraph, "load-by-name", &Host::load_by_name},
        {kConversations, "[static]conversation.open", &Host::answering<&Host::open_conversation>},
        {kConversations, "[method]conversation.ask", &Host::answering<&Host::ask>},
        {kConversations, "[method]answer.next", &Host::answering<&Host::next>},
        {kConversations, "[method]answer.metadata", &Host::answering<&Host::metadata>},
        {kConversations, "[method]answer.cancel", &Host::cancel},
    };
    return imports;
}

// Between wasmtime and the functions.

void* Host::define(void* linker) {
    void* root = wasmtime_.linker_root(linker);
    void* error = nullptr;
    for (const std::string_view interface : {kTensor, kErrors, kInference, kGraph, kConversations})
        if (!error) error = define_interface(root, interface);
    wasmtime_.instance_delete(root);
    return error;
}

void* Host::define_interface(void* root, std::string_view interface) {
    void* instance = nullptr;
    if (void* error = wasmtime_.add_instance(root, interface.data(), interface.size(), &instance))
        return error;
    void* error = nullptr;
    for (const Type& type : kTypes) {
        if (error || type.interface != interface) continue;
        void* made = wasmtime_.type_new(type.number);
        error = wasmtime_.add_resource(instance, type.name.data(), type.name.size(), made, &destroyed, this,
                                       nullptr);
        wasmtime_.type_delete(made);
    }
    for (const Import& import : imports()) {
        if (error || import.interface != interface) continue;
        Bound& bound = bound_.emplace_back(this, import.function);
        error = wasmtime_.add_function(instance, import.name.data(), import.name.size(), &called, &bound,
                                       nullptr);
    }
    wasmtime_.instance_delete(instance);
    return error;
}

/// Runs the work and ends the guest by a trap where it throws: no exception may pass through wasmtime.
template <class Work>
void* Host::guarded(Work work) noexcept {
    try {
        work();
        return nullptr;
    } catch (const std::bad_alloc&) {
        failure_ = "no memory is left";
    } catch (const std::exception& e) {
        failure_ = e.what();
    }
    return wasmtime_.error_new(failure_->c_str());
}

void* Host::called(void* data, void* store, const void*, Value* given, std::size_t count, Value* results,
                   std::size_t wanted) noexcept {
    const Bound& bound = *static_cast<const Bound*>(data);
    Host& host = *bound.host;
    return host.guarded([&] {
        const std::shared_ptr<ContextTable> table = host.table_.lock();
        if (!table) throw GuestEnded("the backend was closed");
        Call call{{host.wasmtime_, store}, {given, count}, *table};
        Made made = (host.*bound.function)(call);
        if (wanted) results[0] = made.release();
    });
}

void* Host::destroyed(void* data, void*, std::uint32_t number) noexcept {
    Host& host = *static_cast<Host*>(data);
    return host.guarded([&] {
        Resource gone = host.resources_.remove(number);
        const auto* reply = std::get_if<std::shared_ptr<Reply>>(&gone);
        const auto table = host.table_.lock();
        if (reply && table) (*reply)->end(*table);  // nobody reads what is left
    });
}

template <Host::Answer (Host::*function)(Host::Call&)>
Made Host::answering(Call& call) {
    Answer answer = (this->*function)(call);
    if (answer.ok()) return call.store.result(true, std::move(answer).value());
    return refusal(call, answer.error());
}

Made Host::refusal(const Call& call, const Error& error) {
    return refusal(call, Failure{name_of_code(error.code), error.message});
}

Made Host::refusal(const Call& call, Failure failure) {
    HostedModels::log_error(failure.message);
    return call.store.result(false, give(call, std::move(failure)));
}

Made Host::give(const Call& call, Resource resource) {
    const auto type = static_cast<std::uint32_t>(resource.index());
    return call.store.resource(resources_.add(std::move(resource)), type);
}

// Errors.

Made Host::error_code(Call& call) { return call.store.name(at<Failure>(call, call.given(0)).code); }

Made Host::error_data(Call& call) { return call.store.text(at<Failure>(call, call.given(0)).message); }

// Lists of bytes.

/// Whether the call tells where its bytes lie in the guest's memory, or shall lie: wasmtime's own lists are
/// many times their size. `headrace wasm` rewrites components so where it can (_bytes_in_place.py); the
/// import then has so many parameters.
bool Host::is_in_place(const Call& call, std::size_t parameters) const {
    return memories_ && call.arguments.size() == parameters;
}

std::span<std::byte> Host::room_at(std::uint64_t pointer, std::uint64_t size) const {
    const std::span<std::byte> memory = memories_->only();
    if (pointer > memory.size() || size > memory.size() - pointer)
        throw GuestEnded(fmt::format("the guest passed {} bytes at {}, which reach outside its memory of {}",
                                     size, pointer, memory.size()));
    return memory.subspan(pointer, size);
}

std::string_view Host::lying_at(std::uint32_t pointer, std::uint32_t size) const {
    const std::span<const std::byte> bytes = room_at(pointer, size);
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// The parts of a list of lists of bytes, where they lie in the guest's memory.
std::vector<std::string_view> Host::parts_lying_at(std::uint32_t pointer, std::uint32_t count) const {
    std::array<std::uint32_t, 2> part{};  // where its bytes are, and how many
    constexpr std::uint32_t size = sizeof part;
    if (pointer % sizeof part[0] != 0 || count > UINT32_MAX / size)
        throw GuestEnded(
            fmt::format("the guest passed a list of {} at {}, where none can be", count, pointer));
    const std::string_view list = lying_at(pointer, count * size);
    std::vector<std::string_view> parts;
    for (std::size_t at = 0; at < list.size(); at += size) {
        std::memcpy(part.data(), list.data() + at, size);
        parts.push_back(lying_at(part[0], part[1]));
    }
    return parts;
}

// Tensors.

Made Host::new_tensor(Call& call) {
    return give(call, Tensor{words_of(call.given(0)), tensor_type_of(text_of(call.given(1))),
                             is_in_place(call, 4)
                                 ? std::string(lying_at(word_of(call.given(2)), word_of(call.given(3))))
                                 : bytes_of(call.given(2))});
}

Made Host::tensor_dimensions(Call& call) {
    return call.store.words(at<Tensor>(call, call.given(0)).dimensions);
}

Made Host::tensor_type(Call& call) {
    return call.store.name(name_of_tensor_type(at<Tensor>(call, call.given(0)).type));
}

/// In place it gives the size, and writes the bytes where the guest wants them. It is asked for the size
/// first.
Made Host::tensor_data(Call& call) {
    constexpr std::uint64_t nowhere = UINT64_MAX;
    const std::string& data = at<Tensor>(call, call.given(0)).data;
    if (!is_in_place(call, 2)) return call.store.bytes(data);
    const std::uint64_t pointer = long_word_of(call.given(1));
    if (pointer != nowhere)
        std::ranges::copy(std::as_bytes(std::span(data)), room_at(pointer, data.size()).begin());
    return call.store.word(static_cast<std::uint32_t>(data.size()));
}

}  // namespace headrace::wasi_nn::component
