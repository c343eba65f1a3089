#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "doors/wasi_nn/context_table.h"

namespace headrace::wasi_nn::component {

struct Tensor {
    std::vector<std::uint32_t> dimensions;
    DType type = DType::f32;
    std::string data;
};

using NamedTensors = std::vector<std::pair<std::string, Tensor>>;

/// The types of tensors by the interface's names.
DType tensor_type_of(std::string_view name);
std::string_view name_of_tensor_type(DType type);

/// A graph, which is unloaded when neither its handle nor a context is left.
class Graph {
public:
    Graph(std::weak_ptr<ContextTable> table, GraphId id) : table_(std::move(table)), id_(id) {}
    Graph(const Graph&) = delete;
    ~Graph() {
        if (const auto table = table_.lock()) static_cast<void>(table->unload(id_));
    }
    GraphId id() const { return id_; }

private:
    const std::weak_ptr<ContextTable> table_;  // which does not outlive its backend
    const GraphId id_;
};

/// A context of a graph, open as long as this lives.
class OpenContext {
public:
    OpenContext(std::weak_ptr<ContextTable> table, std::shared_ptr<Graph> graph, ContextId id)
        : table_(std::move(table)), graph_(std::move(graph)), id_(id) {}
    OpenContext(const OpenContext&) = delete;
    ~OpenContext() {
        if (const auto table = table_.lock()) static_cast<void>(table->close(id_));
    }
    ContextId id() const { return id_; }
    ContextInfo info;

private:
    const std::weak_ptr<ContextTable> table_;
    const std::shared_ptr<Graph> graph_;
    const ContextId id_;
};

/// What a guest gets for an error.
struct Failure {
    std::string_view code;  ///< the interface's
    std::string message;
};

/// An answer of a conversation, which may be dropped before it.
struct Reply {
    std::weak_ptr<OpenContext> context;
    bool has_begun = false;  ///< a piece was asked for
    bool is_over = false;
    std::string metadata;  ///< at the end

    /// Gives up what is left of it.
    void end(ContextTable& table);
    /// It is at its end, which the metadata tells of.
    void finish(ContextTable& table);
};

struct Conversation {
    std::shared_ptr<OpenContext> context;
    std::shared_ptr<Reply> reply;  ///< the latest
};

/// What a handle stands for. An alternative's place is the number of its type.
using Resource = std::variant<std::monostate, Tensor, std::shared_ptr<Graph>, std::shared_ptr<OpenContext>,
                              Failure, std::shared_ptr<Conversation>, std::shared_ptr<Reply>>;

/// The number of the type of resources that a T is.
template <class T>
constexpr std::uint32_t type_number() {
    return []<class... Kinds>(const std::variant<Kinds...>*) {
        static_assert((std::is_same_v<T, Kinds> || ...));
        std::uint32_t number = 0;
        static_cast<void>(((std::is_same_v<T, Kinds> || (++number, false)) || ...));
        return number;
    }(static_cast<const Resource*>(nullptr));
}

/// What the handles of one guest stand for.
class Table {
public:
    /// More live resources, or more bytes of tensors and errors, are a leak.
    static constexpr std::size_t kMostResources = 65536;
    static constexpr std::uint64_t kMostBytes = 1u << 30;

    /// most_bytes: of the tensors and errors; 0 and more than kMostBytes are kMostBytes.
    explicit Table(std::uint64_t most_bytes)
        : most_bytes_(most_bytes && most_bytes < kMostBytes ? most_bytes : kMostBytes) {}

    /// The resource's number. Throws GuestEnded where the guest has too many.
    std::uint32_t add(Resource resource);
    Resource remove(std::uint32_t number);
    template <class T>
    T& at(std::uint32_t number) {
        return std::get<T>(resources_.at(number));
    }

private:
    const std::uint64_t most_bytes_;
    std::uint64_t bytes_ = 0;
    std::uint32_t next_ = 1;
    std::unordered_map<std::uint32_t, Resource> resources_;
};

}  // namespace headrace::wasi_nn::component
