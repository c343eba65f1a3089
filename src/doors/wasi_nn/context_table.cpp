#include "doors/wasi_nn/context_table.h"

#include <filesystem>
#include <utility>
#include <vector>

#include "base/gguf_magic.h"
#include "doors/wasi_nn/caught.h"
#include "doors/wasi_nn/conversation_context.h"
#include "doors/wasi_nn/graph_context.h"
#include "doors/wasi_nn/metadata_json.h"

namespace headrace::wasi_nn {
namespace {

/// A language model's parameters for a load: the CPU as the target takes it off the GPU.
GivenParameters parameters_for(const LoadOptions& options) {
    const bool is_plain = options.config.empty() && options.target == Target::cpu;
    return GivenParameters::from_json(is_plain ? R"({"n_gpu_layers": 0})" : options.config);
}

Result<GraphLoad> graph_load(const LoadOptions& options) {
    HR_ASSIGN(Parameters parameters, caught([&] { return Parameters::from_json(options.config); }));
    return GraphLoad{std::move(parameters), options.target};
}

/// What is read of them takes memory before a host's limits are looked at.
Status check_config(const LoadOptions& options) {
    if (options.config.size() <= kLongestConfig) return success();
    return invalid("the load's parameters have {} bytes, and {} are the most", options.config.size(),
                   kLongestConfig);
}

Error no_room_for_graphs(std::size_t most) {
    return failure(Code::busy, "{} graphs are loaded, the host's max_graphs; unload one", most);
}

Error no_room_for_contexts(std::size_t most) {
    return failure(Code::busy, "{} contexts are open, the host's max_contexts; close one", most);
}

}  // namespace

ContextTable::~ContextTable() { cancel_all(); }

Result<std::unique_ptr<ContextTable>> ContextTable::create(std::string_view config, const Defaults& defaults,
                                                           std::string_view above) {
    HostOptions options{.defaults = {{"history", defaults.history}}, .lenient = defaults.lenient};
    if (!defaults.model_root.empty()) options.defaults.set("model_root", defaults.model_root);
    if (!config.empty()) options.own = GivenParameters::from_json(config);
    if (!above.empty()) options.above = GivenParameters::from_json(above);
    HR_ASSIGN(HostedModels models, caught([&] { return HostedModels(options); }));
    return std::unique_ptr<ContextTable>(new ContextTable(std::move(models)));
}

// Graphs.

/// Before the work of a load; keep() sees to loads at the same time.
Status ContextTable::check_room(bool replaces) {
    const std::lock_guard lock(mutex_);
    const auto most = static_cast<std::size_t>(models_.limits().graphs);
    if (replaces || graphs_.size() < most) return success();
    return no_room_for_graphs(most);
}

Result<GraphId> ContextTable::keep(GraphId id, std::shared_ptr<LoadedGraph> graph) {
    const auto most = static_cast<std::size_t>(models_.limits().graphs);
    {
        const std::lock_guard lock(mutex_);
        if (graphs_.contains(id) || graphs_.size() < most) {
            graphs_[id] = std::move(graph);
            return id;
        }
    }
    if (!graph) HR_TRY(caught([&] { return models_.unload(id), std::monostate(); }));
    return no_room_for_graphs(most);  // though there may be room again by now
}

Result<GraphId> ContextTable::load_model(std::string_view name, const LoadOptions& options) {
    HR_ASSIGN(const GraphId id,
              caught([&] { return models_.load(name, parameters_for(options), options.replaces); }));
    return keep(id, nullptr);
}

Result<GraphId> ContextTable::load(std::string_view name, const LoadOptions& options) {
    if (name.size() > kLongestName)
        return invalid("the model's name has {} bytes, and {} are the most", name.size(), kLongestName);
    HR_TRY(check_config(options));
    HR_TRY(check_room(options.replaces));
    std::shared_ptr<LoadedGraph> graph;
    const auto read = [&](const std::string& path) {
        if (LoadedGraph::is_file_of_one(path)) {
            const GraphLoad load = value_or_throw(graph_load(options));
            graph = value_or_throw(LoadedGraph::of_file(path, name, load, models_.limits()));
            return;
        }
        std::error_code error;  // of a file that is none, which the model's own load tells of
        const auto bytes = std::filesystem::file_size(path, error);
        if (!error) value_or_throw(check_model_bytes(bytes, models_.limits()));
    };
    HR_TRY(caught([&] { return models_.read_file(name, read), std::monostate(); }));
    return graph ? keep(models_.reserve(), std::move(graph)) : load_model(name, options);
}

Result<GraphId> ContextTable::load_bytes(std::string_view bytes, Encoding encoding,
                                         const LoadOptions& options) {
    const GuestLimits& limits = models_.limits();
    if (!limits.bytes)
        return failure(Code::denied, "the host lets guests load models by name alone (guest_bytes)");
    HR_TRY(check_config(options));
    HR_TRY(check_room(options.replaces));
    HR_TRY(check_model_bytes(bytes.size(), limits));
    if (encoding == Encoding::any && bytes.starts_with(kGgufMagic)) {
        HR_ASSIGN(const GraphId id, caught([&] {
                      return models_.load_bytes(bytes, parameters_for(options), options.replaces);
                  }));
        return keep(id, nullptr);
    }
    HR_ASSIGN(const GraphLoad load, graph_load(options));
    auto graph = LoadedGraph::of_onnx(bytes, load, limits);
    if (!graph.ok() && encoding == Encoding::any && graph.error().code == Code::invalid_argument)
        return graph.error().within("the bytes do not begin as GGUF does, and as an ONNX model");
    HR_TRY(graph);
    return keep(models_.reserve(), std::move(graph).value());
}

Status ContextTable::unload(GraphId id) {
    std::shared_ptr<LoadedGraph> graph;
    {
        const std::lock_guard lock(mutex_);
        const auto found = graphs_.find(id);
        if (found == graphs_.end()) return failure(Code::not_found, "there is no graph {}", id);
        graph = std::move(found->second);
        graphs_.erase(found);
    }
    if (!graph) return caught([&] { return models_.unload(id), std::monostate(); });
    graph->is_unloaded = true;
    forget_orphans(Forgotten::of_tensors);
    return success();
}

Result<GraphId> ContextTable::first_graph() {
    return caught([&] { return models_.first(); });
}

// Contexts.

Result<std::shared_ptr<Context>> ContextTable::opened(GraphId id, std::optional<std::string_view> session) {
    std::shared_ptr<LoadedGraph> graph;
    {
        const std::lock_guard lock(mutex_);
        const auto most = static_cast<std::size_t>(models_.limits().contexts);
        if (contexts_.size() >= most) return no_room_for_contexts(most);
        if (const auto found = graphs_.find(id); found != graphs_.end()) graph = found->second;
    }
    if (graph && session)
        return unsupported(
            "graph {} takes tensors, which no session remembers; sessions are of language models", id);
    return caught([&]() -> std::shared_ptr<Context> {
        if (graph) return std::make_shared<GraphContext>(graph, models_.limits().compute);
        return std::make_shared<ConversationContext>(models_.open(id, session));
    });
}

Result<ContextId> ContextTable::open(GraphId graph, std::optional<std::string_view> session) {
    if (session && session->size() > kLongestName)
        return invalid("the session's name has {} bytes, and {} are the most", session->size(), kLongestName);
    Result<std::shared_ptr<Context>> context = opened(graph, session);
    if (!context.ok() && context.error().code == Code::busy) {
        forget_orphans(Forgotten::all);
        context = opened(graph, session);
    }
    HR_TRY(context);
    const auto most = static_cast<std::size_t>(models_.limits().contexts);
    {
        const std::lock_guard lock(mutex_);
        if (contexts_.size() < most) {  // others may have opened some meanwhile
            const ContextId id = next_context_++;
            contexts_[id] = std::move(context).value();
            return id;
        }
    }
    context.value()->close();
    return no_room_for_contexts(most);
}

/// Guests cannot close contexts: those of unloaded graphs, unless something still runs there, are no use.
void ContextTable::forget_orphans(Forgotten which) {
    std::vector<std::shared_ptr<Context>> gone;
    {
        const std::lock_guard lock(mutex_);
        for (auto entry = contexts_.begin(); entry != contexts_.end();) {
            const bool is_meant = which == Forgotten::all || entry->second->holds_tensors();
            const bool is_orphan = is_meant && entry->second->is_orphan();
            if (is_orphan) gone.push_back(entry->second);
            entry = is_orphan ? contexts_.erase(entry) : std::next(entry);
        }
    }
    for (const auto& context : gone) context->close();
}

Result<std::shared_ptr<Context>> ContextTable::find(ContextId context) {
    const std::lock_guard lock(mutex_);
    const auto found = contexts_.find(context);
    if (found == contexts_.end())
        return failure(Code::not_found, "there is no execution context {}; it was closed or never opened",
                       context);
    return found->second;
}

Status ContextTable::close(ContextId id) {
    HR_ASSIGN(const std::shared_ptr<Context> context, find(id));
    HR_TRY(context->end_pieces());
    {
        const std::lock_guard lock(mutex_);
        if (contexts_.erase(id) == 0)
            return failure(Code::not_found, "execution context {} is closed already", id);
    }
    context->cancel();
    context->close();
    return success();
}

// These calls are passed on to the context.

Status ContextTable::set_input(ContextId id, std::uint32_t index, const GuestTensor& tensor) {
    HR_ASSIGN(const std::shared_ptr<Context> context, find(id));
    return context->set_input(index, tensor);
}

Status ContextTable::compute(ContextId id) {
    HR_ASSIGN(const std::shared_ptr<Context> context, find(id));
    return context->compute();
}

Result<ContextInfo> ContextTable::info(ContextId id) {
    HR_ASSIGN(const std::shared_ptr<Context> context, find(id));
    return context->info();
}

Result<std::string> ContextTable::run(ContextId id, std::string_view prompt, std::string_view parameters) {
    HR_ASSIGN(const std::shared_ptr<Context> context, find(id));
    return context->run(prompt, parameters);
}

Result<Answer> ContextTable::infer(ContextId id, std::string_view prompt, std::string_view parameters) {
    HR_ASSIGN(const std::shared_ptr<Context> context, find(id));
    return context->infer(prompt, parameters);
}

Result<int> ContextTable::read_output(ContextId id, std::uint32_t index, const OutputReader& read) {
    if (id == 0 && index == 1) {
        std::optional<Error> failed;
        {
            const std::lock_guard lock(mutex_);
            failed = last_failure_;
        }
        if (failed) return read(error_json(*failed), OutputForm::json);
    }
    HR_ASSIGN(const std::shared_ptr<Context> context, find(id));
    return context->read_output(index, read);
}

Result<std::string> ContextTable::output(ContextId id, std::uint32_t index) {
    std::string copy;
    HR_TRY(read_output(id, index, [&](std::string_view bytes, OutputForm) {
        copy = bytes;
        return 0;
    }));
    return copy;
}

Result<std::optional<std::string>> ContextTable::compute_piece(ContextId id) {
    HR_ASSIGN(const std::shared_ptr<Context> context, find(id));
    return context->compute_piece();
}

Result<std::string> ContextTable::last_piece(ContextId id) {
    HR_ASSIGN(const std::shared_ptr<Context> context, find(id));
    return context->last_piece();
}

Status ContextTable::end_pieces(ContextId id) {
    HR_ASSIGN(const std::shared_ptr<Context> context, find(id));
    return context->end_pieces();
}

Status ContextTable::cancel(ContextId id) {
    HR_ASSIGN(const std::shared_ptr<Context> context, find(id));
    context->cancel();
    return success();
}

void ContextTable::cancel_all() {
    models_.close();
    const std::lock_guard lock(mutex_);
    for (const auto& [id, graph] : graphs_)
        if (graph) graph->is_unloaded = true;
}

// The rest.

void ContextTable::remember_failure(const Error& error) {
    const std::lock_guard lock(mutex_);
    last_failure_ = error;
}

Context::Origin ContextTable::origin_of(ContextId id) {
    const auto found = find(id);
    return found.ok() ? found.value()->origin() : Context::Origin();
}

std::string ContextTable::statistics() {
    const HostedStatistics statistics = models_.statistics();
    const std::lock_guard lock(mutex_);
    return statistics_json(statistics, graphs_, contexts_.size());
}

}  // namespace headrace::wasi_nn
