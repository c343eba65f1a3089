#pragma once
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "doors/wasi_nn/component_memory.h"
#include "doors/wasi_nn/component_table.h"
#include "doors/wasi_nn/component_values.h"

namespace headrace::wasi_nn::component {

using OnFailedLoad = void (*)(const char* name, std::uint32_t size);

/// What one guest imports of wasi:nn 0.2 (0.2.0-rc-2024-10-28) and headrace:nn, as functions that wasmtime
/// calls. A graph of tensors has the names of its inputs and outputs; a language model takes the texts
/// `prompt` and `parameters` (JSON) as tensors of u8, and gives `text` and `metadata`, or `embedding` and
/// `metadata` where it gives vectors.
class Host {
public:
    Host(const Wasmtime& wasmtime, std::weak_ptr<ContextTable> table, std::uint64_t most_bytes,
         OnFailedLoad on_failed_load, std::shared_ptr<const Memories> memories)
        : wasmtime_(wasmtime),
          table_(std::move(table)),
          resources_(most_bytes),
          on_failed_load_(on_failed_load),
          memories_(std::move(memories)) {}

    /// Gives the imports to a linker: null, or wasmtime's error.
    void* define(void* linker);
    /// What ended the guest, if an import did.
    const std::optional<std::string>& failure() const { return failure_; }

private:
    /// A call of an import.
    struct Call {
        Store store;
        std::span<const Value> arguments;
        ContextTable& table;

        const Value& given(std::size_t index) const {
            if (index < arguments.size()) return arguments[index];
            throw GuestEnded("an import has fewer parameters than its WIT file gives it");
        }
    };
    using Function = Made (Host::*)(Call&);
    using Answer = Result<Made>;
    struct Import {
        std::string_view interface, name;
        Function function;
    };
    struct Bound {
        Host* host;
        Function function;
    };
    static const std::vector<Import>& imports();
    /// An import whose errors the guest gets, and the log.
    template <Answer (Host::*function)(Call&)>
    Made answering(Call& call);

    static void* called(void* data, void* store, const void* type, Value* given, std::size_t count,
                        Value* results, std::size_t wanted) noexcept;
    static void* destroyed(void* data, void* store, std::uint32_t number) noexcept;
    template <class Work>
    void* guarded(Work work) noexcept;
    void* define_interface(void* root, std::string_view interface);

    template <class T>
    T& at(const Call& call, const Value& resource) {
        return resources_.at<T>(call.store.number_of(resource));
    }
    Made give(const Call& call, Resource resource);
    Made refusal(const Call& call, Failure failure);
    Made refusal(const Call& call, const Error& error);

    Made error_code(Call& call);
    Made error_data(Call& call);
    bool is_in_place(const Call& call, std::size_t parameters) const;
    std::span<std::byte> room_at(std::uint64_t pointer, std::uint64_t size) const;
    std::string_view lying_at(std::uint32_t pointer, std::uint32_t size) const;
    std::vector<std::string_view> parts_lying_at(std::uint32_t pointer, std::uint32_t count) const;

    Made new_tensor(Call& call);
    Made tensor_dimensions(Call& call);
    Made tensor_type(Call& call);
    Made tensor_data(Call& call);

    Made load(Call& call);
    Made load_model(Call& call, std::size_t parts, std::string_view model, std::size_t encoding_at);
    Made load_by_name(Call& call);
    Made give_graph(const Call& call, const Result<GraphId>& loaded);
    Answer open(Call& call);
    Result<std::shared_ptr<OpenContext>> opened(const Call& call, const std::shared_ptr<Graph>& graph,
                                                std::optional<std::string_view> session);

    Answer compute(Call& call);
    Result<NamedTensors> take_inputs(const Call& call, const Value& list);

    Answer open_conversation(Call& call);
    Answer ask(Call& call);
    Answer next(Call& call);
    Answer metadata(Call& call);
    Made cancel(Call& call);

    const Wasmtime wasmtime_;
    const std::weak_ptr<ContextTable> table_;
    Table resources_;
    const OnFailedLoad on_failed_load_;
    const std::shared_ptr<const Memories> memories_;  // null: the guest's are wasmtime's
    std::deque<Bound> bound_;                         // which wasmtime points to
    std::optional<std::string> failure_;
};

}  // namespace headrace::wasi_nn::component
